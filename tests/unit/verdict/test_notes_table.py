"""Which notes are reported beside a verdict, and for how long."""

from collections.abc import Sequence
from dataclasses import replace

from gpuwatch.tui.settings import FormatTimes, Settings, StepOperations
from gpuwatch.tui.steps import GpuMemory
from gpuwatch.tui.verdict.engine import Engine
from gpuwatch.tui.verdict.findings import Finding, Note
from gpuwatch.tui.verdict.notes import NOTES, NoteReporter
from gpuwatch.tui.verdict.notes.data import inline_loading
from gpuwatch.tui.verdict.notes.training import one_thread
from gpuwatch.tui.verdict.rules.healthy import healthy
from gpuwatch.tui.verdict.rules.input import input_bound
from gpuwatch.tui.verdict.scoring import state
from gpuwatch.tui.verdict.stack_samples import FrameShare, Stacks
from gpuwatch.tui.verdict.thresholds.causes import NOTE_LEAVE_TIMES
from gpuwatch.tui.verdict.window import StepWindow
from tests.unit.verdict.noted import (
    FP32,
    STEP,
    epochs,
    in_net,
    lines,
    on_gpu,
    packed_reviews,
    replace_loader,
    settings,
)
from tests.unit.verdict.windows import GIB, even, loader, memory, window, worker_use

FULL = GpuMemory(
    t_ns=0,
    step=60,
    device=0,
    allocated=10 * GIB,
    reserved=64 * GIB,
    active=10 * GIB,
    peak_allocated=63 * GIB,
    peak_reserved=64 * GIB,
    at_backward=63 * GIB,
    retries=0,
    ooms=0,
)


def texts(notes: Sequence[Note]) -> str:
    return " | ".join(note.text for note in notes)


def convolutions() -> StepWindow:
    """A net of them on a CPU."""
    conv = "Conv2d._conv_forward (torch/nn/modules/conv.py:560)"
    at = FrameShare(0.3, conv, "Net.forward (vdsr.py:37)", "", "forward", samples=100, in_net=True)
    known = Settings(filters=20, depthwise_filters=0)
    return window(even(60, **STEP), settings=known, stacks=Stacks(100, (at,), 0, (), None))


def test_what_the_verdict_advises_is_no_note_beside_it() -> None:
    rows = even(60, **{**STEP, "data_ms": 30})
    seen = window(rows, loaders=(loader(0),), cores=8.0)
    found = input_bound(seen)
    assert found is not None
    assert inline_loading(seen) is not None
    assert "num_workers" not in texts(NoteReporter().update(NOTES, seen, (found,)))
    other: Finding = state("host", None, "warning", "Python", (), ("look at x",))
    assert "num_workers" in texts(NoteReporter().update(NOTES, seen, (other,)))
    assert "num_workers" not in texts(
        NoteReporter().update(
            NOTES,
            seen,
            (
                other,
                found,
            ),
        )
    ), "shown as a contributor"


def test_idle_cores_are_reported_once() -> None:
    one = settings(threads=1, parameter_device="cpu")
    given = {"settings": one, "cores": 16.0, "machine_cpu_percent": 7.0, "main_cpu_percent": 100.0}
    seen = window(even(60, **STEP), **given)
    found = healthy(seen)
    assert found is not None
    assert one_thread(seen) is not None
    assert "set_num_threads" not in texts(NoteReporter().update(NOTES, seen, (found,)))


