"""Others hold the GPU, or the cores: what that costs, and when it costs nothing."""

from typing import Any

import pytest

from gpuwatch.tui.settings import Settings
from gpuwatch.tui.verdict.cpu_wait import starved
from gpuwatch.tui.verdict.engine import Engine
from gpuwatch.tui.verdict.findings import Finding
from gpuwatch.tui.verdict.gpu_activity import GpuActivity, Neighbour
from gpuwatch.tui.verdict.job.facts import Job
from gpuwatch.tui.verdict.job.late import late_rank
from gpuwatch.tui.verdict.rules.contention import contention
from gpuwatch.tui.verdict.rules.straggler import job_finding
from gpuwatch.tui.verdict.scoring import evidence_factor, missing_of, state
from gpuwatch.tui.verdict.stack_samples import FrameShare, Stacks
from gpuwatch.tui.verdict.window import StepWindow
from tests.unit.verdict.jobs import exchange, job, rank
from tests.unit.verdict.on_gpu import activity, gpu_window
from tests.unit.verdict.windows import even, stacks, window

CPU = Settings(threads=2, parameter_device="cpu")
PYTHON: dict[str, Any] = {"forward_ms": 36, "backward_ms": 87, "optimizer_ms": 160}
ADAM = FrameShare(0.9, "_single_tensor_adam (torch/optim/adam.py:544)", "train (t.py:83)")
AUGMENTS = FrameShare(0.8, "corrupt (t.py:20)", None, samples=100)
LOCKED: dict[str, Any] = {
    "settings": CPU, "thread_cpu": 0.04, "run_delay": 0.05, "main_cpu_percent": 106.0,
    "others_cores": 0.02, "beside_cores": 1.02,
}  # fmt: skip
"""A thread that augments batches in Python for as long as it can (measured)."""


def locked(waits: float = 0.0, **fields: Any) -> Finding | None:
    seen = Stacks(100, (ADAM,), 0, (), None, threads=(AUGMENTS,), main_waits=waits)
    return contention(window(even(60, **PYTHON), **{**LOCKED, "stacks": seen, **fields}))


def test_a_thread_that_computes_in_python_holds_the_lock() -> None:
    found = locked()
    assert found is not None
    assert (found.kind, found.sub) == ("contention", "lock")
    assert found.share == pytest.approx(0.8)
    assert "corrupt (t.py:20)" in found.advice[0]
    assert found.evidence[1].text == "in 80 of 100 samples another thread is in corrupt (t.py:20)"
    assert found.forecast is not None
    assert found.forecast.kind == "at-least"


def test_a_thread_that_the_training_waits_for_holds_no_lock() -> None:
    """A producer that is too slow: the training sleeps in its queue."""
    assert locked(waits=0.9) is None


def test_a_thread_that_uses_no_core_holds_no_lock() -> None:
    assert locked(main_cpu_percent=8.0) is None


def test_a_thread_that_runs_while_the_training_does_holds_no_lock() -> None:
    assert locked(thread_cpu=0.97, run_delay=0.02, main_cpu_percent=195.0) is None


def oversubscribed(threads: int, **fields: Any) -> Finding | None:
    """Four threads on two cores (measured)."""
    given: dict[str, Any] = {
        "settings": Settings(threads=threads, parameter_device="cpu"), "thread_cpu": 0.43,
        "run_delay": 0.22, "others_cores": 0.04, "beside_cores": 0.85, "main_cpu_percent": 128.0,
        **fields,
    }  # fmt: skip
    rows = even(100, data_ms=0.5, forward_ms=17, backward_ms=30, optimizer_ms=4)
    return contention(window(rows, **given))


def test_more_threads_than_cores_wait_for_each_other() -> None:
    found = oversubscribed(4)
    assert found is not None
    assert (found.kind, found.sub) == ("contention", "threads")
    assert found.share == pytest.approx(0.55, abs=0.01)
    assert "torch.set_num_threads(2)" in found.advice[0]
    assert found.headline.startswith("4 threads of PyTorch's on 2 cores")


def test_as_many_threads_as_cores_are_no_cause() -> None:
    assert oversubscribed(2) is None


