"""A rank that is late, why, and ranks that take turns."""

from typing import Any

import pytest

from gpuwatch.tui.verdict.engine import Engine
from gpuwatch.tui.verdict.findings import Finding
from gpuwatch.tui.verdict.job.late import LateBy, late_rank
from gpuwatch.tui.verdict.rules.straggler import (
    beside_the_job,
    imbalance,
    job_finding,
    late_finding,
    straggler,
)
from gpuwatch.tui.verdict.scoring import cause, state
from gpuwatch.tui.verdict.statistics import without_rows
from gpuwatch.tui.verdict.window import StepWindow
from tests.unit.verdict.jobs import STEP_MS, ddp, exchange, job, late_each_step, rank
from tests.unit.verdict.on_gpu import activity, gpu_window
from tests.unit.verdict.windows import even

STEPS = even(60, data_ms=0.3, forward_ms=2, backward_ms=3, optimizer_ms=1, other_ms=31)
ON_GPU = {"data_ms": 0.3, "forward_ms": 2, "backward_ms": 34, "optimizer_ms": 1, "lag_ms": 90}
SPINNING = activity(99.0, sm=18, tensor=3, fp32=0, dram=0)


def seen(**fields: Any) -> StepWindow:
    return gpu_window(STEPS, ON_GPU, activity=SPINNING, world_size=2, **fields)


SLOW: list[tuple[dict[str, Any], LateBy]] = [
    ({"data": 29.0, "busy": 20.0}, "data"),
    ({"other": 29.0, "busy": 20.0}, "other"),
    ({"checkpoint": 29.0, "busy": 20.0}, "checkpoint"),
    ({"evaluation": 29.0, "busy": 99.0}, "evaluation"),
    ({"other": 29.0, "busy": 99.0}, "compute"),
    ({"data": 29.0, "busy": 99.0}, "compute"),
    ({"forward": 29.0, "busy": 40.0}, "launch"),
    ({"forward": 29.0, "busy": 80.0}, "launch"),
    ({"forward": 29.0, "busy": 80.0, "active": 80.0}, "compute"),
    ({"forward": 29.0}, "compute"),
    ({"forward": 29.0, "busy": 99.0, "sharers": 1}, "shared"),
    ({"data": 29.0, "busy": 20.0, "sharers": 1}, "data"),
]


@pytest.mark.parametrize(("slow", "by"), SLOW)
def test_the_late_ranks_own_phases_and_its_gpu_show_why(slow: dict[str, Any], by: LateBy) -> None:
    late = late_rank(job(rank(0, busy=99.0), rank(1, **slow), exchange=late_each_step(1, 29)))
    assert late is not None
    assert (late.rank.rank, late.by) == (1, by)


def test_a_pause_between_two_readings_is_known_by_its_ranks_marks() -> None:
    """Two H200s, rank 0 saves every 12 steps: the first reading held one save, and for five seconds
    the other rank was called underfilled."""
    saves = rank(0, busy=16.0, checkpoint=20.0)
    run = job(saves, rank(1, busy=99.0, target=True), exchange=exchange(*[(0, 0.0)] * 30))
    late = late_rank(run)
    assert late is not None
    assert (late.rank.rank, late.by, late.from_collectives) == (0, "checkpoint", False)
    loads = rank(0, busy=16.0, data=20.0)
    even_now = job(loads, rank(1, busy=99.0), exchange=exchange(*[(0, 0.0)] * 30))
    assert late_rank(even_now) is None, "what happens in every step is in the readings"


def test_a_gpu_that_others_use_too_is_named() -> None:
    slow = rank(1, forward=29.0, busy=99.0, sharers=2)
    run = job(rank(0, sharers=0), slow, exchange=late_each_step(1, 29))
    found = straggler(seen(job=run))
    assert found is not None
    assert found.sub == "shared"
    assert found.evidence[-1].text == "2 other processes are on its GPU, and none on the others'"
    everywhere = job(rank(0, sharers=1), slow, exchange=late_each_step(1, 29))
    alike = late_rank(everywhere)
    assert alike is not None
    assert alike.by == "compute"


