"""Engines as systemd units, over D-Bus by pydbus."""
