"""Why the step waits for data, and what to do about it here."""

import re
from dataclasses import fields, replace
from typing import Any

import pytest

from gpuwatch.tui.verdict.engine import Engine
from gpuwatch.tui.verdict.findings import Finding
from gpuwatch.tui.verdict.loader import feeding
from gpuwatch.tui.verdict.rules.input import input_bound
from gpuwatch.tui.verdict.rules.input_many_threads import oversubscribed
from gpuwatch.tui.verdict.stack_samples import FrameShare, Sampled, Stacks
from gpuwatch.tui.verdict.window import RunFacts, SampleWindow, StepWindow, WorkerUse
from tests.unit.verdict.on_gpu import gpu_window
from tests.unit.verdict.windows import (
    even,
    loader,
    run,
    stacks,
    waiting,
    window,
    worker_use,
)

DECODE = (0.81, "load (PIL/ImageFile.py:300)", "__getitem__ (dataset.py:41)")

RESIZE = (0.19, "resize (functional.py:468)", "__getitem__ (dataset.py:43)")


def found(seen: StepWindow) -> Finding:
    finding = input_bound(seen)
    assert finding is not None
    return finding


def test_one_worker_too_few_names_the_decoding_and_a_number() -> None:
    finding = found(
        waiting(
            1,
            82,
            workers=worker_use(1, 97),
            main_cpu_percent=25.0,
            stacks=stacks(workers=[DECODE, RESIZE], idle=0.0),
        )
    )
    assert (finding.kind, finding.sub, finding.severity) == ("input", "workers", "critical")
    assert finding.share == pytest.approx(82 / 96)
    assert finding.speedup == pytest.approx(96 / 14)
    assert finding.speedup_is == "estimate", "the host's phases are the truth without a GPU"
    assert finding.advice[1] == (
        "num_workers 1 → 2, about 1.6x (one worker needs 96 ms per batch, the rest of the step "
        "takes 14 ms; 9 workers would hide it, you have 2 cores)"
    )
    reported = " ".join(evidence.text for evidence in finding.evidence)
    assert (
        "81% of worker samples are in load (PIL/ImageFile.py:300), called from "
        "__getitem__ (dataset.py:41)" in reported
    )
    assert "decode less" in finding.advice[0], "1.6x is far from 6.9x"


def test_cores_enough_means_workers_enough() -> None:
    finding = found(waiting(1, 82, cores=16.0, workers=worker_use(1, 97), main_cpu_percent=100.0))
    assert finding.advice[0].startswith("num_workers 1 → 7, about 6.5x")


def test_the_advice_depends_on_the_workers_and_the_cores() -> None:
    """0, 2 and 4 workers on 2 cores: three different problems."""
    serial = found(waiting(0, 96, main_cpu_percent=100.0))
    full = found(waiting(2, 40, workers=worker_use(2, 92), main_cpu_percent=16.0))
    crowd = found(
        waiting(4, 40, workers=worker_use(4, 46), main_cpu_percent=16.0, machine_cpu_percent=99.0)
    )
    assert [finding.sub for finding in (serial, full, crowd)] == [
        "serial",
        "cpu-bound",
        "oversubscribed",
    ]
    assert "num_workers 0 → 2" in serial.advice[1]
    assert any("more workers will not help" in advice for advice in full.advice)
    assert "num_workers 4 → 2" in crowd.advice[1]
    more = re.compile(r"num_workers (\d+) → (\d+)")
    for finding in (full, crowd):
        numbers = [match for advice in finding.advice if (match := more.search(advice))]
        assert all(int(match[2]) < int(match[1]) for match in numbers)


def test_workers_are_kept_where_epochs_are_short() -> None:
    """PyG's example: 29 batches, and three loaders an epoch. Eight workers for each made 0.40x."""
    short = found(waiting(0, 96, cores=16.0, loaders=(loader(0, batches=29),)))
    long = found(waiting(0, 96, cores=16.0, loaders=(loader(0, batches=1_000),)))
    kept = re.compile(r"^num_workers 0 → \d+ and persistent_workers=True, about ")
    assert [any(map(kept.match, one.advice)) for one in (short, long)] == [True, False]


