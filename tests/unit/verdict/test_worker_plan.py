"""How many workers pay: the answer of trying every number, for the work of a few."""

from math import ceil
from statistics import fmean

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gpuwatch.tui.verdict.engine import Engine
from gpuwatch.tui.verdict.loader import FOLLOWED, PREFETCH, Feeding, feeding
from gpuwatch.tui.verdict.thresholds.causes import MOST_WORKERS, NEAR_BEST, WORKER_HEADROOM
from gpuwatch.tui.verdict.window import StepWindow
from tests.unit.verdict.windows import MS, loader, run, window

COSTS = st.one_of(st.sampled_from([0.0, 1.0, 40.0]), st.floats(0.1, 50))


@st.composite
def feedings(draw: st.DrawFn) -> Feeding:
    """Batches made by the training thread, in a rhythm, with a slow one anywhere."""
    made = draw(st.lists(COSTS, min_size=1, max_size=16)) * draw(st.integers(1, 12))
    made[draw(st.integers(0, len(made) - 1))] += draw(st.sampled_from([0.0, 100.0]))
    wait, other = fmean(made), draw(st.floats(0.05, 20))
    return Feeding(
        workers=0,
        batch_ns=(wait + other) * MS,
        wait_ns=wait * MS,
        busy=None,
        make_ns=wait * MS,
        make_cpu_ns=wait * draw(st.floats(0, 1)) * MS,
        main_cpu_ns=other * MS,
        cores=draw(st.sampled_from([None, 1.0, 2.0, 16.0, 64.0])),
        on_cpu=draw(st.booleans()),
        made_ns=tuple(one * MS for one in made),
    )


def followed(fed: Feeding, workers: int) -> float:
    """Time of a batch, ns, batch by batch."""
    ready, taken = [0.0] * workers, [0.0] * len(fed.made_ns)
    ahead, now = PREFETCH * workers, 0.0
    for at, made_ns in enumerate(fed.made_ns):
        asked = taken[at - ahead] if at >= ahead else 0.0
        ready[at % workers] = max(asked, ready[at % workers]) + made_ns
        taken[at] = max(now, ready[at % workers])
        now = taken[at] + fed.other_ns + fed.receiving_ns
    return (now - taken[0]) / len(fed.made_ns)


@given(feedings(), st.sampled_from([1, 2, 4]))
def test_the_plan_is_that_of_trying_every_number(fed: Feeding, per_core: int) -> None:
    plan = fed.plan(per_core)
    if plan is None:
        assert not fed.make_ns
        return
    most = min(MOST_WORKERS, ceil(WORKER_HEADROOM * (fed.make_ns or 0.0) / fed.other_ns))
    if fed.cores is not None:
        most = min(most, int(fed.cores) * per_core)
    times = {
        workers: max(fed.at_best(workers), followed(fed, workers)) for workers in range(1, most + 1)
    }
    best_ns = min(times.values())
    fewest = min(one for one, ns in times.items() if ns <= best_ns * (1 + NEAR_BEST))
    assert (plan.workers, plan.batch_ns) == (fewest, times[fewest])


def many_cores() -> StepWindow:
    """Small steps of eight batches, which take 97 % of the time, and 64 cores for workers."""
    parts = {"data_ms": 1.94, "forward_ms": 0.03, "backward_ms": 0.03, "data_max_ns": 242_500}
    rows = run(400, lambda _: {**parts, "fetches": 8, "backwards": 8})
    return window(
        rows,
        steps=tuple(rows),
        warmup_left=0,
        loaders=(loader(0),),
        cores=64.0,
        thread_cpu=0.9,
        run_delay=0.0,
        main_cpu_percent=100.0,
        gpu_present=True,
    )


def test_a_judgement_follows_batches_for_a_few_numbers_of_workers(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Every number up to 64 was tried on each of 20,000 batches, anew by each that asked: a second
    of CPU for a judgement, which is made each second beside the training."""
    lengths: list[int] = []
    follow = Feeding._in_turn

    def counted(fed: Feeding, workers: int) -> float:
        lengths.append(len(fed.made_ns))
        return follow(fed, workers)

    monkeypatch.setattr(Feeding, "_in_turn", counted)
    judged = Engine().judge(many_cores())
    assert (judged.finding.kind, judged.finding.sub) == ("input", "serial")
    assert 0 < sum(lengths) <= 3 * FOLLOWED


def test_the_newest_batches_are_followed() -> None:
    seen = many_cores()
    fed = feeding(seen)
    assert fed is not None
    assert len(fed.made_ns) == FOLLOWED + -FOLLOWED % 8
