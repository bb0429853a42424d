"""What a tool reported over the time of a run, and when it was right."""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import dropwhile, pairwise
from typing import Final

from evaluation.catalogue import NOTHING_TO_FIX, Expected

UNSETTLED: Final = frozenset({"warming-up", "incomplete"})
"""Kinds that say that there is no verdict yet."""
JUDGED_STEP: Final = 200
"""Where a verdict is held against the truth…"""
JUDGED_S: Final = 15.0
"""…and no earlier than this: 200 steps of 2 ms are over before any verdict is due."""
STABLE_STEPS: Final = 50
"""A verdict counts from where it stays right for this many steps."""


@dataclass(frozen=True)
class Judgement:
    """One verdict."""

    at_s: float
    """Since the tool attached."""
    step: int
    """Steps completed by then, since the run began."""
    kind: str
    sub: str | None = None
    asks: bool | None = None
    """It asks for a change; None where the tool does not say."""
    confidence: float | None = None
    share: float | None = None
    speedup: float | None = None
    speedup_is: str | None = None
    contributors: tuple[str, ...] = ()
    """Kinds reported beside it, the largest first."""
    leak: bool = False
    """It says, as its verdict or beside it, that memory leaks."""
    advice: str | None = None
    """The first action."""


def kind_is_right(look: Judgement, expected: Expected) -> bool:
    """Where nothing needs to be fixed, that must be what is reported; and only there."""
    if look.kind not in expected.kinds:
        return False
    return look.kind not in NOTHING_TO_FIX or look.asks in (None, not expected.negative)


def sub_is_right(look: Judgement, expected: Expected) -> bool | None:
    """None where the truth has no sub, or another kind was accepted."""
    if expected.sub is None or look.kind != expected.kinds[0]:
        return None
    return look.sub == expected.sub


def is_false_alarm(look: Judgement, expected: Expected) -> bool:
    """A negative is called bound by something."""
    if not expected.negative or look.kind in UNSETTLED:
        return False
    return look.kind not in NOTHING_TO_FIX or look.asks is True


def judged(looks: Sequence[Judgement], begun_step: int, at_end: bool) -> Judgement | None:
    """The look that counts: at step 200 after attaching, or the last one. None without any."""
    if at_end:
        return looks[-1] if looks else None
    in_time = [look for look in looks if not _is_late(look, begun_step)]
    late = [look for look in looks if _is_late(look, begun_step)]
    if late and late[0].step - begun_step == JUDGED_STEP:
        return late[0]
    return in_time[-1] if in_time else next(iter(late), None)


def first_right(looks: Sequence[Judgement], expected: Expected) -> Judgement | None:
    """The first look that is right and stays so for 50 steps, or until the end."""
    for index, look in enumerate(looks):
        until = look.step + STABLE_STEPS
        following = [later for later in looks[index:] if later.step <= until]
        if all(kind_is_right(later, expected) for later in following):
            return look
    return None


def since_settled(looks: Sequence[Judgement]) -> list[Judgement]:
    """From the first settled verdict on."""
    return list(dropwhile(lambda look: look.kind in UNSETTLED, looks))


def changes(looks: Sequence[Judgement]) -> int:
    """Times that the kind changed."""
    return sum(before.kind != after.kind for before, after in pairwise(looks))


def _is_late(look: Judgement, begun_step: int) -> bool:
    return look.step - begun_step >= JUDGED_STEP and look.at_s >= JUDGED_S
