"""num_workers=0: the training process makes every batch itself, between two steps."""

from tui.verdict.feeding import Feeding
from tui.verdict.figures import ms
from tui.verdict.findings import Evidence
from tui.verdict.places import main_places
from tui.verdict.rules.input_explained import Explained, cheaper, gain, limited_by, named
from tui.verdict.window import FrameShare, Window

_ELSEWHERE = frozenset({"conv.py", "linear.py", "graph.py", "_tensor.py", "optimizer.py"})


def serial(window: Window, feeding: Feeding) -> Explained | None:
    """The batch costs the training thread what it would cost a worker: that is the forecast."""
    if feeding.workers != 0:
        return None
    text = "num_workers=0: the training process makes every batch itself"
    evidence = [Evidence(text, "hook", 0.0, "workers")]
    place = loading_place(main_places(window))
    if place is not None:
        evidence += named((place,), "main-thread")
    advice = [cheaper(place)]
    plan = feeding.plan()
    if plan is not None and feeding.cores != 1:
        costs = f"each batch costs {ms(feeding.wait_ns)}, the rest {ms(feeding.other_ns)}"
        limited = limited_by(feeding, plan.wanted)
        advice.insert(
            0, f"num_workers 0 → {plan.workers}, {gain(feeding, plan.batch_ns)} ({costs}{limited})"
        )
    return Explained("serial", tuple(evidence), tuple(advice))


def loading_place(places: tuple[FrameShare, ...]) -> FrameShare | None:
    """The first place that is neither the net nor the optimizer."""
    from_loader = [p for p in places if not any(f"{name}:" in p.frame for name in _ELSEWHERE)]
    return from_loader[0] if from_loader else None
