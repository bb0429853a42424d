"""Waits for data by the GPU's clock: what they expose of it."""

from dataclasses import replace

import pytest
from msgspec import structs

from gpuwatch.tui.verdict.engine import Engine
from gpuwatch.tui.verdict.findings import Finding
from gpuwatch.tui.verdict.forecast.interval import forecast_of
from gpuwatch.tui.verdict.loader import feeding, loader_floor
from gpuwatch.tui.verdict.rules.input import input_bound
from gpuwatch.tui.verdict.rules.input_many_threads import oversubscribed
from gpuwatch.tui.verdict.scoring import missing_of
from gpuwatch.tui.verdict.stack_samples import Stacks
from gpuwatch.tui.verdict.window import HostUse, StepWindow, WorkerUse
from tests.unit.verdict.on_gpu import activity, gpu_step, gpu_window
from tests.unit.verdict.windows import (
    even,
    loader,
    run,
    stacks,
    waiting,
    window,
    worker_use,
)


def found(seen: StepWindow) -> Finding:
    finding = input_bound(seen)
    assert finding is not None
    return finding


def test_at_best_is_bounded_by_what_the_gpu_works() -> None:
    """Of 20 ms that the host waits 8 are exposed on the GPU: it works for the other 16 of 24."""
    rows = even(60, data_ms=20, forward_ms=1, backward_ms=2, optimizer_ms=1)
    on_gpu = {"data_ms": 8, "wait_ms": 20, "forward_ms": 5, "backward_ms": 9, "optimizer_ms": 2}
    finding = found(gpu_window(rows, on_gpu, loaders=(loader(0),), cores=16.0))
    assert finding.share == pytest.approx(8 / 24)
    assert finding.advice[0] == (
        "num_workers 0 → 2, about 1.5x (a batch takes 20 ms, the rest of the step 16 ms)"
    )


def test_a_gpu_makes_the_wait_an_upper_bound() -> None:
    finding = found(waiting(1, 82, gpu_present=True, workers=worker_use(1, 97)))
    assert finding.speedup_is == "bound"
    assert "host's clock" in finding.headline


HIDDEN = even(60, data_ms=50, forward_ms=40, backward_ms=38, optimizer_ms=4)


HIDDEN_ON_GPU = {
    "forward_ms": 45, "backward_ms": 82, "optimizer_ms": 5, "wait_ms": 50, "lag_ms": 650,
}  # fmt: skip


def test_a_hidden_wait_is_not_input_bound() -> None:
    seen = gpu_window(HIDDEN, HIDDEN_ON_GPU, loaders=(loader(0),), activity=activity(99))
    assert input_bound(seen) is None
    verdict = Engine().judge(seen)
    assert verdict.finding.kind == "compute"
    assert any("50 ms of data wait per step is hidden" in e.text
               for e in verdict.finding.evidence)  # fmt: skip


def test_the_same_wait_by_the_hosts_clock_alone_is_called_input() -> None:
    seen = window(HIDDEN, gpu_present=True, loaders=(loader(0),))
    found = input_bound(seen)
    assert found is not None
    assert found.share == pytest.approx(50 / 132, abs=0.01)
    assert "by the host's clock" in found.headline


def test_only_the_exposed_part_of_a_wait_counts() -> None:
    steps = even(60, data_ms=60, forward_ms=5, backward_ms=5, optimizer_ms=2)
    on_gpu = {"data_ms": 36, "forward_ms": 12, "backward_ms": 20, "optimizer_ms": 4, "wait_ms": 60}
    found = input_bound(gpu_window(steps, on_gpu))
    assert found is not None
    assert found.share == pytest.approx(36 / 72, abs=0.01)
    assert found.evidence[0].source == "event"
    assert "another 24 ms of host wait is hidden" in found.evidence[0].text
    assert found.headline.startswith("GPU idle ")


def test_too_few_measured_steps_leave_the_hosts_clock() -> None:
    seen = window(HIDDEN, gpu_present=True, loaders=(loader(0),))
    few = gpu_window(HIDDEN, HIDDEN_ON_GPU, loaders=(loader(0),)).gpu_steps[:3]
    seen = window(HIDDEN, gpu_present=True, loaders=(loader(0),), gpu_steps=few)
    assert input_bound(seen) is not None
    assert any(one.signal == "gpu clock" for one in missing_of(seen))


