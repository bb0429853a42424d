"""Device marks on every step, for the figures that need consecutive steps.

The probe stamps as many steps as its budget on cost allows, which in short steps that the device
follows closely is one of three to eight. What the marks say does not depend on that; how many say
it does.
"""

from time import sleep

from gpuwatch.probe.device import rate_limit

STEPS = 500
"""Granted at each turn of the publisher, four times a second."""
TURNS_S = 0.35


def stamp_every_step() -> None:
    """From now on. Returns when the publisher has turned."""
    rate_limit.TokenBucket.affordable = lambda self: STEPS  # type: ignore[method-assign]
    sleep(TURNS_S)
