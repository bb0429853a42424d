"""What samples tell of a run without a probe, in words: always with "~"."""

from typing import Final

from tui.snapshot import Snapshot
from tui.verdict.window import Sampled
from tui.wording.numbers import count, milliseconds, percent

NAMES: Final = {"data": "data wait", "synchronisation": "waiting for the GPU"}
WORTH: Final = 0.005
"""Parts that round to nothing are left out."""


def share_words(told: Sampled) -> list[str]:
    """ "data wait ~57%", in the order of a step; what was not seen is left out."""
    return [
        f"{NAMES.get(name, name)} ~{percent(share.mean)}"
        for name, share in told.shares.items()
        if share.mean >= WORTH
    ]


def interval_words(told: Sampled, name: str) -> str:
    """ "50% to 64%"."""
    share = told.share(name)
    return f"{percent(share.low)} to {percent(share.high)}"


def step_words(told: Sampled) -> str:
    """ "a step takes ~410 ms", or that nobody can tell."""
    if told.period_ns is None:
        return "how long a step takes, samples do not tell"
    return f"a step takes ~{milliseconds(told.period_ns / 1e6)}"


def waiting_words(snapshot: Snapshot) -> str:
    """What stands where steps would."""
    return (
        "waiting for the first steps" if snapshot.sampled is None else "no probe: no steps are seen"
    )


def count_words(told: Sampled) -> str:
    """ "190 samples"."""
    return "1 sample" if told.samples == 1 else f"{count(told.samples)} samples"
