"""How much a number has changed since the moment that was marked, in words: a glyph, a sign and a
colour; nothing where it is no more than chance."""

from math import hypot
from typing import Final, Literal, NamedTuple

from tui.snapshot import Snapshot
from tui.wording.numbers import count, duration

LEAST: Final = 0.02
"""A change by less than this is nothing that anybody would act on."""
SURE: Final = 3.0
"""Standard errors: one comparison in 400 passes by chance."""
MANY: Final = 10.0
"""From so many times the value on, a percentage is hard to read."""

More = Literal["worse", "better", "neither"]


class Change(NamedTuple):
    """What became of one number."""

    text: str
    """ "▲ +38%", "▼ -12%", "▲ x14", "▲ new"."""
    role: str
    """ "warning" for the worse, "good" for the better, "strong" where it is neither."""


def change_of(
    before: float | None, now: float | None, noise: float = 0.0, more: More = "worse"
) -> Change | None:
    """The change of a number that is 0 or more; None where it is within `noise` (in the number's
    own unit), or where one of the two is not known."""
    if before is None or now is None or abs(now - before) <= max(noise, LEAST * before):
        return None
    rose = now > before
    role = "strong" if more == "neither" else "warning" if rose == (more == "worse") else "good"
    glyph = "▲" if rose else "▼"
    if before <= 0:
        return Change(f"{glyph} new", role)
    if now / before >= MANY:
        return Change(f"{glyph} x{now / before:.0f}", role)
    return Change(f"{glyph} {now / before - 1:+.0%}", role)


def noise_of(before_error: float | None, now_error: float | None) -> float | None:
    """What two means may differ by without anything having changed, from their standard errors;
    None where one of them is not known."""
    if before_error is None or now_error is None:
        return None
    return SURE * hypot(before_error, now_error)


def against(baseline: Snapshot, now: Snapshot) -> str:
    """ "against step 1,204 (3m02s ago)"."""
    seconds = (now.t_ns - baseline.t_ns) / 1e9
    when = f"{duration(seconds)} ago" if seconds >= 0 else f"{duration(-seconds)} later"
    step = f"step {count(baseline.steps.total)} " if baseline.steps else ""
    return f"against {step}({when})"
