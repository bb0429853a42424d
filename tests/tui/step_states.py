"""The fake run with steps that were measured on both clocks: what the two lanes are for."""

from collections.abc import Sequence
from dataclasses import replace
from itertools import accumulate

import msgspec

from gpuwatch.tui.model.snapshot import Event, GpuPhases, PhaseStats, Snapshot
from gpuwatch.tui.session.steps import spreads_of
from gpuwatch.tui.session.window_builder import step_stats
from gpuwatch.tui.steps import GpuStep, Step
from tests.tui.fake_run import MS, FakeRun
from tests.tui.states import ON_GPU, healthy_without_gpu, on_gpm, short_steps
from tests.unit.session.making import steps as equal_steps
from tests.unit.verdict.on_gpu import gpu_step

PARTS = ("data", "forward", "backward", "optimizer", "other")


def measured(step: Step, begins_ms: float, parts_ms: Sequence[float]) -> GpuStep:
    """The step on the GPU's clock, `begins_ms` after it began on the host's, with the lags that
    follow from the two."""
    host_ms = [getattr(step, f"{name}_ns") / MS for name in PARTS]
    ends = zip(accumulate(parts_ms), accumulate(host_ms), strict=True)
    lags = [round((begins_ms + there - here) * MS) for there, here in ends]
    named = {f"{name}_ms": ms for name, ms in zip(PARTS, parts_ms, strict=True)}
    row = gpu_step(step, lag_ms=begins_ms, wait_ms=host_ms[0], **named)
    return msgspec.structs.replace(
        row,
        lag_data_ns=lags[0],
        lag_forward_ns=lags[1],
        lag_backward_ns=lags[2],
        lag_optimizer_ns=lags[3],
    )


def _run(
    snapshot: Snapshot,
    host_ms: Sequence[float],
    gpu_ms: Sequence[float],
    begins_ms: float,
    every: int = 1,
) -> Snapshot:
    """The last 200 of equal steps, of which those that are done on the GPU were measured."""
    run = on_gpm(snapshot)
    length_ms = sum(host_ms)
    done = int(snapshot.t_ns / MS / length_ms)
    newest = done - int(FakeRun().now_ns / MS / length_ms) + 18_204
    parts = {f"{name}_ms": ms for name, ms in zip(PARTS, host_ms, strict=True)}
    recent = _uneven(equal_steps(200, newest - 199, (done - 200) * length_ms, ready=0, **parts))
    rows = [
        row
        for step in recent
        if (row := measured(step, begins_ms, gpu_ms)).gpu_end_ns <= snapshot.t_ns
        and step.number % (4 * every) < 4
    ]
    return replace(
        run,
        steps=step_stats(recent, newest, spreads_of(recent)),
        recent=tuple(recent),
        recent_gpu=tuple(rows),
        gpu_phases=_phases(rows, gpu_ms, every),
        events=(),
    )


def _uneven(steps: Sequence[Step]) -> list[Step]:
    """Of every other two steps one ends a little later, and its neighbour begins so much later."""
    made = list(steps)
    for at in range(0, len(made) - 1, 2):
        first, second = made[at : at + 2]
        by_ns = (at * 37 % 11) * (first.end_ns - first.start_ns) // 200
        made[at] = msgspec.structs.replace(
            first, end_ns=first.end_ns + by_ns, backward_ns=first.backward_ns + by_ns
        )
        made[at + 1] = msgspec.structs.replace(
            second, start_ns=second.start_ns + by_ns, data_ns=max(0, second.data_ns - by_ns)
        )
    return made


def _phases(rows: Sequence[GpuStep], gpu_ms: Sequence[float], every: int) -> GpuPhases:
    wall_ms = sum(gpu_ms)
    return replace(
        ON_GPU,
        steps=len(rows),
        phases=tuple(
            PhaseStats(name, ms, ms / wall_ms) for name, ms in zip(PARTS, gpu_ms, strict=True) if ms
        ),
        exposed_ms=gpu_ms[0],
        hidden_ms=sum(row.hidden_ns for row in rows) / len(rows) / MS,
        lag_ms=(None, None, None, (rows[-1].lag_optimizer_ns or 0) / MS),
        every=every,
    )


def gpu_bound(snapshot: Snapshot) -> Snapshot:
    """The host is two steps ahead: the lag is long, and its wait for data hidden."""
    return _run(snapshot, (20.0, 40.0, 80.0, 20.0, 4.0), (0.0, 50.0, 106.0, 8.0, 0.0), 390.0)


def far_ahead(snapshot: Snapshot) -> Snapshot:
    """The host is nine steps ahead."""
    return _run(snapshot, (36.0, 1.0, 26.0, 27.0, 7.0), (0.0, 34.0, 62.0, 1.0, 0.0), 890.0)


def launch_bound(snapshot: Snapshot) -> Snapshot:
    """The GPU waits for each launch: there is no lag."""
    return _run(snapshot, (0.05, 2.8, 5.4, 0.5, 0.1), (0.05, 2.8, 5.42, 0.5, 0.08), 0.01, every=4)


def data_bound(snapshot: Snapshot) -> Snapshot:
    """The GPU idles while the host waits for a batch."""
    return _run(snapshot, (33.0, 1.5, 1.7, 0.3, 0.1), (28.0, 2.7, 5.5, 0.4, 0.0), 5.0)


def without_gpu(snapshot: Snapshot) -> Snapshot:
    """No GPU: one lane."""
    return healthy_without_gpu(snapshot)


def folded(snapshot: Snapshot) -> Snapshot:
    """Steps whose inside is shown by folded samples."""
    even = _run(snapshot, (94.0, 25.0, 41.0, 6.0, 4.0), (90.0, 26.0, 46.0, 8.0, 0.0), 4.0)
    return replace(even, scope=short_steps(snapshot).scope)


def slower(snapshot: Snapshot) -> Snapshot:
    """As `gpu_bound`, with a longer backward, and an optimizer that is twice as fast."""
    return _run(snapshot, (20.0, 40.0, 130.0, 10.0, 4.0), (0.0, 50.0, 146.0, 8.0, 0.0), 390.0)


def with_events(snapshot: Snapshot) -> Snapshot:
    """A checkpoint every 30 steps, and a change of pace."""
    run = data_bound(snapshot)
    recent = [
        msgspec.structs.replace(step, checkpoint_ns=20 * MS, data_ns=13 * MS)
        if step.number % 30 == 0
        else step
        for step in run.recent
    ]
    newest = recent[-1]
    event = Event(newest.end_ns, newest.number - 12, "step time +38% (was 26 ms)", "pace")
    return replace(run, recent=tuple(recent), events=(event,))


def accumulating(snapshot: Snapshot) -> Snapshot:
    """Four batches a step."""
    run = gpu_bound(snapshot)
    several = [msgspec.structs.replace(step, fetches=4, backwards=4) for step in run.recent]
    return replace(run, recent=tuple(several))