def test_where_both_hosts_are_slow_the_late_one_costs_no_more_than_it_is_slower() -> None:
    """Tensor parallel on two H200s: rank 0's GPU waits 36 % of the step for rank 1's host, whose
    work is 8 % longer than its own."""
    both = rank(0, busy=95.0, other=3.5), rank(1, busy=78.0)
    near = exchange(*[(1, 13.0)] * 60, ahead_ms=(5.0, 0.0))
    late = late_rank(job(*both, exchange=near))
    assert late is not None
    assert late.by == "launch"
    assert late.share.mean == pytest.approx(3.5 / 37, abs=0.001)
    far = exchange(*[(1, 13.0)] * 60, ahead_ms=(300.0, 0.0))
    ahead = late_rank(job(*both, exchange=far))
    assert ahead is not None
    assert ahead.share.mean == pytest.approx(13.0 / 37, abs=0.001)


def test_what_the_others_compute_while_they_wait_is_not_known_without_ddps_times() -> None:
    slow = rank(1, data=29.0, busy=20.0)
    run = job(rank(0), slow, exchange=late_each_step(1, 29))
    late = late_rank(run)
    assert late is not None
    found = straggler(seen(job=run))
    assert found is not None
    assert (late.at_most, found.speedup_is) == (True, "bound")
    times = {0: ddp(32.0, 3.0), 1: ddp(6.0, 5.0)}
    known = job(rank(0), slow, exchange=exchange(*[(1, 29.0)] * 60, ddp=(times, times)))
    found = straggler(seen(job=known))
    assert found is not None
    assert found.speedup_is == "estimate"


def test_a_late_rank_is_the_verdict_of_those_that_wait() -> None:
    run = job(rank(0), rank(1, data=29.0, busy=20.0), exchange=late_each_step(1, 29, step_ms=37))
    verdict = Engine().judge(seen(job=run))
    found = verdict.finding
    assert (found.kind, found.sub) == ("straggler", "data")
    assert found.share == pytest.approx(29 / 37, abs=0.01)
    assert found.headline == (
        "rank 1 waits for its loader: the other waits for it 78% of each step"
    )
    assert "29 ms of 37 ms per step" in found.evidence[0].text
    assert "the last in 100% of steps" in found.evidence[0].text
    assert found.evidence[1].text == "rank 1 is waiting for data 29 ms per step, the others 0.0 ms"
    assert "attach 701" in found.advice[0]


def test_the_late_rank_itself_keeps_its_own_cause_and_the_job_names_it() -> None:
    run = job(rank(0), rank(1, data=29.0, busy=20.0, target=True), exchange=late_each_step(1, 29))
    own = state("input", "workers", "critical", "waits for data")
    assert straggler(seen(job=run)) is None
    assert job_finding(run, late_rank(run), own).kind == "straggler"
    balanced = job(rank(0), rank(1, target=True), exchange=late_each_step(1, 0))
    assert job_finding(balanced, late_rank(balanced), own) is own


def test_a_late_rank_at_the_limit_is_no_new_verdict_at_each_look() -> None:
    """It leaves at a smaller share than it enters with: 74 changes in 600 looks."""
    own = state("healthy", None, "info", "")

    def of_job(by_ms: float, before: Finding | None) -> Finding:
        run = job(rank(0), rank(1, target=True), exchange=late_each_step(1, by_ms))
        return job_finding(run, late_rank(run), own, before=before)

    late = of_job(0.12 * STEP_MS, None)
    assert late.kind == "straggler"
    assert of_job(0.085 * STEP_MS, own) is own
    assert of_job(0.085 * STEP_MS, late).kind == "straggler"
    assert of_job(0.06 * STEP_MS, late) is own


def test_what_it_costs_the_others_stands_beside_the_late_ranks_own_cause() -> None:
    run = job(rank(0), rank(1, data=29.0, busy=20.0, target=True), exchange=late_each_step(1, 29))
    verdict = Engine().judge(seen(job=run))
    of_job = job_finding(run, late_rank(run), verdict.finding)
    shown = beside_the_job(verdict, of_job)
    assert shown.finding == verdict.finding
    assert shown.contributors[-1] == of_job
    assert beside_the_job(shown, of_job) == shown, "once"
    assert beside_the_job(verdict, verdict.finding) == verdict