def test_a_serial_loader_on_one_core_is_not_advised_to_fork() -> None:
    finding = found(waiting(0, 96, cores=1.0))
    assert finding.sub == "serial"
    assert "num_workers" not in " ".join(finding.advice)


def test_workers_that_wait_for_a_read_are_slow_storage() -> None:
    read = (0.9, "read (slow_storage.py:31)", "__getitem__ (photographs.py:60)")
    finding = found(
        waiting(
            2, 86, workers=worker_use(2, 12, read=3e6), stacks=stacks(workers=[read], idle=0.02)
        )
    )
    assert finding.sub == "storage"
    assert "local" in finding.advice[0]
    assert "num_workers 2 → 8" in finding.advice[1], "they need no core to wait"


def test_state_d_is_slow_storage_without_stacks() -> None:
    finding = found(waiting(2, 86, workers=worker_use(2, 20, disk=0.7)))
    assert finding.sub == "storage"


def test_workers_that_wait_for_something_else_are_reported_to_wait() -> None:
    lock = (0.9, "acquire (locks.py:12)", "__getitem__ (dataset.py:9)")
    finding = found(
        waiting(2, 86, workers=worker_use(2, 8), stacks=stacks(workers=[lock], idle=0.0))
    )
    assert finding.sub == "waits"
    assert "acquire (locks.py:12)" in finding.advice[0]
    assert "not for a disk" in " ".join(evidence.text for evidence in finding.evidence)


def test_how_much_workers_compute_is_unknown_before_they_are_two_seconds_old() -> None:
    """dcgan's epochs of 16 batches: workers of 0.6 s that compute read as 10 % of a core."""
    young = replace(worker_use(2, 8), exited=20, oldest_s=0.6)
    places = stacks(workers=[DECODE], idle=0.2)
    assert found(waiting(2, 86, workers=young, stacks=places)).sub != "waits"
    old = replace(young, oldest_s=5.0)
    assert found(waiting(2, 86, workers=old, stacks=places)).sub in ("waits", "storage")


def test_starts_of_short_epochs_explain_the_late_batches_after_them() -> None:
    rows = run(
        96, lambda n: {"startup_ms": 86 if n % 16 == 1 else 0, "data_ms": 8, "forward_ms": 12}
    )
    short = loader(2, iterations=6, batches=16)
    assert found(window(rows, loaders=(short,))).sub == "epoch-start"
    endless = loader(2, iterations=6, batches=100_000)
    assert found(window(rows, loaders=(endless,))).sub != "epoch-start"


@pytest.mark.parametrize(
    "line",
    [
        "reply = self.socket.recv(256)",
        "time.sleep(0.02)",
        "row = self.database.execute(query).fetchone()",
    ],
)
def test_a_call_into_c_is_known_by_its_line(line: str) -> None:
    """It waits for something that is not on this machine's disk, of which nothing is read."""
    at = (0.95, "__getitem__ (dataset.py:9)", None, line)
    use = worker_use(2, 1)
    finding = found(waiting(2, 98, workers=use, stacks=stacks(workers=[at], idle=0.0)))
    assert finding.sub == "waits"
    assert "__getitem__ (dataset.py:9)" in finding.advice[0]
    assert not any("MiB per second" in evidence.text for evidence in finding.evidence)


def test_workers_that_queue_for_a_core_do_not_wait_for_a_disk() -> None:
    finding = found(waiting(2, 86, workers=worker_use(2, 40), machine_cpu_percent=99.0))
    assert finding.sub != "storage"


def queueing(cpu: float, delay: float, /, machine: float | None = None) -> StepWindow:
    """Eight workers on two cores, each with so much CPU and so long a wait for a core."""
    use = WorkerUse(8, cpu, 0.0, 0.0, run_delay=delay)
    return waiting(8, 86, workers=use, machine_cpu_percent=machine)


