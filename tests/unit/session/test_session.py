"""The store as a whole: observations in, pictures out."""

import pytest

from gpuwatch.probe.wire.page import STATE_ARMED, STATE_ENDED
from gpuwatch.tui.model.observations import (
    AnyObservation,
    Greeted,
    Link,
    Missing,
    PageSeen,
    StacksSeen,
    TargetEnded,
)
from gpuwatch.tui.model.snapshot import Snapshot
from gpuwatch.tui.session.session import Session
from gpuwatch.tui.settings import Settings
from gpuwatch.tui.verdict.engine import Engine
from gpuwatch.tui.verdict.findings import MissingSignal
from tests.unit.session.making import (
    HELLO,
    MS,
    S,
    delivered,
    loader,
    picture,
    process,
    processes,
    session,
    step,
    steps,
    verdict,
)


def page(state: int) -> PageSeen:
    return PageSeen(t_ns=0, open_kind=0, open_since_ns=0, steps=0, heartbeat_ns=0, state=state)


def texts(snapshot: Snapshot) -> list[str]:
    return [event.text for event in snapshot.events]


def test_an_empty_session_has_a_picture_in_which_nothing_is_zero() -> None:
    store, _ = session()
    seen = picture(store, 500)
    assert (seen.pid, seen.script) == (48213, "train.py")
    assert seen.steps is None
    assert seen.sawtooth is None
    assert seen.memory.host_rss_bytes is None
    assert seen.status.state == "connecting"
    assert seen.status.freshness_s is None
    assert seen.attached_s == pytest.approx(0.5)


def test_the_first_step_and_the_first_samples_are_judged_as_they_come() -> None:
    """Steps of 50 ms make twenty in a second: a verdict that waits for its turn is late."""
    store, engine = session(verdict("warming-up"), verdict("launch"))
    assert store.judge_if_due(0)
    assert not store.judge_if_due(300 * MS)
    store.ingest(delivered(steps(3, data_ms=50, forward_ms=50), t_ms=310))
    assert store.judge_if_due(310 * MS)
    assert not store.judge_if_due(500 * MS)
    store.ingest(StacksSeen(t_ns=520 * MS, started_ns=0, samples=19, stacks=()))
    assert store.judge_if_due(520 * MS)
    assert len(engine.windows) == 3
    store.ingest(StacksSeen(t_ns=530 * MS, started_ns=MS, samples=19, stacks=()))
    assert not store.judge_if_due(530 * MS), "the second chunk has time"


def test_the_hello_names_the_script_by_its_command_line() -> None:
    store, _ = session()
    store.ingest(Greeted(t_ns=0, hello=HELLO))
    assert picture(store, 0).script == "train.py"
    assert picture(store, 0).hello == HELLO


def test_the_steps_of_before_are_judged_as_soon_as_they_come() -> None:
    """They came 0.2 s after attaching, and were looked at a second after it."""
    store, engine = session(verdict("warming-up"), verdict("input"))
    assert picture(store, 0).verdict.finding.kind == "warming-up"
    assert not store.judge_if_due(100 * MS)
    store.ingest(delivered(steps(30, data_ms=5, forward_ms=5)))
    assert picture(store, 300).verdict.finding.kind == "input"
    store.ingest(delivered(steps(10, 31, 300, data_ms=5, forward_ms=5)))
    assert not store.judge_if_due(400 * MS), "and from then on once a second"
    assert store.judge_if_due(1_300 * MS)
    assert [len(window.all_recent) for window in engine.windows] == [0, 30, 40]


def test_history_that_comes_again_after_a_reconnection_counts_once() -> None:
    store, _ = session()
    made = steps(30, data_ms=50, forward_ms=50)
    store.ingest(delivered(made))
    store.ingest(delivered(made[10:] + steps(2, 31, 3000, data_ms=50, forward_ms=50)))
    seen = picture(store, 3200)
    assert [row.number for row in seen.recent] == list(range(1, 33))
    assert seen.steps is not None
    assert seen.steps.total == 32


def test_steps_that_passed_while_nobody_listened_are_counted_as_unseen() -> None:
    store, _ = session()
    store.ingest(delivered(steps(30, forward_ms=10)))
    store.ingest(delivered(steps(3, 35, 400, forward_ms=10)))
    assert texts(picture(store, 500)) == []
    store.ingest(delivered(steps(3, 4_000, 60_000, forward_ms=10)))
    assert texts(picture(store, 61_000))[-1] == "3,962 steps passed unseen"


def test_steps_that_count_from_one_again_are_taken_after_a_second_install() -> None:
    store, _ = session()
    store.ingest(delivered(steps(30, forward_ms=10)))
    store.ingest(delivered(steps(3, 1, 5000, forward_ms=10)))
    assert picture(store, 6000).recent[-1].number == 3