def test_late_batches_that_no_measured_step_has_count_all_the_same() -> None:
    """Where one step in ten is on the GPU's clock, the long ones are rarely among them: a wait of
    half of the time was forecast to give 1.05x when removed, and launching took the headline."""
    usual = {"data_ms": 0.2, "forward_ms": 1, "backward_ms": 1.4, "optimizer_ms": 0.2}
    rows = run(60, lambda n: {**usual, "data_ms": 28 if n % 10 == 5 else 0.2})
    whole = window(rows, gpu_present=True, loaders=(loader(0),), activity=activity(19.0))
    measured = tuple(gpu_step(row, **usual) for row in whole.steps if row.data_ns < 1_000_000)
    found = input_bound(replace(whole, gpu_steps=measured[::3]))
    assert found is not None
    assert found.share == pytest.approx(0.52, abs=0.05)
    assert found.speedup == pytest.approx(2.0, rel=0.1)


@pytest.mark.parametrize(("busy", "gain"), [(0.02, 2.9), (0.6, 1.6)])
def test_workers_that_stay_make_the_first_batch_of_an_epoch_too(busy: float, gain: float) -> None:
    """MONAI's MedNIST on an H200: epochs of 20 steps, 1.8 s until the first batch, of which making
    it takes most: 1.9x was forecast, and persistent workers gave 1.34x."""
    rows = run(120, lambda n: {"startup_ms": 1_800 if n % 20 == 1 else 0, "forward_ms": 45})
    on_gpu = {"forward_ms": 45, "wait_ms": 90, "data_ms": 90}
    restarting = (loader(10, iterations=6, batches=20),)
    decode = (0.81, "load (PIL/ImageFile.py:300)", "__getitem__ (dataset.py:41)")
    sampled = stacks(workers=[decode], idle=1.0 - busy)
    finding = found(gpu_window(rows, on_gpu, loaders=restarting, cores=16.0, stacks=sampled))
    assert finding.sub == "epoch-start"
    assert finding.forecast is not None
    assert finding.forecast.speedup == pytest.approx(gain, rel=0.1)


def test_a_first_batch_that_takes_most_of_a_start_is_to_be_cheaper() -> None:
    """Occupancy networks on an H200, 4 workers, epochs of 8 batches: 884 ms until the first, of
    which making it takes 700. Items that read less gave 3.5x; persistent workers, which were told,
    1.25x, and 12 workers 1.33x."""
    rows = run(120, lambda n: {"startup_ms": 884 if n % 8 == 1 else 0, "forward_ms": 45})
    on_gpu = {"forward_ms": 45, "wait_ms": 110, "data_ms": 110}
    restarting = (loader(4, iterations=15, batches=8),)
    reading = (0.9, "load (data.py:193)", "__getitem__ (data.py:80)")
    sampled = stacks(workers=[reading], idle=0.0)
    finding = found(gpu_window(rows, on_gpu, loaders=restarting, cores=16.0, stacks=sampled))
    assert finding.sub == "epoch-start"
    assert finding.advice[0].startswith("make it cheaper")
    assert "data.py" in finding.advice[0]
    assert finding.advice[1].startswith("persistent_workers=True")
    assert finding.speedup is not None
    assert finding.speedup > 2.0


def test_workers_that_persist_make_a_slow_first_batch_all_the_same() -> None:
    """Pathology on an H200, 12 workers that stay, epochs of 25 batches: "see what the dataset does
    when an epoch begins", where all its items are slow; 2.8x by a smaller part of each picture."""
    rows = run(125, lambda n: {"startup_ms": 778 if n % 25 == 1 else 0, "forward_ms": 30})
    on_gpu = {"forward_ms": 30, "wait_ms": 31, "data_ms": 31}
    stay = (loader(12, iterations=5, batches=25, persistent_workers=True),)
    blurs = (0.57, "filter (PIL/ImageFilter.py:206)", "RandomBlur.__call__ (train.py:55)")

    def judged(idle: float) -> Finding:
        sampled = stacks(workers=[blurs], idle=idle)
        return found(gpu_window(rows, on_gpu, loaders=stay, cores=16.0, stacks=sampled))

    slow, quick = judged(idle=0.0), judged(idle=0.95)
    assert slow.sub == quick.sub == "epoch-start"
    assert slow.advice == (
        "make it cheaper (vectorised, or on the GPU for a whole batch), or do it once and store "
        "the result (RandomBlur.__call__ (train.py:55))",
    )
    assert "what the dataset does when an epoch begins" in quick.advice[0]


