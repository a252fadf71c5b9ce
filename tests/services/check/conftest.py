"""Simulated engines to be checked."""

from tests.services.simulator.conftest import engines as engines
