"""Batches that are no worker's."""

import pytest

from gpuwatch.tui.verdict.findings import Finding
from gpuwatch.tui.verdict.rules.input import input_bound
from gpuwatch.tui.verdict.rules.input_on_thread import unmarked
from gpuwatch.tui.verdict.stack_samples import FrameShare, Stacks
from gpuwatch.tui.verdict.window import WorkerUse
from tests.unit.verdict.windows import even, waiting, window, worker_use

SCANS = "pool = [i for i, l in enumerate(self.labels) if l == c]"


def drawing(frame: str, line: str = SCANS, caller: str | None = None) -> FrameShare:
    """Two thirds of the samples of a step, of which the wait for data takes 80 %."""
    return FrameShare(0.67, frame, caller, line, "data", 57)


def found(place: FrameShare, workers: int = 1) -> Finding:
    net = FrameShare(
        0.2, "Linear.forward (torch/nn/modules/linear.py:134)", None, "", "forward", 57
    )
    places = Stacks(57, (place, net), 1, (), 0.95)
    finding = input_bound(waiting(workers, 10, workers=worker_use(workers, 1), stacks=places))
    assert finding is not None
    return finding


def test_a_sampler_that_scans_all_labels_is_no_workers() -> None:
    """P classes of K samples: "num_workers 1 → 0, about 4.3x: a batch takes 0.2 ms to make, and 11
    ms to receive from a worker", which gave nothing; 2.5x by an index of the classes."""
    finding = found(drawing("Balanced.__iter__.<locals>.<listcomp> (train.py:37)"))
    assert finding.sub == "sampler"
    assert finding.advice[0].endswith("at once (Balanced.__iter__ (train.py:37))")
    assert not any("num_workers" in one for one in finding.advice)
    assert finding.forecast is not None
    assert finding.forecast.speedup == pytest.approx(1 / 0.33, rel=0.3)


@pytest.mark.parametrize("workers", [0, 2])
def test_a_sampler_of_pytorchs_own_is_one(workers: int) -> None:
    place = drawing("__iter__ (torch/utils/data/sampler.py:190)", "", "main (train.py:52)")
    assert found(place, workers).sub == "sampler"


def test_what_the_training_thread_loads_itself_is_the_batch() -> None:
    assert found(drawing("Words.__getitem__ (train.py:20)"), workers=0).sub == "serial"


def test_waiting_for_a_worker_is_no_sampler() -> None:
    waits = drawing("_try_get_data (torch/utils/data/dataloader.py:1291)", "", "main (train.py:52)")
    assert found(waits).sub != "sampler"
    loop = drawing("main (train.py:52)", "for x, y in train_dl:")
    assert found(loop).sub != "sampler"


def test_a_queue_that_runs_empty_needs_more_that_fill_it() -> None:
    """A thread that reads shards ahead: "75% of each step is Python", "do it on another thread"."""
    waits = drawing("Prefetcher.next (train.py:40)", "return self.queue.get()")
    rows = even(60, forward_ms=45, backward_ms=10, optimizer_ms=3)
    finding = unmarked(window(rows, stacks=Stacks(57, (waits,), 0, (), None)))
    assert finding is not None
    assert finding.advice[0].startswith("more threads, or processes, that make batches ahead")
    makes = drawing("get_batch (train.py:40)", "x = data[i : i + n]")
    other = unmarked(window(rows, stacks=Stacks(57, (makes,), 0, (), None)))
    assert other is not None
    assert "fetch the next batch on another thread" in other.advice[1]


@pytest.mark.parametrize(
    ("makers", "cores", "most"), [(8, 16.0, 2.0), (8, 8.0, None), (0, 16.0, None)]
)
def test_more_processes_that_make_batches_give_no_more_than_there_are_cores_for(
    makers: int, cores: float, most: float | None
) -> None:
    """MonoBeast's eight actors on 16 cores: ">10x", and sixteen gave 1.0 and 1.7x."""
    waits = drawing("get_batch (train.py:40)", "indices = [full_queue.get() for _ in range(8)]")
    rows = even(60, forward_ms=450, backward_ms=10, optimizer_ms=3)
    each = ((99.0, 100.0),) * makers
    use = WorkerUse(8, 100.0, 0.0, 0.0, oldest_s=9.0, cpu_each=each)
    seen = window(
        rows, stacks=Stacks(57, (waits,), 0, (), None), workers=use, cores=cores, loaders=()
    )
    finding = unmarked(seen)
    assert finding is not None
    assert finding.forecast is not None
    if most is None:
        assert finding.forecast.speedup > 2
        assert finding.advice[0].startswith("cheaper batches") == bool(makers)
    else:
        assert finding.forecast.speedup == pytest.approx(most)
        assert "8 processes that it started use 100% of a core each" in finding.evidence[1].text
