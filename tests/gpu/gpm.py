"""Section `gpm`: the counters of the device under known loads."""

from collections.abc import Iterator

from tests.measuring.claims import Claim


def claims() -> Iterator[Claim]:
    """The rows of `gpm_loads`."""
    from tests.gpu import gpm_loads

    yield from gpm_loads.claims()