def test_workers_that_wait_for_a_core_are_too_many_however_full_the_machine_looks() -> None:
    """In a container the machine's figure is not that of the cores that it has."""
    finding = found(queueing(24, 0.7, machine=30.0))
    assert finding.sub == "oversubscribed"
    assert "num_workers 8 → 2" in finding.advice[1]
    assert "workers wait for a core 70% of the time" in [one.text for one in finding.evidence]


def test_of_too_many_workers_that_are_late_cheaper_batches_come_first() -> None:
    """Measured on 2 cores: 4 → 2 workers gave 0.96 to 1.12x where 89 % of the time was waited; 32 →
    16 on 16 cores 0.85x where 77 % was, and cheaper batches 1.9x."""
    finding = found(queueing(24, 0.7, machine=30.0))
    assert finding.sub == "oversubscribed"
    assert finding.advice[0].startswith("make batches cheaper")
    assert finding.speedup == pytest.approx(7, rel=0.1)


def test_a_batch_that_its_worker_hands_over_makes_the_forecast_a_bound() -> None:
    hands = (0.7, "rebuild_storage_fd (torch/multiprocessing/reductions.py:521)", "main (t.py:20)")
    rests = (0.3, "forward (linear.py:134)", "main (t.py:20)")
    rows = even(60, data_ms=20, forward_ms=1, backward_ms=2, optimizer_ms=1)
    on_gpu = {"data_ms": 8, "wait_ms": 20, "forward_ms": 5, "backward_ms": 9, "optimizer_ms": 2}
    given: dict[str, Any] = {"loaders": (loader(2),), "workers": worker_use(2, 92)}
    finding = found(gpu_window(rows, on_gpu, stacks=stacks(main=[hands, rests]), **given))
    assert finding.speedup_is == "bound"
    assert "70% of main-thread samples are in rebuild_storage_fd" in finding.evidence[1].text
    finding = found(gpu_window(rows, on_gpu, stacks=stacks(main=[rests]), **given))
    assert finding.speedup_is == "estimate"


def test_many_workers_that_sleep_are_not_too_many() -> None:
    """They wait for a disk or a server: more of them may even help."""
    finding = found(queueing(12, 0.02, machine=95.0))
    assert finding.sub == "waits"


def test_a_worker_that_waits_for_a_core_does_not_wait_for_a_disk() -> None:
    use = WorkerUse(2, 30.0, 0.0, 14e6, run_delay=0.4)
    assert found(waiting(2, 86, workers=use)).sub == "cpu-bound"
    use = WorkerUse(2, 30.0, 0.0, 14e6, run_delay=0.1)
    assert found(waiting(2, 86, workers=use)).sub == "storage"


def test_a_late_batch_now_and_then_is_a_burst() -> None:
    rows = run(100, lambda n: {"data_ms": 600 if n % 12 == 0 else 0, "forward_ms": 100})
    busy = stacks(workers=[DECODE], idle=0.4)
    finding = found(window(rows, loaders=(loader(4),), cores=16.0, stacks=busy))
    assert finding.sub == "burst"
    assert "up to 600 ms" in " ".join(evidence.text for evidence in finding.evidence)
    assert "late in __getitem__ (dataset.py:41): a large sample" in " ".join(finding.advice)


def test_workers_that_are_too_slow_together_are_no_burst() -> None:
    """Batches come in order: of 8 equal workers one step in eight waits for all of them."""
    rows = run(96, lambda n: {"data_ms": 400 if n % 8 == 0 else 0, "forward_ms": 20})
    busy = stacks(workers=[DECODE], idle=0.0)
    finding = found(window(rows, loaders=(loader(8),), cores=32.0, stacks=busy))
    assert finding.sub == "workers"
    assert finding.advice[0].startswith("num_workers 8 → ")


def test_workers_restarting_each_epoch_are_not_too_few() -> None:
    rows = run(60, lambda n: {"startup_ms": 2_000 if n % 10 == 1 else 0, "forward_ms": 40})
    finding = found(window(rows, loaders=(loader(4, iterations=6, batches=10),)))
    assert finding.sub == "epoch-start"
    assert "persistent_workers=True" in finding.advice[0]
    assert "num_workers" not in " ".join(finding.advice)


