"""Measured spans as stretches to replay: what the host did itself, and where it waited."""

from collections.abc import Sequence
from typing import Literal

from tui.verdict import policy
from tui.verdict.forecast.course import ISSUING, Stretch
from tui.verdict.forecast.spans import Span


def stretches_of(
    row: Sequence[Span],
    worked: Sequence[float],
    keeps_up_ns: float,
    late: bool,
    waited: float | None,
) -> tuple[Stretch, ...]:
    """The stretches of a step, whose spans hold the GPU's `worked` ns.

    `late`: batches come from workers, at their own pace. `waited`: part of the host's time in which
    it waits for the GPU, None where nobody looked; then it may wait anywhere.
    """
    syncs = waited is None or waited >= policy.SYNC_SEEN
    cuts = [
        _waits(span, work, keeps_up_ns) if syncs else None
        for span, work in zip(row, worked, strict=True)
    ]
    # A GPU that never caught up was never short of work: how long the host alone would have taken
    # is not known, only that it was less.
    ahead = "first" not in cuts and all(span.after_ns > keeps_up_ns for span in row)
    lost_ns = sum(span.drop_ns for span, cut in zip(row, cuts, strict=True) if cut)
    step_ns = sum(span.host_ns for span in row)
    # What the host lost of its lead and did not wait for, it worked.
    own = 0.0 if waited is None or not lost_ns else max(0.0, 1 - waited * step_ns / lost_ns)
    found: list[Stretch] = []
    for span, work, cut in zip(row, worked, cuts, strict=True):
        gap = max(0.0, span.device_ns - work)
        if span.name == "data":
            found.append(Stretch("data", span.host_ns, 0.0, span.device_ns if late else 0.0))
        elif span.name == "checkpoint":
            found.append(Stretch(span.name, 0.0, 0.0, waits=True))
            found.append(Stretch(span.name, gap, work))
        elif cut == "last":
            found.append(Stretch(span.name, own * span.drop_ns, 0.0))
            found.append(Stretch("wait", 0.0, work, waits=True))
            found.append(Stretch(span.name, gap, 0.0))
        elif cut == "first":
            found.append(Stretch(span.name, own * span.drop_ns, 0.0))
            found.append(Stretch("wait", 0.0, 0.0, waits=True))
            found.append(Stretch(span.name, gap, 0.0))
            found.append(Stretch(span.name, max(0.0, work - span.after_ns), work))
        elif ahead and span.name in ISSUING:
            found.append(Stretch(span.name, 0.0, work))
        else:
            found.append(Stretch(span.name, span.host_ns, work))
    if waited is not None and syncs and row[-1].after_ns <= keeps_up_ns:
        # Seen to wait, though not for long: the GPU had caught up. It still would, were it behind.
        found[-1] = found[-1]._replace(waits=True)
    return tuple(found)


def _waits(span: Span, work_ns: float, keeps_up_ns: float) -> Literal["first", "last"] | None:
    """Whether the host waited for the GPU there: before the GPU's work of the span, or after it.

    After it, the GPU was behind and then is not. Before it, the host lost its lead, the GPU stood
    idle, and the host is ahead again.
    """
    if span.drop_ns <= keeps_up_ns or span.before_ns <= keeps_up_ns:
        return None
    if span.after_ns <= keeps_up_ns:
        return "last"
    return "first" if span.device_ns - work_ns > keeps_up_ns else None
