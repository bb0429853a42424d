"""The step's words: what is usual, and which of its parts holds what the verdict blames."""

from dataclasses import replace

from gpuwatch.tui.model.snapshot import PhaseStats, Snapshot
from gpuwatch.tui.verdict.findings import Kind
from gpuwatch.tui.verdict.stack_samples import FrameShare, Stacks
from gpuwatch.tui.wording.gpu import exposed_share
from gpuwatch.tui.wording.steps import inside_words, usual_words
from tests.tui.fake_run import FakeRun
from tests.tui.states import ON_GPU

RUN = FakeRun().snapshot()
assert RUN.steps is not None
STEPS = RUN.steps


def _blames(kind: Kind, line: str, share: float, **phases: float) -> Snapshot:
    places = (FrameShare(share, "train (train.py:41)", None, line),)
    made = tuple(PhaseStats(name, 10 * part, part) for name, part in phases.items())
    finding = replace(RUN.verdict.finding, kind=kind, share=None)
    return replace(
        RUN,
        verdict=replace(RUN.verdict, finding=finding),
        steps=replace(STEPS, phases=made),
        stacks=Stacks(100, places, 0, (), None),
    )


def test_the_phase_that_must_hold_the_copies_is_named() -> None:
    run = _blames("h2d", "x = x.to(DEVICE)", 0.65, data=0.01, forward=0.88, backward=0.11)
    assert inside_words(run) == "copies: 65%, inside forward"


def test_where_no_phase_alone_can_hold_the_waits_all_that_may_are_named() -> None:
    run = _blames("sync", "norm.item()", 0.59, forward=0.41, backward=0.16, other=0.43)
    assert inside_words(run) == "waits for the GPU: 59%, inside other + forward + backward"


def test_a_cause_that_is_a_part_of_the_bar_needs_no_words() -> None:
    assert inside_words(_blames("input", "norm.item()", 0.59, data=1.0)) == ""
    assert inside_words(_blames("sync", "a = b + c", 0.59, forward=1.0)) == ""


def test_steps_of_two_kinds_have_a_mean() -> None:
    phases = (PhaseStats("data", 98.0, 0.92), PhaseStats("forward", 8.0, 0.08))
    two = replace(STEPS, p50_ms=8.31, p95_ms=655.0, phases=phases)
    assert usual_words(two) == ["mean 106 ms", "p50 8.31 ms", "p95 655 ms"]
    assert usual_words(STEPS) == ["p50 1.2 s", "p95 1.4 s"]


def test_what_idles_the_gpu_is_a_part_of_the_hosts_bar() -> None:
    assert exposed_share(RUN) is None, "its clock is not read"
    clocked = replace(ON_GPU, exposed_ms=9.0, hidden_ms=9.9)
    wait = (PhaseStats("data", 18.9, 0.75), PhaseStats("forward", 6.1, 0.25))
    on_gpu = replace(RUN, gpu_phases=clocked, steps=replace(STEPS, phases=wait))
    exposed = exposed_share(on_gpu)
    assert exposed is not None
    assert round(exposed, 2) == 0.36
