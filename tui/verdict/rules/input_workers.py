"""The workers are too slow: more of them, or none would help."""

from tui.verdict import policy
from tui.verdict.feeding import Feeding
from tui.verdict.figures import cores, ms, percent
from tui.verdict.findings import Evidence
from tui.verdict.places import worker_places
from tui.verdict.rules.input_explained import Explained, cheaper, gain, limited_by, named
from tui.verdict.window import Window


def too_few_workers(window: Window, feeding: Feeding) -> Explained | None:
    """`workers` where other numbers would give 10 % or more, by the model of `Feeding`; else
    `cpu-bound`: more workers will not help."""
    workers, plan = feeding.workers, feeding.plan()
    if not workers or plan is None or feeding.make_ns is None:
        return None
    places = worker_places(window)
    evidence = [_cost(window, feeding), *named(places, "worker")]
    use = window.workers
    if use is not None and use.cpu_percent is not None:
        text = f"{workers} worker{'s use' if workers > 1 else ' uses'} {use.cpu_percent:.0f}% "
        text += "of a core each" if workers > 1 else "of a core"
        if feeding.cores:
            text += f", {cores(feeding.cores)} here"
        evidence.append(Evidence(text, "proc", use.cpu_percent, "%"))
    less = cheaper(places[0] if places else None)
    if plan.workers > workers and plan.batch_ns < feeding.batch_ns * (1 - policy.WORTH_DOING):
        costs = f"each batch costs a worker {ms(feeding.make_ns)}, the rest of the step "
        costs += f"{ms(feeding.other_ns)}{limited_by(feeding, plan.wanted)}"
        more = f"num_workers {workers} → {plan.workers}, {gain(feeding, plan.batch_ns)} ({costs})"
        return Explained("workers", tuple(evidence), (more, less))
    limit = f"the {cores(feeding.cores)} are" if feeding.cores else "the cores are"
    wont = f"more workers will not help: {limit} taken by {workers} workers and the training"
    return Explained("cpu-bound", tuple(evidence), (less, wont + limited_by(feeding, plan.wanted)))


def _cost(window: Window, feeding: Feeding) -> Evidence:
    """Other processes on these cores make each batch dearer than it need be."""
    make_ns = feeding.make_ns or 0.0
    text = f"a batch costs a worker {ms(make_ns)}"
    if feeding.busy is not None and feeding.busy < policy.BURST_BUSY:
        text += f", they are at it {percent(feeding.busy)} of the time"
    here, others = window.cores, window.others_cores
    if here and others is not None and others >= policy.OTHERS_USE * here:
        text += f" while others use {others:.1f} of {cores(here)}"
    return Evidence(text, "hook", make_ns / 1e6, "ms")
