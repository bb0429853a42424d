"""Clocks that jump, and a step of twenty minutes: held clocks, since nobody waits for them."""

from pathlib import Path

import msgspec
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as some

from gpuwatch.probe.wire import marks, page
from gpuwatch.tui.messages import Loader
from gpuwatch.tui.sources.marks.timeline import Timeline
from gpuwatch.tui.steps import Batch, Step
from tests.faults.training import TRAIN, bare
from tests.processes.monitored import hello_of, started, subscribed, until, word_of
from tests.unit.probe.held_clock import partition_ns

HOUR_NS = 3_600_000_000_000

ROW = Loader(1, "kind", 2, 2, False, False, 16, 10, (), "Rows")
DETAILS = {
    marks.LOADER: (ROW, True),
    marks.PHASE_ENTER: "named",
    marks.PHASE_LEAVE: "named",
    marks.READY: 3,
    marks.ITERATION: 11,
    marks.FETCH_ENTER: 11,
}
PLAIN = (
    marks.FETCH_ENTER,
    marks.FETCH_LEAVE,
    marks.BACKWARD_ENTER,
    marks.BACKWARD_LEAVE,
    marks.OPTIMIZER_ENTER,
    marks.OPTIMIZER_LEAVE,
)
KINDS = some.lists(
    some.one_of(
        some.just(PLAIN),
        some.tuples(some.sampled_from([kind for kind in range(1, 21) if kind != marks.STEP])),
    ),
    min_size=1,
    max_size=40,
)
JUMPS = some.lists(some.integers(-2 * HOUR_NS, 20 * HOUR_NS), min_size=0, max_size=6)


@settings(deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(kinds=KINDS, jumps=JUMPS, every=some.integers(1, 9), lost=some.integers(0, 3))
def test_whatever_the_clock_does_no_phase_is_negative(
    kinds: list[tuple[int, ...]], jumps: list[int], every: int, lost: int
) -> None:
    timeline = Timeline()
    t_ns, number, some_marks = 100 * HOUR_NS, 0, []
    for at, kind in enumerate([*PLAIN * 4, *(kind for group in kinds for kind in group)]):
        t_ns += 1_000
        if jumps and at % (every + 7) == 0:
            t_ns = max(0, t_ns + jumps.pop())
        number += 1 + (lost if at == 20 else 0)
        some_marks.append((number, kind, t_ns, DETAILS.get(kind)))
    for step in timeline.feed_all(some_marks):
        assert min(step.data_ns, step.forward_ns, step.backward_ns, step.optimizer_ns) >= 0
        assert min(step.other_ns, step.startup_ns, step.evaluation_ns, step.checkpoint_ns) >= 0
        assert min([0, *step.phases.values()]) == 0
        assert partition_ns(step) >= step.end_ns - step.start_ns
        batch = Batch(1, t_ns, [step], timeline.open(), [], 0, None, 1, 1, None)
        assert msgspec.msgpack.decode(msgspec.msgpack.encode(batch), type=Batch) == batch


HELD = """
    import itertools
    from gpuwatch.probe import clock
    leaps = {LEAPS}
    steps = itertools.count()
    leapt = [0]
    real = time.perf_counter_ns
    def leaping():
        return real() + leapt[0]
    clock.now_ns = leaping
    import gpuwatch.probe.serve
    walls = itertools.cycle([0.0, 4e9, -5.0])
    clock.unix_seconds = lambda: next(walls)
"""


@pytest.mark.fault
@pytest.mark.parametrize(
    "leaps",
    [{20: 20 * 60 * 10**9}, {10: -(10**9), 20: 20 * HOUR_NS, 30: -HOUR_NS}],
    ids=["a step of twenty minutes", "jumps"],
)
def test_a_run_goes_on(tmp_path: Path, leaps: dict[int, int]) -> None:
    script = TRAIN.replace("import probe; probe.install()", "import probe")
    script += HELD.replace("{LEAPS}", repr(leaps))
    script += """
    probe.install()
    def leap(step):
        leapt[0] += leaps.get(step, 0)
    print(train(before_backward=leap), flush=True)
    sys.stdin.readline()
    """
    with started(script, tmp_path) as run:
        assert run.line() == bare()
        until(lambda: word_of(run.pid, page.WORD_STEPS) >= 59)
        with subscribed(hello_of(run.pid).endpoint or "") as next_reply:
            seen: dict[int, Step] = {}
            while not seen or max(seen) < 59:
                reported = next_reply()
                seen |= {step.number: step for step in getattr(reported, "steps", [])}
        if len(leaps) == 1:
            assert seen[21].forward_ns >= leaps[20], "the leap was in its forward"
        assert hello_of(run.pid).fault is None
        run.send()
        assert run.finish() == (0, "", "")