def test_workers_that_rest_in_evaluations_are_no_burst() -> None:
    """Shortest paths of polymers for each item on an H200, six workers at work 80 % of the time,
    and all of it but for the evaluations: "prefetch 4"; 3.6x by paths that are kept."""
    on_gpu = {"forward_ms": 37, "wait_ms": 52, "data_ms": 52}
    paths = (0.98, "floyd_warshall (train.py:48)", None)

    def judged(evaluation_ms: float) -> Finding:
        rows = run(
            96,
            lambda n: {
                "data_ms": 620 if n % 12 == 0 else 0, "forward_ms": 37,
                "evaluation_ms": evaluation_ms if n % 48 == 0 else 0,
            },
        )  # fmt: skip
        sampled = stacks(workers=[paths], idle=0.2)
        return found(gpu_window(rows, on_gpu, loaders=(loader(6),), cores=16.0, stacks=sampled))

    assert judged(0).sub == "burst"
    assert judged(800).sub == "workers"
    assert any("floyd_warshall" in one for one in judged(800).advice)


def test_workers_that_start_for_the_evaluation_after_an_epoch_are_its_start_too() -> None:
    """PatchTST on an H200, 10 workers: 0.7 s of starting them for the training, and 1.2 s of two
    evaluations that start ten each, of 5.3 s; launches led, and batches in memory gave 1.7x."""
    rows = run(
        120,
        lambda n: {
            "startup_ms": 700 if n % 40 == 1 else 0,
            "evaluation_ms": 1_200 if n % 40 == 1 else 0,
            "evaluation_startup_ns": 1_100_000_000 if n % 40 == 1 else 0,
            "shared_startup_ns": 1_100_000_000 if n % 40 == 1 else 0,
            "forward_ms": 12,
        },
    )
    restarting = (loader(10, iterations=4, batches=40),)
    on_gpu = {"forward_ms": 12, "wait_ms": 90, "data_ms": 90}
    seen = gpu_window(rows, on_gpu, loaders=restarting, cores=16.0)
    finding = found(seen)
    assert finding.sub == "epoch-start"
    assert finding.evidence[-1].text.startswith(
        "1.8 s of starting workers for an epoch and its evaluation, 2 so far"
    )
    assert finding.advice[0].startswith(
        "persistent_workers=True for the training's loader and the evaluation's"
    )
    assert (finding.share or 0.0) > 0.6


def handing_over(ready: int, pinned: bool = False) -> StepWindow:
    """NCF on an H200: 2 of 6 ms wait for a batch, before samples of its four workers are there."""
    part = {"data_ms": 2, "forward_ms": 2, "backward_ms": 1.3, "optimizer_ms": 0.7}
    rows = [structs.replace(row, ready=ready) for row in even(60, **part)]
    on_gpu = {**part, "wait_ms": 2, "lag_ms": 0.02}
    four = structs.replace(loader(4), pin_memory=pinned)
    return gpu_window(rows, on_gpu, loaders=(four,), activity=activity(6.0), cores=16.0)


@pytest.mark.parametrize(
    ("pinned", "first"),
    [(False, "DataLoader(..., pin_memory=True): a thread"), (True, "fewer tensors in a batch")],
)
def test_batches_that_all_lay_ready_are_handed_over_and_no_worker_is_late(
    pinned: bool, first: str
) -> None:
    """ "Workers are busy all the time", so that fewer launches were to give nothing: a graph gave
    3.6x. Where the loader pins, a thread of its own receives (0.2 ms a batch for 1.5 ms)."""
    seen = handing_over(8, pinned)
    finding = found(seen)
    assert finding.evidence[-1].text.startswith("every batch lay ready: 2.0 ms are receiving it")
    assert finding.advice[0].startswith(first)
    assert loader_floor(seen) < 0.1
    forecast = forecast_of(finding)
    if pinned:
        assert forecast is None, "what fewer tensors give nobody measured"
    else:
        assert forecast is not None
        assert (forecast.kind, forecast.low) == ("bound", 1.0)
        assert forecast.speedup == pytest.approx(6.0 / 4.2, rel=0.02)


def jets(
    pins: float = 0.54,
    tensors: int = 64,
    idle: float = 0.99,
    busy: float = 15.0,
    pinned: bool = True,
) -> StepWindow:
    """Lists of 256 tensors a batch on an H200, of eight workers."""
    part = {"data_ms": 41, "forward_ms": 13, "backward_ms": 9, "optimizer_ms": 3}
    many = structs.replace(loader(8), pin_memory=pinned, batch_tensors=tensors)
    seen = gpu_window(
        even(60, **part),
        {**part, "wait_ms": 41, "lag_ms": 0.02},
        loaders=(many,),
        activity=activity(busy),
        cores=16.0,
        host=HostUse(pin_cpu=pins),
    )
    return replace(seen, stacks=Stacks(60, (), 400, (), worker_idle_share=idle))