def test_cores_are_blamed_only_where_they_are_full() -> None:
    """Two workers of 16 cores at half of theirs: nothing is taken."""
    places = stacks(workers=[DECODE], idle=0.0)
    free = waiting(2, 40, cores=16.0, workers=worker_use(2, 60), stacks=places)
    assert found(free).sub == "workers"
    slow = waiting(2, 40, workers=worker_use(2, 56), main_cpu_percent=10.0, stacks=places)
    assert "cores are" not in " ".join(found(slow).advice)
    full = found(waiting(2, 40, workers=worker_use(2, 92), main_cpu_percent=16.0, stacks=places))
    assert full.sub == "cpu-bound"
    assert "the cores are 100% busy" in " ".join(full.advice)


D_AT = "D.__getitem__ (data.py:12)"


def test_serial_loading_is_shown_by_the_loaders_own_places() -> None:
    """What the net and the evaluation do is no part of a batch; a library's line is the user's."""
    places = (
        FrameShare(0.4, "batch_norm (torch/nn/functional.py:9)", "f (net.py:9)", phase="forward"),
        FrameShare(0.2, "walk_stack (traceback.py:389)", D_AT, phase="data"),
        FrameShare(0.1, "extract (traceback.py:447)", D_AT, phase="data"),
    )
    seen = waiting(0, 40, stacks=Stacks(200, places, 0, (), None))
    finding = found(seen)
    assert finding.sub == "serial"
    reported = [evidence.text for evidence in finding.evidence]
    assert "30% of main-thread samples are in D.__getitem__ (data.py:12)" in reported
    cheaper = next(advice for advice in finding.advice if "store the result" in advice)
    assert cheaper.endswith("store the result (D.__getitem__ (data.py:12))")


def test_a_wrapped_iterable_is_judged_without_a_word_on_workers() -> None:
    finding = found(waiting(0, 82, loaders=(loader(None, kind="wrap"),)))
    assert finding.sub is None
    assert "num_workers" not in " ".join(finding.advice)


def test_a_fast_loader_is_no_finding() -> None:
    assert input_bound(waiting(1, 0.3)) is None


def test_idle_workers_that_read_are_slow_storage_before_there_are_stacks() -> None:
    finding = found(waiting(2, 86, workers=worker_use(2, 12, 0.0, 14e6)))
    assert finding.sub == "storage"


def test_neighbours_on_the_machine_are_reported() -> None:
    finding = found(
        waiting(1, 82, workers=worker_use(1, 50), main_cpu_percent=30.0, others_cores=1.2)
    )
    reported = [evidence.text for evidence in finding.evidence]
    assert "one worker needs 96 ms per batch; other processes use 1.2 of 2 cores" in reported


"""50 ms of waiting in every 132, and the GPU never ran dry: so measured on an H200."""


def test_an_iterator_for_every_step_is_no_start_of_an_epoch() -> None:
    """`next(iter(loader))` without workers: a batch is made there, as anywhere."""
    seen = window(even(60, startup_ms=40, forward_ms=20, backward_ms=30), loaders=(loader(0),))
    finding = input_bound(seen)
    assert finding is not None
    assert finding.sub == "serial"


def sharing(have: int = 2, wait_ms: float = 1, **fields: Any) -> StepWindow:
    """A training of 94 ms on two cores, whose workers keep up and use most of both."""
    rows = even(60, data_ms=wait_ms, forward_ms=40, backward_ms=50, optimizer_ms=3)
    given: dict[str, Any] = {
        "run_delay": 0.4, "others_cores": 0.1, "beside_cores": 1.3, "main_cpu_percent": 70.0,
        "workers": worker_use(have, 65), "stacks": stacks(workers=[DECODE], idle=0.3),
        "loaders": (loader(have),), **fields,
    }  # fmt: skip
    return window(rows, **given)