SCORED = FrameShare(
    0.12, "get_roc_score (gae/utils.py:171)", None, "adj_rec = np.dot(emb, emb.T)", "other"
)
NUMPY: dict[str, Any] = {
    "settings": CPU, "thread_cpu": 0.88, "run_delay": 0.119, "main_cpu_percent": 192.0,
    "others_cores": 0.04, "beside_cores": 1.05, "loaders": (),
    "stacks": Stacks(129, (SCORED, ADAM), 0, (), None),
}  # fmt: skip
"""A graph's auto-encoder on two cores, which NumPy scores in each step."""


def test_threads_of_numpy_spin_on_the_cores_of_pytorchs() -> None:
    """1.27x was measured with one thread of OpenBLAS's."""
    found = contention(window(even(60, **PYTHON), **NUMPY))
    assert found is not None
    assert (found.kind, found.sub) == ("contention", "numpy")
    assert found.advice[0].startswith("OPENBLAS_NUM_THREADS=1")
    assert "get_roc_score (gae/utils.py:171)" in found.advice[0]
    assert found.forecast is not None
    assert found.forecast.speedup == pytest.approx(1.27, abs=0.02)
    assert found.forecast.high is None


@pytest.mark.parametrize(
    "fields",
    [
        {"run_delay": 0.03},
        {"main_cpu_percent": 110.0},
        {"others_cores": 1.0, "beside_cores": 0.1, "main_cpu_percent": 98.0},
        {"stacks": Stacks(129, (ADAM,), 0, (), None)},
        {"gpu_unused": True},
    ],
    ids=["hardly waits", "a process of its own", "others", "no product", "a GPU for the net"],
)
def test_what_else_has_the_cores_is_no_thread_of_numpys(fields: dict[str, Any]) -> None:
    found = contention(window(even(60, **PYTHON), **{**NUMPY, **fields}))
    assert found is None or found.sub != "numpy"


def test_threads_that_hardly_wait_for_a_core_are_no_cause() -> None:
    assert oversubscribed(4, thread_cpu=0.97, run_delay=0.02) is None


def asleep(*others: FrameShare, main: tuple[FrameShare, ...] = (), **fields: Any) -> Finding | None:
    """MADDPG with six threads on two cores (measured): its training thread finds a core."""
    seen = Stacks(100, main, 0, (), None, threads=others)
    given = {"thread_cpu": 0.76, "run_delay": 0.026, "main_cpu_percent": 105.0, **fields}
    return oversubscribed(6, others_cores=0.08, beside_cores=0.29, stacks=seen, **given)


def test_a_thread_that_sleeps_for_its_other_threads_waits_for_a_core_of_theirs() -> None:
    """1.4 to 1.6x by one thread was measured, and the environment's Python named."""
    found = asleep()
    assert found is not None
    assert (found.kind, found.sub) == ("contention", "threads")
    assert found.speedup == pytest.approx(1.3, abs=0.05)


def test_a_sleep_in_which_no_thread_runs_is_for_something_else() -> None:
    assert asleep(main_cpu_percent=78.0) is None
    found = asleep(AUGMENTS)
    assert found is None or found.sub == "lock"


READS = FrameShare(
    *(0.4, "Dataset.__getitem__ (h5py/_hl/dataset.py:758)", "train (t.py:9)"),
    phase="other",
    samples=100,
)


def test_a_sleep_in_lines_of_another_library_may_not_be_for_threads() -> None:
    """A reader of HDF5 in the loop, while threads of PyTorch's had run before."""
    apart = asleep()
    reading = asleep(main=(READS,))
    assert apart is not None
    assert reading is not None
    assert (reading.share_low or 0.0) < 0.05
    assert (reading.share or 0.0) < 0.7 * (apart.share or 0.0)
    assert "of it, 12% for them" in reading.evidence[0].text


def test_a_sleep_beside_other_ranks_is_not_for_threads() -> None:
    """A late rank of gloo."""
    assert asleep(world_size=2) is None


STEPS = even(60, data_ms=0.2, forward_ms=4, backward_ms=6, optimizer_ms=1, other_ms=60)

BEHIND = {"data_ms": 0.2, "forward_ms": 24, "backward_ms": 44, "optimizer_ms": 3, "lag_ms": 90}