def test_many_tensors_of_a_batch_keep_the_thread_that_pins_busy() -> None:
    """ "Make items cheaper, 2.6x (2.0 to 3.7)" was said: 4.7x by one padded tensor a batch."""
    finding = found(jets())
    assert finding.sub == "received"
    assert finding.advice[0].startswith("few tensors in a batch")
    text = "the thread that pins batches uses 54% of a core, 36 ms for each: it receives 64 or more"
    assert finding.evidence[-1].text.startswith(text)
    forecast = forecast_of(finding)
    assert forecast is not None
    assert forecast.high is not None
    assert forecast.low < 4.7 < forecast.high


@pytest.mark.parametrize(
    "seen",
    [jets(pins=0.1), jets(tensors=3), jets(tensors=16), jets(idle=0.2), jets(pinned=False)],
    ids=["the thread rests", "few tensors", "not so many", "the workers compute", "not pinned"],
)
def test_a_thread_that_pins_little_is_not_late(seen: StepWindow) -> None:
    assert found(seen).sub != "received"


def test_few_tensors_give_no_more_than_the_gpu_leaves() -> None:
    """It is busy for 60 % of the time: 1.67x is the most."""
    forecast = forecast_of(found(jets(busy=60.0, idle=1.0)))
    assert forecast is not None
    assert forecast.high == pytest.approx(1 / 0.6)


def test_one_batch_ahead_that_is_never_there_does_not_lie_ready() -> None:
    """One worker with prefetch_factor=1: 0 of 1 was taken for all but one."""
    seen = replace(handing_over(0), loaders=(loader(1, prefetch_factor=1),))
    assert loader_floor(seen) == 1.0
    assert "pin_memory" not in found(seen).advice[0]


def test_what_lay_ready_before_the_first_of_many_fetches_says_nothing_of_the_others() -> None:
    """A queue that is full after a long update, and empty eight micro-batches later."""
    whole = handing_over(8)
    seen = replace(whole, steps=tuple(structs.replace(row, fetches=32) for row in whole.steps))
    assert loader_floor(seen) == 1.0


def test_some_that_lie_ready_may_lack_the_one_that_is_next() -> None:
    seen = handing_over(6)
    assert not found(seen).advice[0].startswith("DataLoader(..., pin_memory=True)")
    assert loader_floor(seen) == 1.0


def test_a_loader_that_is_begun_within_an_epoch_is_not_the_trainings() -> None:
    """PointNet takes a batch to test with from a new iterator every 10 steps: its training's epochs
    were to be made longer. On an H200 1.9x by workers of that loader that persist."""
    rows = run(60, lambda n: {"startup_ms": 200 if n % 10 == 1 else 0, "forward_ms": 10})
    training = loader(4, batches=380)
    tests = loader(4, key=2, batches=90, dataset="Held", iterations=6)
    finding = found(window(rows, loaders=(training, tests)))
    assert finding.headline.startswith("starting another loader than the training's takes")
    assert "persistent_workers=True for the other loader (Held, 90 batches)" in finding.advice[0]
    assert "longer epochs" not in " ".join(finding.advice)
    short = (loader(4, iterations=6, batches=10),)
    anew = tuple(loader(4, key=10 + at, batches=10) for at in range(6))
    kept = loader(2, key=5, iterations=40, dataset="Unlabelled", persistent_workers=True)
    for loaders in ((*short, tests), (*anew, tests), (training, kept)):
        assert found(window(rows, loaders=loaders)).headline.startswith("starting epochs takes")


def test_what_fewer_workers_give_is_not_forecast() -> None:
    """Their batches lie ready, and the thread that launches lacks a core."""
    use = WorkerUse(64, 25.0, 0.0, 0.0, run_delay=0.45)
    rows = even(60, forward_ms=40, backward_ms=30, ready=60)
    on_gpu = {"forward_ms": 10, "backward_ms": 9}
    seen = gpu_window(rows, on_gpu, loaders=(loader(64),), workers=use, cores=16.0)
    fed = feeding(seen)
    assert fed is not None
    explained = oversubscribed(seen, fed)
    assert explained is not None
    assert explained.advice[0].startswith("num_workers 64 → 16")
    assert not explained.gain_known