def test_a_wait_that_the_own_backward_hides_costs_nothing() -> None:
    """Two H200s, rank 1 computes twice as much: rank 0 waits 10.4 ms of 17.9 in all buckets, of
    which it computes 2.8 itself. The step without it took 9.9 ms."""
    samples = ({0: ddp(12.9, 4.97), 1: ddp(8.66, 8.31)},)
    took = exchange(*[(1, 10.4)] * 60, step_ms=17.9, ddp=samples)
    late = late_rank(job(rank(0), rank(1, forward=29.0), exchange=took))
    assert late is not None
    assert late.share.mean == pytest.approx(7.58 / 17.9, abs=0.01)
    assert late.share.high == pytest.approx(10.4 / 17.9, abs=0.01)
    assert 1 / (1 - late.share.mean) == pytest.approx(17.9 / 9.9, rel=0.1)


def test_hosts_phases_blame_nobody_on_gpus() -> None:
    """With NCCL the victim's host waits wherever it reads a loss."""
    run = job(rank(0, other=29.0), rank(1, other=0.3), exchange=None)
    assert straggler(seen(job=run)) is None
    loading = job(rank(0, data=29.0, busy=20.0), rank(1, busy=99.0), exchange=None)
    assert straggler(seen(job=loading)) is not None
    both_idle = job(rank(0, data=29.0, busy=20.0), rank(1, busy=60.0), exchange=None)
    assert straggler(seen(job=both_idle)) is None
    cpu = job(rank(0, other=29.0), rank(1, target=True), exchange=None, on_gpu=False)
    late = late_rank(cpu)
    assert late is not None
    assert (late.rank.rank, late.by, late.from_collectives) == (0, "other", False)


def test_a_rank_that_waits_behind_its_backward_is_not_late() -> None:
    """The tutorial's `average_gradients`, on CPUs whose collectives are not read: rank 0 computes
    twice as long, and rank 1 waits for it in Python between the phases, or in ZeRO's update."""
    slow = rank(0, forward=12.0, other=0.3)
    for waiting in (rank(1, forward=6.0, other=18.0), rank(1, forward=6.0, optimizer=18.0)):
        late = late_rank(job(slow, waiting, exchange=None, on_gpu=False))
        assert late is not None
        assert (late.rank.rank, late.by) == (0, "compute")
    logs = rank(1, forward=11.8, other=18.0)
    late = late_rank(job(slow, logs, exchange=None, on_gpu=False))
    assert late is not None
    assert (late.rank.rank, late.by) == (1, "other")


def test_one_checkpoint_in_twelve_steps_is_enough_with_its_mark() -> None:
    waits = [(0, 400.0 if step % 12 == 0 else 0.0) for step in range(48)]
    shown = job(rank(0, checkpoint=33.0), rank(1), exchange=exchange(*waits, step_ms=62))
    late = late_rank(shown)
    assert late is not None
    assert (late.rank.rank, late.by) == (0, "checkpoint")
    hidden = job(rank(0, other=33.0), rank(1), exchange=exchange(*waits, step_ms=62))
    assert late_rank(hidden) is None, "four of four may be chance"


def test_jitter_makes_nobody_late() -> None:
    run = job(rank(0), rank(1), exchange=late_each_step(1, 1.0))
    assert late_rank(run) is None
    assert imbalance(seen(job=run)) is None


def test_ranks_that_take_turns_are_uneven_and_none_is_late() -> None:
    waits = [(step % 2, 8.0) for step in range(60)]
    run = job(rank(0), rank(1), exchange=exchange(*waits))
    window = seen(job=run)
    assert straggler(window) is None
    found = imbalance(window)
    assert found is not None
    assert found.share == pytest.approx(4 / 37, abs=0.01), "even work saves half of the gap"
    assert found.speedup_is == "bound"
    assert Engine().judge(window).finding.kind == "imbalance"


def test_of_eight_ranks_the_next_latest_limits_what_is_lost() -> None:
    """Ranks 3 and 5 are late alike: without one of them the others wait for the other."""
    ranks = [rank(number) for number in range(8)]
    both = exchange(*[(3, 0.5)] * 40, ranks=8, waits=20.0)
    assert late_rank(job(*ranks, exchange=both)) is None
    one = exchange(*[(3, 20.0)] * 40, ranks=8, waits=20.0)
    late = late_rank(job(*ranks, exchange=one))
    assert late is not None
    assert late.rank.rank == 3
    found = job_finding(job(*ranks, exchange=one), late, state("healthy", None, "info", ""))
    assert found.kind == "healthy", "the target waits: its own verdict is the job's"


