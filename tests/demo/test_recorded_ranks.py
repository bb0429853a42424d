"""Jobs of several ranks as they were recorded, judged again: the right rank is named, and why.

`gloo`, `gloo4`: two and four ranks on two cores that others used as well. `h200_first`,
`h200_second`, `h200_third`: two H200s with NCCL, before and after what the first run taught (of the
first, those whose recordings hold all that is needed), and with seven jobs more.
`h200_crowded`: the same two while a process of others computed on each all along; what both
monitors read of those was put together afterwards, as each reads it by itself now.
`h200_fourth`: two H200s that nobody else used, 14 jobs; the counters of both GPUs, of which each
monitor had its own alone, were put together afterwards in the same way. `h200_fifth`: the same two
again, 12 of these jobs, 9 s each; each monitor read the counters of both. `ranks_in_step`, beside
these: two H200s whose hosts copy a pageable batch in each step, rank 1 25 ms late by its Python.
Made by `demo/record_ranks.py`, a recording of each rank's monitor; what is judged wrong is in
MISSED, with the reason.
"""

from functools import cache
from pathlib import Path
from statistics import median
from typing import Any, Final

import pytest
from ranks.train import CHECKPOINT_EVERY
from ranks.truth import ACCUSES, SCENARIOS, Expected, RankVerdict, is_right, verdict_of

from gpuwatch.tui.cli.replay import last_snapshot
from gpuwatch.tui.recording.reader import Recording

RANKS: Final = Path(__file__).parents[1] / "recordings" / "ranks"
RUNS: Final = sorted(path.relative_to(RANKS).as_posix() for path in RANKS.glob("*/*.gpuwatch"))
CLEAN: Final = ("h200_fourth", "h200_fifth")
CROWDED: Final = "h200_crowded"
JOBS: Final = sorted(
    {run.rpartition("/")[0] + "/" + Path(run).name.split(".")[0] for run in RUNS
     if run.startswith(CLEAN)}
)  # fmt: skip
BOUNDS_DIFFER: Final = "h200_fifth/fsdp2"
"""Up to 34 and up to 47 % in its exchange: bounds, by counters of other seconds."""
EXPECTED: Final = {one.scenario: one for one in SCENARIOS}
BUSY_CORES: Final = "others used the cores, and contention holds more of the time"
NO_LEAD: Final = "recorded before how far a host is ahead of the others was known"
MISSED: Final[dict[str, str]] = {
    "gloo/big_layers.0.gpuwatch": BUSY_CORES,
    "gloo/checkpoint.1.gpuwatch": BUSY_CORES,
    "gloo/slow_python.1.gpuwatch": BUSY_CORES,
    "gloo/uneven.0.gpuwatch": BUSY_CORES,
    "gloo/uneven.1.gpuwatch": BUSY_CORES,
    **{f"gloo4/uneven.{rank}.gpuwatch": BUSY_CORES for rank in range(4)},
    **{f"gloo4/computes_twice.{rank}.gpuwatch": BUSY_CORES for rank in (0, 2, 3)},
    "h200_third/tensor_parallel.0.gpuwatch": NO_LEAD,
    "h200_third/tensor_parallel.1.gpuwatch": NO_LEAD,
}


@cache
def judged(run: str) -> RankVerdict:
    return verdict_of(last_snapshot(Recording(RANKS / run)))


def truth_of(run: str) -> Expected:
    return EXPECTED[Path(run).name.partition(".")[0]]


def in_turn(run: str) -> Any:
    """Of a job one rank, another of each job, is watched in `make test`; all of them are in
    `make suite`, as all are here of the jobs that others disturbed."""
    if run.startswith(CROWDED):
        return run
    folder, _, name = run.rpartition("/")
    job = f"{folder}/{name.partition('.')[0]}."
    ranks = [one for one in RUNS if one.startswith(job) and one not in MISSED]
    jobs = sorted({one.partition(".")[0] for one in RUNS if one.startswith(f"{folder}/")})
    chosen = ranks[jobs.index(run.partition(".")[0]) % len(ranks)]
    return run if run == chosen else pytest.param(run, marks=pytest.mark.suite)


@pytest.mark.parametrize("run", [in_turn(run) for run in RUNS if run not in MISSED])
def test_the_job_is_judged_right_whichever_rank_is_watched(run: str) -> None:
    verdict = judged(run)
    assert is_right(truth_of(run), verdict), verdict


@pytest.mark.parametrize("run", sorted(MISSED))
def test_what_is_missed_is_still_there(run: str) -> None:
    assert run in RUNS
    assert not is_right(truth_of(run), judged(run)), "no longer missed: take it out"


@pytest.mark.parametrize("of_job", JOBS)
def test_a_job_has_one_verdict_whichever_rank_is_watched(of_job: str) -> None:
    """They had 2.22x and 1.80x for the same late rank, launch and communication for the same job,
    a verdict beside "not sure yet", and a rank late 14 % beside links that take 34 %."""
    first, second = (judged(f"{of_job}.{rank}.gpuwatch") for rank in (0, 1))
    assert (first.kind, first.sub, first.late) == (second.kind, second.sub, second.late)
    if first.kind in ACCUSES and of_job != BOUNDS_DIFFER:
        assert first.share == pytest.approx(second.share, abs=0.02)