def test_every_note_has_the_word_by_which_advice_is_known() -> None:
    """Else it would be reported beside advice that says the same."""
    off = settings(**FP32, anomaly=True, deterministic=True, foreach=False, set_to_none=False)
    check = (0.1, "_Real.check (torch/distributions/constraints.py:425)", "Normal(m, s)")
    place = lines(
        *((0.1, "a (train.py:1)", "empty_cache()"), (0.1, "b (train.py:2)", "x.to(d)"), check)
    )
    bare = replace_loader(pinned=False)
    short = {"memory": tuple(memory(lambda _: 60 * GIB, 20, 10)), "memory_limit_bytes": 61 * GIB}
    of_the_gpu = {"gpu_memory_limit_bytes": 64 * GIB}
    one = settings(threads=1, parameter_device="cpu")
    heads = ("att = q @ k.mT", "att = F.softmax(att, dim=-1)", "y = att @ v")
    pairs = "d = ((x[:, None] - y[None]) ** 2).sum(-1)"
    in_order = (*heads, pairs)
    scores = in_net(*((0.1, f"a (train.py:{at})", line) for at, line in enumerate(in_order, 6)))
    fused = settings(fused=True, parameter_device="cpu")
    in_bf16 = FormatTimes(part=1.0, now_us=9_000, channels_last_us=9_000, bf16_us=4_500)
    several = [
        on_gpu(off, stacks=place, **short),
        on_gpu(settings(scaler=True), loaders=(bare,), gpu_memory=(FULL,), **of_the_gpu),
        window(epochs(90, 200.0), loaders=(loader(4, iterations=5),)),
        window(even(60, **{**STEP, "data_ms": 3}), loaders=(loader(0),)),
        window(even(60, **STEP), settings=one, cores=16.0, machine_cpu_percent=8.0),
        window(even(60, **{**STEP, "optimizer_ms": 30}), settings=fused),
        on_gpu(settings(profiler=True, parameter_dtype="float64")),
        window(
            even(60, **STEP),
            loaders=(),
            workers=replace(worker_use(2, 99), oldest_s=9.0, cpu_each=((98.0, 99.0),) * 2),
        ),
        packed_reviews(),
        convolutions(),
        window(even(60, **STEP), stacks=scores, gpu_present=True),
        window(
            even(60, **{**STEP, "forward_ms": 4, "backward_ms": 8}),
            settings=settings(autocast="", parameter_dtype="float32", formats=in_bf16),
        ),
        window(
            even(60, **STEP, fetches=4, backwards=4),
            settings=Settings(step_operations=StepOperations(2, 4_000, 60_000, 60_000)),
            loaders=(loader(0),),
        ),
    ]
    for rule, word in NOTES:
        reported = [note for seen in several if (note := rule(seen)) is not None]
        assert reported, word
        assert all(word in note.text for note in reported), word


def test_the_engine_shows_them_beside_its_verdict() -> None:
    engine = Engine()
    rows = even(60, **STEP)
    on = settings(parameter_device="cpu", anomaly=True)
    early = engine.judge(window(rows[:5], settings=on))
    assert (early.finding.kind, early.notes) == ("warming-up", ())
    late = engine.judge(window(rows, settings=on))
    assert late.finding.kind == "healthy"
    assert "anomaly" in texts(late.notes)
    off = window(rows, settings=settings(parameter_device="cpu"))
    looks = [engine.judge(off).notes for _ in range(NOTE_LEAVE_TIMES)]
    assert looks[-1] == ()


def test_a_cost_near_the_line_does_not_come_and_go() -> None:
    reported, fine = NoteReporter(), state("healthy", None, "info", "no cause above 10%")
    dear, cheap = (
        window(even(60, **{**STEP, "data_ms": ms}), loaders=(loader(0),), cores=8.0)
        for ms in (1.1, 0.9)
    )
    assert reported.update(NOTES, cheap, (fine,)) == ()
    judged = [reported.update(NOTES, seen, (fine,)) for seen in (dear, cheap, cheap, dear, cheap)]
    assert all("num_workers" in texts(notes) for notes in judged)
    assert judged[1] == judged[0], "as it was when it was last seen"
    missing = [reported.update(NOTES, cheap, (fine,)) for _ in range(NOTE_LEAVE_TIMES)]
    assert (missing[0], missing[-1]) == (judged[-1], ())
    assert reported.update(NOTES, cheap, (fine,)) == ()


def test_a_stall_has_no_notes() -> None:
    rows = even(60, **STEP)
    stuck = state("stalled", None, "critical", "no progress for 60 s")
    assert (
        NoteReporter().update(NOTES, window(rows, settings=settings(anomaly=True)), (stuck,)) == ()
    )


def test_channels_last_stands_beside_a_cause_that_may_be_worth_less() -> None:
    """A super-resolution net on two cores: 1.38x, and 1.12x by what the verdict advised."""
    seen = convolutions()
    other: Finding = state("input", "epoch-start", "warning", "epochs", (), ("persistent_workers",))
    assert "channels_last" in texts(NoteReporter().update(NOTES, seen, (other,)))
    limit = healthy(seen)
    assert limit is not None
    assert "channels_last" not in texts(NoteReporter().update(NOTES, seen, (limit,)))
    on_device = replace(seen, gpu_present=True)
    assert "channels_last" not in texts(NoteReporter().update(NOTES, on_device, (other,)))