@pytest.mark.parametrize(("busy", "kind"), [(83.0, "launch"), (88.0, "communication")])
def test_of_launches_and_communication_a_job_has_what_is_larger_on_all_ranks(
    busy: float, kind: str
) -> None:
    """Tensor parallel on two H200s: one monitor had launch 17 %, the other communication 15 %."""
    ranks = rank(0, busy=82.0, target=True), rank(1, busy=busy)
    run = job(*ranks, exchange=exchange(*[(1, 0.1)] * 60))
    both = [
        cause("communication", "bandwidth", without_rows(0.15), "links", (), ()),
        cause("launch", None, without_rows(0.17), "launches", (), ()),
    ]
    for own, other in (both, both[::-1]):
        assert job_finding(run, None, own, (other,)).kind == kind
        assert job_finding(run, None, own) is own, "the other is not seen here"
    elsewhere = state("healthy", None, "info", "")
    assert job_finding(run, None, elsewhere, both) is elsewhere


CROWDED: dict[str, Any] = {"busy": 100.0, "sharers": 1, "others_sm": 50.0}
"""Another process computes on its GPU for half of the time."""


@pytest.mark.parametrize(("late_ms", "named"), [(5.0, False), (18.0, False), (29.0, True)])
def test_a_rank_is_late_by_what_others_on_its_gpu_do_not_explain(
    late_ms: float, named: bool
) -> None:
    """All ranks' GPUs are shared: half of a step may be the others'."""
    run = job(rank(0, **CROWDED), rank(1, **CROWDED), exchange=late_each_step(1, late_ms))
    late = late_rank(run)
    assert (late is not None) is named
    if late is not None:
        assert (late.rank.rank, late.by) == (1, "compute")
        assert late.share.mean == pytest.approx(29 / 37 - 0.5, abs=0.01)
        assert late.at_least
        assert "more may be hidden behind others" in late_finding(run, late).evidence[0].text


@pytest.mark.parametrize("phase", ["data", "checkpoint", "evaluation"])
def test_what_a_rank_does_without_its_gpu_is_its_own_on_a_shared_one_too(phase: LateBy) -> None:
    slow = rank(1, **{**CROWDED, phase: 17.0})
    late = late_rank(job(rank(0, **CROWDED), slow, exchange=late_each_step(1, 18.0)))
    assert late is not None
    assert (late.rank.rank, late.by) == (1, phase)
    assert late.share.mean == pytest.approx(17 / 37, abs=0.01)


def test_idle_processes_on_the_gpus_excuse_nobody() -> None:
    idle: dict[str, Any] = {"busy": 100.0, "sharers": 1, "others_sm": 0.0}
    late = late_rank(job(rank(0, **idle), rank(1, **idle), exchange=late_each_step(1, 5.0)))
    assert late is not None
    assert (late.by, late.at_least) == ("compute", False)
    alone = late_rank(job(rank(0, **idle), rank(1, **CROWDED), exchange=late_each_step(1, 5.0)))
    assert alone is not None
    assert alone.by == "shared", "the other's neighbour does nothing"


def test_imbalance_is_what_others_on_the_gpus_do_not_explain() -> None:
    waits = [(step % 2, 8.0) for step in range(60)]
    ranks = rank(0, target=True, **CROWDED), rank(1, **CROWDED)
    assert imbalance(seen(job=job(*ranks, exchange=exchange(*waits)))) is None


def test_links_that_take_more_than_a_late_rank_are_the_verdict_of_its_monitor_too() -> None:
    """FSDP2 on two H200s: one monitor had rank 1 late 14 %, the other communication 34 %."""
    run = job(rank(0), rank(1, forward=9.0, target=True), exchange=exchange(*[(1, 5.0)] * 60))
    late = late_rank(run)
    assert late is not None
    more, less = (
        cause("communication", "bandwidth", without_rows(part), "links", (), ())
        for part in (late.share.mean + 0.05, late.share.mean - 0.05)
    )
    assert job_finding(run, late, more) is more
    assert job_finding(run, late, less).kind == "straggler"
