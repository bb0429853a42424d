"""The process tree over the window's time."""

import pytest
from msgspec import structs

from gpuwatch.tui.model.observations import ProcessesSeen
from gpuwatch.tui.session.processes import ProcessStore
from tests.unit.session.making import MS, process, processes


def look(t_ms: float, delay: float | None, **fields: float | None) -> ProcessesSeen:
    """A look with a main process and two workers."""
    main = process(1, run_delay_percent=delay, cpu_percent=fields.pop("cpu", 60.0))
    workers = [process(pid, "worker", run_delay_percent=40.0) for pid in (2, 3)]
    return structs.replace(processes(t_ms, main, *workers), **fields)


def test_means_over_the_stretch_alone() -> None:
    store = ProcessStore()
    store.seen(look(500, 90.0, throttled_percent=80.0, others_cpu_percent=200.0, cpu=10.0))
    for at in range(2, 7):
        fields = {"throttled_percent": 10.0 * at, "others_cpu_percent": 150.0}
        store.seen(look(1000 * at, 5.0 * at, **fields))
    use = store.host_use(1_000 * MS, 4_000 * MS)
    assert use.run_delay == pytest.approx(0.175), "looks at 2 to 5 s, the last of the window's end"
    assert use.cpu_throttled == pytest.approx(0.35)
    assert use.others_cores == pytest.approx(1.5)
    assert use.main_cpu_percent == pytest.approx(60)
    assert use.beside_cores == pytest.approx(1.8), "two workers at 90 %, and one thread of its own"


def test_threads_beside_the_training_thread_are_its_own() -> None:
    store = ProcessStore()
    store.seen(look(1_000, 5.0, cpu=250.0))
    assert store.host_use(0, 2_000 * MS).beside_cores == pytest.approx(1.5 + 1.8)


def test_faults_and_time_in_the_kernel_are_means_of_the_training_thread() -> None:
    store = ProcessStore()
    for at, percent in ((1, 10.0), (2, 30.0)):
        main = process(1, in_kernel_percent=percent, page_faults_s=1000 * percent)
        store.seen(processes(1_000 * at, main, process(2, "worker", page_faults_s=None)))
    use = store.host_use(0, 2_000 * MS)
    assert use.in_kernel == pytest.approx(0.2)
    assert use.page_faults_s == pytest.approx(20_000)


def test_what_nobody_reported_is_not_zero() -> None:
    store = ProcessStore()
    store.seen(look(1_000, None))
    use = store.host_use(0, 2_000 * MS)
    assert (use.run_delay, use.cpu_throttled, use.others_cores) == (None, None, None)
    assert ProcessStore().host_use(0, 2_000 * MS).main_cpu_percent is None


def test_a_stretch_without_a_look_is_as_the_newest_one_saw_it() -> None:
    store = ProcessStore()
    store.seen(look(1_000, 5.0))
    store.seen(look(2_000, 30.0))
    assert store.host_use(2_100 * MS, 2_200 * MS).run_delay == pytest.approx(0.3)


def test_what_workers_use_while_a_training_warms_up_does_not_count() -> None:
    """They wait for ten seconds while cuDNN chooses kernels: "yet using 4% of a core"."""
    store = ProcessStore()
    for at in range(1, 6):
        workers = [process(2, "worker", cpu_percent=2.0 if at < 4 else 90.0)]
        store.seen(processes(1_000 * at, process(1), *workers))
    every = store.worker_use()
    assert every is not None
    assert every.cpu_percent == pytest.approx((3 * 2 + 2 * 90) / 5)
    warm = store.worker_use(since_ns=2_500 * MS)
    assert warm is not None
    assert warm.cpu_percent == pytest.approx(90), "readings that begin at 3 and 4 s"
    none = store.worker_use(since_ns=4_500 * MS)
    assert none is not None
    assert (none.count, none.cpu_percent, none.disk_wait_share) == (1, None, None)


def test_threads_of_workers_beside_their_main_ones() -> None:
    """The mean of those whose main thread was read."""
    store = ProcessStore()
    used = ((132.0, 32.0), (60.0, 40.0), (99.0, None))
    workers = [
        process(pid, "worker", cpu_percent=cpu, thread_cpu_percent=thread)
        for pid, (cpu, thread) in enumerate(used, 2)
    ]
    store.seen(processes(1_000, process(1), *workers))
    found = store.worker_use()
    assert found is not None
    assert found.other_threads_percent == pytest.approx(60.0)


def test_each_child_that_is_there_has_its_own_least_and_mean() -> None:
    """A renderer at 240 % and one asleep were "2 processes, 120% of a core each"."""
    store = ProcessStore()
    for at, percent in ((1, None), (2, 230.0), (3, 250.0)):
        left = [process(4, "worker", cpu_percent=100.0)] if at < 3 else []
        threads = process(2, "worker", cpu_percent=percent)
        asleep = process(3, "worker", cpu_percent=0.0)
        store.seen(processes(1_000 * at, process(1), threads, asleep, *left))
    use = store.worker_use()
    assert use is not None
    assert use.cpu_each == ((230.0, 240.0), (0.0, 0.0))


def test_how_long_workers_wait_for_a_core() -> None:
    store = ProcessStore()
    store.seen(look(1_000, 5.0))
    workers = store.worker_use()
    assert workers is not None
    assert workers.run_delay == pytest.approx(0.4)