MEASURED: Final = {
    "h200_fourth/computes_twice": 1.79, "h200_fourth/slow_loader": 3.70,
    "h200_fourth/slow_python": 3.59, "h200_fourth/shared_gpu": 2.23, "h200_fourth/checkpoint": 6.5,
    "h200_fifth/computes_twice": 1.75, "h200_fifth/slow_loader": 3.64, "h200_fifth/sleeps": 3.61,
    "h200_fifth/slow_python": 3.52, "h200_fifth/shared_gpu": 2.28, "h200_fifth/checkpoint": 7.02,
}  # fmt: skip
"""Steps with the cause over those of the balanced job, as measured: the mean of both monitors."""


@pytest.mark.parametrize("of_job", sorted(MEASURED))
@pytest.mark.parametrize("rank", [0, 1])
def test_a_forecast_without_the_late_rank_is_what_was_measured(of_job: str, rank: int) -> None:
    """It was 64 and 40x for a checkpoint, 5.5 and 6.8x for a shared GPU."""
    found = judged(f"{of_job}.{rank}.gpuwatch")
    assert found.speedup == pytest.approx(MEASURED[of_job], rel=0.15)


def test_half_of_the_forecasts_are_within_a_tenth() -> None:
    off = [
        abs((judged(f"{of_job}.{rank}.gpuwatch").speedup or 0.0) / measured - 1)
        for of_job, measured in MEASURED.items()
        for rank in (0, 1)
    ]
    assert median(off) < 0.1


def test_there_are_recordings_of_all_ranks() -> None:
    assert {Path(run).name.split(".")[1] for run in RUNS} == {"0", "1", "2", "3"}


def test_nobody_innocent_is_ever_named() -> None:
    """Also in the runs that are judged wrong: where a job has no late rank, or another one."""
    for run in MISSED:
        expected, verdict = truth_of(run), judged(run)
        if verdict.kind == "straggler":
            assert expected.either_late or verdict.late == expected.late, run


@pytest.mark.parametrize("rank", [0, 1])
def test_a_checkpoint_every_twelve_steps_has_that_rhythm(rank: int) -> None:
    """Also where the late rank is the last by a little in as many steps between."""
    snapshot = last_snapshot(Recording(RANKS / "h200_third" / f"checkpoint.{rank}.gpuwatch"))
    assert snapshot.job is not None
    assert snapshot.job.late is not None
    assert snapshot.job.late.lateness is not None
    assert snapshot.job.late.lateness.every == CHECKPOINT_EVERY
    assert f"rank 0 saves checkpoints every {CHECKPOINT_EVERY} steps" in (
        snapshot.job.finding.headline
    )


def test_naming_the_innocent_is_wrong() -> None:
    late = EXPECTED["sleeps"]
    right = RankVerdict("straggler", "other", 1, 0.8, 5.0, "", "host", 40.0, None, ())
    assert is_right(late, right)
    for wrong in (
        {"late": 0},
        {"late": None},
        {"kind": "communication"},
        {"sub": "data"},
    ):
        assert not is_right(late, RankVerdict(**{**_fields(right), **wrong}))  # type: ignore[arg-type]
    healthy = RankVerdict("compute", None, None, None, None, "", "compute", 40.0, None, ())
    assert is_right(EXPECTED["balanced"], healthy)
    assert not is_right(EXPECTED["balanced"], right)


def _fields(verdict: RankVerdict) -> dict[str, object]:
    return {name: getattr(verdict, name) for name in RankVerdict.__dataclass_fields__}


@pytest.mark.parametrize("scenario", ["balanced", "balanced_fsdp2"])
def test_others_on_both_gpus_are_the_verdict_whichever_rank_is_watched(scenario: str) -> None:
    """They were shown that rank 0 is late 14 %, or communication takes 49 and up to 50 %."""
    for rank in (0, 1):
        verdict = judged(f"h200_crowded/{scenario}.{rank}.gpuwatch")
        assert (verdict.kind, verdict.sub, verdict.late) == ("contention", "gpu", None)
        assert "of ranks 0 and 1" in verdict.headline


@pytest.mark.parametrize("run", ["copies_each_step", "in_a_subgroup"])
def test_a_host_is_late_whose_others_wait_for_their_devices(run: str) -> None:
    """Their forward, which copied a batch, was as long as its own: 10 % and nothing were said of a
    rank without which steps were 2.7 times as fast (59 a second for 20, whole runs)."""
    found = verdict_of(last_snapshot(Recording(RANKS.parent / "ranks_in_step" / f"{run}.gpuwatch")))
    assert (found.kind, found.sub, found.late) == ("straggler", "launch", 1)
    assert found.speedup is not None
    assert 2.2 < found.speedup < 3.2