SERVER = Neighbour(4711, "serve", 20 * 1024**3, 40.0)

FORWARD = stacks([(0.9, "forward (model.py:12)", None)])


def crowded(sm: float | None = 40.0, busy: float | None = 99.0) -> GpuActivity:
    """Another process on the GPU."""
    return activity(busy, others=1, others_sm=sm, neighbours=(SERVER,))


def shared(reported: GpuActivity | None, /, **on_gpu: Any) -> StepWindow:
    return gpu_window(STEPS, {**BEHIND, **on_gpu}, activity=reported, stacks=FORWARD)


def test_who_holds_the_gpu_and_what_that_costs() -> None:
    """In turns with one that takes 40 %, the step is up to 1 / 0.6 as long."""
    found = contention(shared(crowded()))
    assert found is not None
    assert (found.kind, found.sub) == ("contention", "gpu")
    assert found.share == pytest.approx(0.40, abs=0.005)
    assert found.speedup == pytest.approx(1 / 0.6, rel=0.01)
    assert found.speedup_is == "bound"
    assert found.evidence[0].text == (
        "serve (pid 4711) uses 40% of the GPU's time, 20 GiB of its memory"
    )
    assert "serve (pid 4711)" in found.advice[0]
    assert Engine().judge(shared(crowded())).finding.kind == "contention"


def test_time_in_which_it_waits_for_data_is_not_lost_to_others() -> None:
    found = contention(shared(crowded(), data_ms=71, wait_ms=71))
    assert found is not None
    assert found.share == pytest.approx(0.20, abs=0.01)


@pytest.mark.parametrize(
    "seen",
    [
        shared(crowded(sm=3.0)),
        shared(crowded(sm=None)),
        shared(activity(99.0, others_sm=0.0)),
        shared(None),
        shared(crowded(), lag_ms=0.01),
        window(STEPS, gpu_present=True, activity=crowded()),
    ],
    ids=["idle", "not known", "alone", "no counters", "keeps up with the host", "no GPU clock"],
)
def test_no_contention_is_claimed(seen: StepWindow) -> None:
    assert contention(seen) is None


def test_others_of_whom_nobody_reports_cost_confidence_and_are_named() -> None:
    unknown, alone = shared(crowded(sm=None)), shared(activity(99.0, others_sm=0.0))
    assert evidence_factor(unknown) < evidence_factor(alone)
    assert any("other processes" in one.why for one in missing_of(unknown))
    assert not any("other processes" in one.why for one in missing_of(alone))


WORK = even(60, data_ms=0.2, forward_ms=40, backward_ms=50, optimizer_ms=2)


def crowd(**fields: Any) -> StepWindow:
    """A training of one thread, and others that use 1.5 of the two cores."""
    given = {"run_delay": 0.4, "others_cores": 1.5, "beside_cores": 0.0, **fields}
    return window(WORK, machine_cpu_percent=100.0, **given)


def test_the_wait_for_a_core_that_others_have() -> None:
    found = contention(crowd())
    assert found is not None
    assert (found.kind, found.sub) == ("contention", "cores")
    assert found.share == pytest.approx(0.4)
    assert found.speedup == pytest.approx(1 / 0.6)
    assert found.speedup_is == "estimate"
    assert "other processes used 1.5 of 2 cores meanwhile" in [one.text for one in found.evidence]
    assert "move other processes" in found.advice[0]
    assert Engine().judge(crowd()).finding.kind == "contention"


@pytest.mark.parametrize(("threads", "advised"), [(2, True), (1, False), (None, False)])
def test_more_threads_than_free_cores_are_worse_than_fewer(
    threads: int | None, advised: bool
) -> None:
    found = contention(crowd(settings=Settings(threads=threads)))
    assert found is not None
    assert any("torch.set_num_threads(1)" in advice for advice in found.advice) == advised


def test_what_the_runs_own_workers_cause_is_not_the_others() -> None:
    mine = crowd(others_cores=0.1, beside_cores=1.8)
    assert contention(mine) is None
    both = contention(crowd(others_cores=1.0, beside_cores=1.0))
    assert both is not None
    assert both.share == pytest.approx(0.2), "they ran as long as the others"