def test_a_picture_that_is_made_of_numbers_is_not_decoded() -> None:
    """torchvision's MNIST makes each sample a PIL image: "decode on the GPU" was advised."""
    made = (0.6, "new (PIL/Image.py:3254)", "to_pil (train.py:12)")
    finding = found(waiting(0, 82, stacks=stacks(main=[(*made, "data")])))
    assert not any("decode less" in advice for advice in finding.advice)


def test_workers_that_take_the_trainings_cores_are_the_loaders() -> None:
    finding = found(sharing())
    assert (finding.kind, finding.sub) == ("input", "cores")
    assert finding.share == pytest.approx(1 / 94 + 0.4 - 0.4 * 0.1 / 1.4, abs=0.005)
    reported = [evidence.text for evidence in finding.evidence]
    assert "of 2 cores the workers use 1.3, training 0.7, other processes 0.1" in reported
    assert finding.advice[0].startswith("num_workers 2 → 1: ")
    assert any("decode less" in advice for advice in finding.advice)
    assert Engine().judge(sharing()).finding.sub == "cores"


def test_what_is_waited_for_stands_beside_the_cores() -> None:
    """BRITS: "take the training's cores 40% of the time (57% not counted under evaluation)"."""
    late = "waiting for data takes 18% of the time, and "
    cores = "workers that take the training's cores 37%"
    assert found(sharing(wait_ms=20)).headline == late + cores


def test_one_worker_that_takes_a_core_is_made_cheaper() -> None:
    assert "decode less" in found(sharing(1, workers=worker_use(1, 100))).advice[0]


@pytest.mark.parametrize(
    "fields",
    [
        {"run_delay": 0.03},
        {"run_delay": None},
        {"others_cores": None},
        {"others_cores": 1.9, "beside_cores": 0.1, "workers": worker_use(2, 5)},
    ],
    ids=["hardly waits", "wait unknown", "others unknown", "others have them"],
)
def test_no_cores_are_reported_to_be_taken_by_workers(fields: dict[str, Any]) -> None:
    assert input_bound(sharing(**fields)) is None


def test_batches_that_all_lie_ready_take_what_receiving_them_takes() -> None:
    """A tutorial's MNIST with four workers on two cores: 4 → 1 gave 1.05x, batches in memory
    1.33x, and "4 → 2" came first."""

    def with_ready(ready: int) -> Finding:
        rows = even(60, data_ms=2.5, forward_ms=13, backward_ms=9, ready=ready)
        use = WorkerUse(4, 8.5, 0.0, 0.0, run_delay=0.07)
        given: dict[str, Any] = {"loaders": (loader(4),), "workers": use, "run_delay": 0.24}
        seen = window(rows, stacks=stacks(idle=0.91), main_cpu_percent=152.0, cores=2.0, **given)
        return found(seen)

    ready, late = with_ready(8), with_ready(0)
    assert (ready.sub, late.sub) == ("oversubscribed", "oversubscribed")
    assert (
        ready.evidence[1].text == "every batch lay ready: 2.5 ms are receiving it from its worker"
    )
    for one in (ready, late):
        # SiamFC on an H200, 32 workers on 16 cores that are late: 16 gave 0.85x, cheaper ones 1.9x.
        assert one.advice[0].startswith("make batches cheaper")
        assert one.advice[1].startswith("num_workers 4 → 2")
        assert one.speedup is not None


def test_whether_batches_lie_ready_is_not_known_without_a_probe() -> None:
    """The same rule judges samples alone, which have no steps."""
    use = WorkerUse(4, 40, 0.0, 0.0, run_delay=0.3)
    seen = waiting(4, 86, workers=use, cores=2.0)
    facts = {one.name: getattr(seen, one.name) for one in fields(RunFacts)}
    sampled = Sampled(95, {}, 0.0, (), (), None, None)
    fed = feeding(seen)
    assert fed is not None
    found_by_samples = oversubscribed(SampleWindow(**facts, samples=(), sampled=sampled), fed)
    assert found_by_samples is not None
    assert found_by_samples.advice[0].startswith("num_workers 4 → 2")
