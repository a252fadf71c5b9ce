"""How long the calls of a real driver take, for the fake to play: measured on an H200, busy, driver 580.

What takes less than the 50 µs in which a sleep can be trusted is left out.
"""

from tests.rigs.fakenvml.description import Keys

# Key of the description → microseconds.  The dear ones are told at their first call, which is their dearest.
ON_A_CARD = {
    "handle": 6_300,
    "name": 58,
    "memory": 58,
    "utilization": 3_750,
    "power_mw": 1_980,
    "energy_mj": 3_200,
    "processes": 200,
    "graphics": 60,
    "temperature.0": 480,
    "threshold.1": 2_700,
    "clock.1": 460,
    "clock.2": 100,
    "max_clock.1": 1_440,
    "max_clock.2": 1_440,
    "event_reasons": 456,
    "encoder": 1_170,
    "fields": 1_000,
    "fan.0": 300,
    "pcie_gen": 286,
    "pcie_width": 118,
    "pcie_replays": 300,
    "pcie_kbs.0": 20_700,
    "pcie_kbs.1": 20_700,
    "mig_mode": 460,
    "ecc_mode": 2_063,
    "display_active": 660,
    "cpus": 10_900,
    "nodes": 11_200,
}


def real_delays(cards: int) -> Keys:
    """The keys that make a played box as slow as a real one."""
    return {f"gpu.{card}.{key}.delay_us": str(delay) for card in range(cards) for key, delay in ON_A_CARD.items()}