def test_the_verdict_is_asked_for_at_most_once_a_second() -> None:
    store, engine = session()
    for at_ms in range(0, 3001, 250):
        picture(store, at_ms)
    assert [window.now_ns // MS for window in engine.windows] == [0, 1000, 2000, 3000]


def test_the_window_leaves_the_warm_up_out() -> None:
    store, engine = session()
    store.ingest(delivered(steps(12, data_ms=5, forward_ms=5)))
    picture(store, 200)
    window = engine.windows[-1]
    assert [row.number for row in window.steps] == list(range(6, 13))
    assert window.warmup_left == 3
    store.ingest(delivered(steps(3, 13, 120, data_ms=5, forward_ms=5)))
    picture(store, 1500)
    assert engine.windows[-1].warmup_left == 0


def test_a_compilation_at_the_start_belongs_to_the_warm_up_and_a_late_one_is_news() -> None:
    store, engine = session()
    made = steps(8, forward_ms=10)
    made.append(step(9, 80, forward_ms=10, compile_ms=500))
    made += steps(30, 10, 600, forward_ms=10)
    made.append(step(40, 900, forward_ms=10, compile_ms=1200))
    store.ingest(delivered(made))
    seen = picture(store, 3000)
    assert engine.windows[-1].steps[0].number == 12
    assert texts(seen) == ["recompile 1.2 s"]


def test_a_change_of_pace_cuts_the_window_and_is_reported_once() -> None:
    store, engine = session()
    slow = [step(n, 1000 * n, forward_ms=100 + n % 7) for n in range(1, 61)]
    store.ingest(delivered(slow))
    picture(store, 70_000)
    assert len(engine.windows[-1].steps) == 57
    fast = [step(n, 1000 * n, forward_ms=50 + n % 5) for n in range(61, 81)]
    store.ingest(delivered(fast))
    picture(store, 90_000)
    picture(store, 92_000)
    assert [row.number for row in engine.windows[-1].steps] == list(range(61, 81))
    assert [text for text in texts(picture(store, 93_000)) if "step time" in text] == [
        "step time 52 ms, -50% (was 103 ms): forward 103 ms → 52 ms"
    ]


def test_slow_batches_now_and_then_are_no_change_of_pace() -> None:
    store, engine = session()
    made = [
        step(n, 1000 * n, data_ms=600 if n % 12 == 0 else 1, forward_ms=90 + n * 7 % 10)
        for n in range(1, 100)
    ]
    store.ingest(delivered(made))
    picture(store, 100_000)
    assert engine.windows[-1].steps[0].number == 4


def test_events_of_one_kind_do_not_push_out_the_others() -> None:
    store, _ = session(verdict("warming-up"), verdict("input", sub="workers"))
    picture(store, 0)
    picture(store, 1000)
    store.ingest(delivered([step(n, 1000 + n, checkpoint_ms=1) for n in range(1, 100)]))
    seen = picture(store, 3000)
    assert texts(seen)[0] == "verdict: input/workers (was warming-up)"
    assert len(seen.events) == 21


def test_new_worker_processes_are_reported_and_the_first_ones_are_not() -> None:
    store, _ = session()
    store.ingest(delivered([], 1, loaders=[loader()]))
    store.ingest(delivered([], 2, loaders=[loader(worker_pids=(21, 22, 23, 24), iterations=2)]))
    store.ingest(delivered([], 3, loaders=[loader(worker_pids=(25,), iterations=3)]))
    held_out = {"key": 9, "evaluation": True}
    store.ingest(delivered([], 4, loaders=[loader(worker_pids=(26,), **held_out)]))
    store.ingest(delivered([], 5, loaders=[loader(worker_pids=(27,), **held_out)]))
    assert texts(picture(store, 10)) == [
        "4 loader workers started again (iteration 2)",
        "1 loader worker started again (iteration 3)",
    ]


def test_settings_are_those_that_were_reported_last() -> None:
    store, engine = session()
    store.ingest(delivered([], 1))
    picture(store, 1_000)
    assert engine.windows[-1].settings is None
    for reported in (Settings(threads=4), None, Settings(threads=8), None):
        store.ingest(delivered([], 1_500, settings=reported))
    picture(store, 3_000)
    assert engine.windows[-1].settings == Settings(threads=8)


def test_training_loaders_come_first_by_last_use_and_evaluation_is_left_out() -> None:
    store, engine = session()
    store.ingest(delivered([], 1, loaders=[loader(key=1), loader(key=2), loader(key=3)]))
    store.ingest(delivered([], 2, loaders=[loader(key=1), loader(key=3, evaluation=True)]))
    seen = picture(store, 10)
    assert [one.key for one in engine.windows[-1].loaders] == [1, 2]
    assert {one.key for one in seen.loaders} == {1, 2, 3}


def test_cost_is_marks_times_their_price_over_the_time() -> None:
    store, _ = session()
    store.ingest(delivered([], 0, marks=0))
    store.ingest(delivered([], 1000, marks=6000, mark_cost_ns=1000))
    assert picture(store, 1000).status.cost_share == pytest.approx(0.006)


def test_losses_add_up_and_freshness_is_the_age_of_the_last_message() -> None:
    store, _ = session()
    store.ingest(delivered([], 100, lost=2))
    store.ingest(delivered([], 200, lost=3, lost_marks=7, unended=2))
    status = picture(store, 1200).status
    assert (status.lost_messages, status.lost_marks, status.unended_phases) == (5, 7, 2)
    assert status.freshness_s == pytest.approx(1.0)
    assert status.state == "live"
    assert picture(store, 4000).status.state == "silent"


def test_a_silent_link_is_reported_and_comes_back() -> None:
    store, _ = session()
    store.ingest(delivered([], 100))
    store.ingest(Link(t_ns=200 * MS, state="silent"))
    assert picture(store, 300).status.state == "silent"
    store.ingest(delivered([], 400))
    assert picture(store, 500).status.state == "live"


def test_a_probe_that_never_answered_is_not_called_silent() -> None:
    """While a program imports torch its probe is there and says nothing: it was "gone silent"."""
    store, _ = session()
    detail = "the probe's socket does not answer"
    store.ingest(Link(t_ns=200 * MS, state="silent", detail=detail))
    assert texts(picture(store, 300))[-1] == "the probe does not answer yet"
    store.ingest(Greeted(t_ns=400 * MS, hello=HELLO))
    store.ingest(Link(t_ns=900 * MS, state="silent", detail="no message for 3 s"))
    assert texts(picture(store, 1000))[-1] == "the probe is silent: no message for 3 s"


def test_signals_are_missing_until_they_are_taken_back() -> None:
    store, engine = session()
    fix = "install the driver"
    store.ingest(Missing(t_ns=0, source="nvml", reason="no NVIDIA driver", fix=fix))
    assert picture(store, 0).status.missing == (MissingSignal("nvml", "no NVIDIA driver", fix),)
    assert engine.windows[-1].missing == (MissingSignal("nvml", "no NVIDIA driver", fix),)
    store.ingest(Missing(t_ns=1, source="nvml", reason=""))
    assert picture(store, 10).status.missing == ()


def test_what_fails_because_the_process_ended_is_not_missing() -> None:
    store, _ = session()
    store.ingest(Missing(t_ns=0, source="nvml", reason="no NVIDIA driver"))
    store.ingest(Missing(t_ns=9 * S, source="stacks", reason="no such process"))
    store.ingest(TargetEnded(t_ns=10 * S))
    store.ingest(Missing(t_ns=12 * S, source="feed", reason="no message"))
    store.ingest(Link(t_ns=12 * S, state="silent"))
    seen = picture(store, 13_000)
    assert seen.status.missing == (MissingSignal("nvml", "no NVIDIA driver"),)
    assert texts(seen)[-1] == "training ended"


def test_a_probe_that_gave_up_is_missing_by_its_own_words() -> None:
    store, _ = session()
    store.ingest(delivered([], 1, fault="a hook failed: KeyError('x')"))
    assert picture(store, 2).status.missing == (
        MissingSignal("probe", "a hook failed: KeyError('x')"),
    )


def test_memory_points_lie_a_second_apart_whoever_looks() -> None:
    store, engine = session()
    for at_ms in range(0, 10_000, 500):
        store.ingest(delivered([], at_ms, rss_bytes=50 * 1024**2))
        store.ingest(processes(at_ms, process(48213)))
    seen = picture(store, 10_000)
    assert len(seen.memory.host) == 10
    assert seen.memory.available_bytes == 20 * 1024**3
    assert engine.windows[-1].memory_limit_bytes == 100 * 1024**2 + 20 * 1024**3


def test_how_fast_memory_grows_and_whether_it_matters_is_the_verdicts_word() -> None:
    store = Session(48213, "train.py", 0, Engine())
    start = 0.0
    for number in range(1, 161):
        made = [step(number, start, forward_ms=1000)]
        store.ingest(delivered(made, rss_bytes=(1000 + number) * 1024**2))
        start += 1000
        seen = picture(store, start)
    assert not seen.memory.growing, "it fills nothing in sight"
    assert seen.memory.slope_bytes_per_100_steps == pytest.approx(100 * 1024**2)
    (trend,) = seen.trends
    assert trend.whose == "process"
    assert trend.finding is not None
    assert [note.text for note in seen.verdict.notes if trend.finding.headline in note.text]
    assert trend.slope.middle == pytest.approx(1024**2)


def test_flat_memory_has_no_slope() -> None:
    store, _ = session()
    for second in range(120):
        store.ingest(delivered([], 1000 * second, rss_bytes=(1000 + second % 3) * 1024**2))
    memory = picture(store, 120_000).memory
    assert memory.slope_bytes_per_100_steps is None
    assert not memory.growing


def test_worker_memory_is_proportional_once_every_worker_has_reported() -> None:
    store, engine = session()
    store.ingest(processes(0, process(1), process(11, "worker"), process(12, "worker")))
    assert picture(store, 0).memory.workers_bytes is None, "resident sizes share what they count"
    for at_ms, pss in ((1000, 30), (11_000, 40)):
        workers = [process(pid, "worker", pss_bytes=pss * 1024**2) for pid in (11, 12)]
        store.ingest(processes(at_ms, process(1), *workers))
    assert picture(store, 12_000).memory.workers_bytes == 80 * 1024**2
    anew = [process(pid, "worker") for pid in (21, 22)]
    store.ingest(processes(12_500, process(1), *anew))
    assert picture(store, 12_500).memory.workers_bytes == 80 * 1024**2, "an epoch is no jump"
    assert [p.bytes // 1024**2 for p in engine.windows[-1].worker_memory] == [60, 80]


def test_workers_are_judged_over_the_window() -> None:
    store, engine = session()
    for at_ms, cpu, state in ((0, None, "R"), (1000, 80.0, "D"), (2000, 100.0, "R")):
        worker = process(11, "worker", cpu_percent=cpu, status=state, read_bytes_s=cpu)
        store.ingest(processes(at_ms, process(1), worker))
    picture(store, 2500)
    use = engine.windows[-1].workers
    assert use is not None
    assert (use.count, use.cpu_percent, use.read_bytes_s) == (1, 90.0, 90.0)
    assert use.disk_wait_share == pytest.approx(1 / 3)


def test_without_a_gpu_the_sawtooth_is_computing_and_shows_it() -> None:
    store, _ = session()
    store.ingest(delivered(steps(20, data_ms=100, forward_ms=100)))
    sawtooth = picture(store, 4000).sawtooth
    assert sawtooth is not None
    assert (sawtooth.title, sawtooth.source) == ("training %", "hook, 20 ms")
    assert "no GPU: " in sawtooth.note
    assert {point.mean for point in sawtooth.series.levels[0]} == {0.0, 100.0}
    assert len(sawtooth.step_starts_ns) == 21, "and where the step that runs now began"


def test_the_end_stops_the_picture_and_keeps_it() -> None:
    store, engine = session(verdict("input"))
    store.ingest(delivered(steps(20, data_ms=100, forward_ms=100)))
    picture(store, 4900)
    store.ingest(TargetEnded(t_ns=5 * S, signal=9))
    at_once = picture(store, 5000)
    later = picture(store, 65_000)
    assert at_once.status.state == later.status.state == "ended"
    assert later.status.ended == "was killed (signal 9) 60 s ago"
    assert later.open_step == at_once.open_step
    assert later.sawtooth == at_once.sawtooth
    assert later.attached_s == pytest.approx(5.0)
    assert texts(later)[-1] == "training was killed (signal 9)"
    assert [window.ended for window in engine.windows] == [False, True]


@pytest.mark.parametrize(
    ("last", "how"),
    [
        ([], "ended 2 s ago"),
        ([Link(t_ns=4 * S, state="left", detail="exiting")], "exited 2 s ago"),
        ([Link(t_ns=4 * S, state="left", detail="raised OSError")], "was ended by OSError 2 s ago"),
        ([page(STATE_ENDED)], "exited 2 s ago"),
        ([page(STATE_ARMED)], "was killed or crashed 2 s ago"),
    ],
)
def test_without_an_exit_status_the_probe_reports(last: list[AnyObservation], how: str) -> None:
    store, _ = session()
    for observation in [*last, TargetEnded(t_ns=5 * S)]:
        store.ingest(observation)
    assert (picture(store, 7000).status.ended or "").startswith(how)


def test_memory_is_bounded_whatever_comes() -> None:
    store, _ = session()
    for i in range(300):
        store.ingest(delivered(steps(50, 50 * i + 1, 50 * i, forward_ms=1)))
    assert len(picture(store, 20_000).recent) == 200
    assert len(store._stores.steps._rows) == 8192