@pytest.mark.parametrize(
    "fields",
    [
        {"run_delay": 0.03},
        {"run_delay": None},
        {"others_cores": None},
        {"beside_cores": None},
        {"cpu_throttled": 0.4},
    ],
    ids=["hardly waits", "wait not known", "others not known", "own not known", "its own quota"],
)
def test_no_contention_for_cores_is_claimed(fields: dict[str, Any]) -> None:
    assert contention(crowd(**fields)) is None


def test_a_full_machine_without_run_delay_is_reported() -> None:
    assert any(one.signal == "run delay" for one in missing_of(crowd(run_delay=None)))
    assert not any(one.signal == "run delay" for one in missing_of(crowd()))


def test_others_cannot_hold_a_core_for_longer_than_they_run() -> None:
    """A thread of its own takes the one core; the monitor beside it uses a twentieth."""
    fields: dict[str, Any] = {"run_delay": 0.3, "others_cores": 0.05, "beside_cores": 0.0}
    lack = starved(window(even(60, forward_ms=50, backward_ms=50), cores=1.0, **fields))
    assert lack is not None
    assert lack.by_others == pytest.approx(0.05)


def on_crowded_gpus(target: int, *others_sm: float, late_ms: float = 5.0) -> Job:
    """Rank 0 is late by so much of 37 ms, and others use these parts of the ranks' GPUs."""
    ranks = [
        rank(number, number == target, 100.0, sharers=1 if sm else 0, others_sm=sm)
        for number, sm in enumerate(others_sm)
    ]
    return job(*ranks, exchange=exchange(*[(0, late_ms)] * 60))


def watched(run: Job) -> StepWindow:
    return gpu_window(STEPS, BEHIND, activity=crowded(), stacks=FORWARD, world_size=2, job=run)


def test_others_on_several_ranks_gpus_are_one_verdict_whichever_rank_is_watched() -> None:
    """A balanced job of two ranks on H200s: rank 0 was late 14 % while others used 68 and 50 % of
    the GPUs. Alone a step takes as long as the longer of 0.32 of rank 0's time and half of the 86 %
    that rank 1 does not wait."""
    found = []
    for target in (0, 1):
        run = on_crowded_gpus(target, 68.0, 50.0)
        assert late_rank(run) is None
        found.append(job_finding(run, None, state("healthy", None, "info", "")))
        assert contention(watched(run)) == found[-1]
    assert found[0] == found[1]
    assert (found[0].kind, found[0].sub) == ("contention", "gpu")
    assert found[0].share == pytest.approx(1 - 0.5 * 32 / 37, abs=0.005)
    assert found[0].speedup_is == "bound"
    assert "of ranks 0 and 1, up to 68% of" in found[0].headline
    assert found[0].evidence[0].text == "rank 0: another process uses 68% of its GPU's time"


def test_what_stalls_is_reported_before_others_on_the_gpus() -> None:
    stalled = state("stalled", None, "critical", "")
    assert job_finding(on_crowded_gpus(0, 68.0, 50.0), None, stalled) is stalled


@pytest.mark.parametrize("others_sm", [(0.0, 3.0), (0.0, 0.0), (60.0, 0.0)])
def test_others_that_hold_fewer_than_two_ranks_gpus_are_no_verdict_of_the_job(
    others_sm: tuple[float, float],
) -> None:
    """On one alone they make that rank late, which is the job's verdict then."""
    healthy = state("healthy", None, "info", "")
    assert job_finding(on_crowded_gpus(1, *others_sm), None, healthy) is healthy


def test_a_host_that_waits_for_data_loses_nothing_to_others_on_its_gpu() -> None:
    """30 of 37 ms in the loader of rank 0, for which rank 1 waits: others cost half of the rest."""
    slow = rank(0, busy=100.0, sharers=1, others_sm=50.0, data=30.0)
    run = job(slow, rank(1, True, 100.0, 1, 70.0), exchange=exchange(*[(0, 20.0)] * 60))
    found = contention(watched(run))
    assert found is not None
    assert found.share == pytest.approx(0.5 * 7 / 37, abs=0.005)
    late = late_rank(run)
    assert late is not None
    assert (late.rank.rank, late.by) == (0, "data")
    assert job_finding(run, late, found).kind == "straggler"
