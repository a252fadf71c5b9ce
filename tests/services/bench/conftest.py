"""Simulated engines to be measured."""

from tests.services.simulator.conftest import engines as engines
