"""The two clocks, on steps small enough to follow by hand. Times in any unit."""

import pytest

from gpuwatch.tui.verdict.forecast.measured import _working
from gpuwatch.tui.verdict.forecast.replay import Removal, Segment, StepReplay, replay
from gpuwatch.tui.verdict.forecast.segments import HostSeen, MeasuredSegment, segments_of, spans_of
from tests.unit.verdict.on_gpu import gpu_step
from tests.unit.verdict.windows import S, step


def course(*stretches: Segment, ahead: float = 1_000.0) -> StepReplay:
    return StepReplay(steps=((1, stretches),) * 20, step_ns=100.0, lag_ns=0.0, ahead_ns=ahead)


def test_a_host_that_is_slower_sets_the_pace() -> None:
    loop = course(Segment("data", 30, 0), Segment("forward", 50, 20))
    assert replay(loop) == pytest.approx(80)
    assert replay(Removal(host={"data": 0.0}).of(loop)) == pytest.approx(50)


def test_what_the_host_does_while_the_gpu_works_costs_nothing() -> None:
    loop = course(Segment("data", 30, 0), Segment("forward", 5, 90))
    assert replay(loop) == pytest.approx(90)


@pytest.mark.parametrize(("lag_ms", "part"), [(2.7, 1.0), (35.0, 0.29), (400.0, 0.026)])
def test_a_short_lead_that_is_never_lost_is_no_idle_host(lag_ms: float, part: float) -> None:
    """ng-video-lecture's GPT: an H200 that was 3 ms behind in steps of 45 was to gain 1.7x by tf32,
    as if its host did nothing. It gained 1.2x: the host launched nearly all the time."""
    lag_ns, half_ns = lag_ms * 1e6, 2e7
    row = [
        MeasuredSegment(name, half_ns, half_ns, lag_ns, lag_ns) for name in ("forward", "backward")
    ]
    segments = segments_of(row, (half_ns, half_ns), 1e5, late=False, seen=HostSeen(0.0))
    assert [one.host_ns / half_ns for one in segments] == pytest.approx([part] * 2, rel=0.02)


@pytest.mark.parametrize(("gap_ms", "left_ms"), [(0.0, 40.0), (2.0, 250.0)])
def test_a_host_far_ahead_issues_a_net_for_no_longer_than_its_tensors_take(
    gap_ms: float, left_ms: float
) -> None:
    """A GPT in fp32 on an H200, 540 ms behind and more all the time, whose loss is read in one of
    three steps: 1.45 s of its backward were the host's, and bf16 was to give 1.9x. It gave 7.6x. A
    GPU that has gaps there is short of launches."""
    row = [
        MeasuredSegment("backward", 250e6, 190e6, 300e6, 240e6),
        MeasuredSegment("other", 240e6, 0.0, 240e6, 0.0),
    ]
    seen = HostSeen(0.0, issued_ns=40e6)
    held, *_ = segments_of(row, (190e6 - gap_ms * 1e6, 0.0), 1e6, False, seen)
    assert held.host_ns / 1e6 == pytest.approx(left_ms)


def test_what_the_host_works_beside_a_wait_is_what_samples_show_there() -> None:
    """An MLP that reads its loss in one of ten steps: of a wait of 1.0 s samples met 0.7, and the
    rest was work, 4.4x by bf16. It gave 10.7x."""
    row = [MeasuredSegment("other", 1_000e6, 0.0, 1_000e6, 0.0)]

    def worked_ms(between: float) -> float:
        seen = HostSeen(0.36, between=between)
        segments = segments_of(row, (0.0,), 2e6, late=False, seen=seen, waited_ns=700e6)
        return sum(one.host_ns for one in segments) / 1e6

    assert worked_ms(1.0) == pytest.approx(300.0)
    assert worked_ms(0.02) == pytest.approx(700.0 * 0.02 / 0.36)
    assert worked_ms(0.0) == 0.0


def test_a_copy_in_the_forward_waits_for_what_is_queued_before_it() -> None:
    """18 % of the samples in `batch.to(device)` from pageable memory, 56 ms behind as it begins: a
    GPU of half the time would hold it up for half as long (2.6x by tf32, 1.4x was said). A line
    that copies in one of 200 samples did not wait."""
    row = [
        MeasuredSegment("data", 2.0, 0.3, 56.0, 54.3),
        MeasuredSegment("forward", 70.0, 96.0, 54.3, 80.3),
        MeasuredSegment("backward", 190.0, 166.0, 80.3, 56.3),
    ]
    worked = (0.0, 96.0, 162.0)
    for copied, left in ((0.0, 70.0), (0.005, 70.0), (0.18, 70.0 - 54.3)):
        segments = segments_of(row, worked, 2.7, late=False, seen=HostSeen(0.18, copied))
        forward = sum(one.host_ns for one in segments if one.name == "forward")
        assert forward == pytest.approx(left)


def test_what_lies_between_a_copy_and_a_read_is_not_gained_without_the_read() -> None:
    """NARRE on an H200: its batch is made of lists and copied, 36 ms behind, and its loss is read
    17 ms behind. Read more rarely it ran 1.04x as fast; 1.26x was forecast, as though the host's 17
    ms lay behind the read."""
    row = [
        MeasuredSegment("data", 0.3, 0.0, 36.1, 35.8),
        MeasuredSegment("forward", 70.0, 34.5, 35.8, 0.04),
        MeasuredSegment("backward", 4.8, 41.9, 0.04, 37.1),
        MeasuredSegment("optimizer", 1.4, 0.7, 37.1, 36.4),
    ]
    worked, seen = (0.0, 17.4, 41.9, 0.7), HostSeen(0.75, 0.35)
    segments = segments_of(row, worked, 0.8, late=False, seen=seen)
    loop = StepReplay(((1.0, segments),), 77.0, 36.0, 1_000.0, copies_wait=True)
    read, copy = Removal(waits=True), Removal(copies=True)
    assert replay(loop) == pytest.approx(77, rel=0.03)
    assert replay(loop) / replay(read.of(loop)) < 1.1
    assert replay(read.joined(copy).of(loop)) == pytest.approx(60, rel=0.02)


def test_a_wait_for_the_gpu_puts_the_hosts_work_behind_it() -> None:
    loop = course(
        Segment("data", 30, 0), Segment("forward", 5, 90), Segment("wait", 0, 0, waits=True)
    )
    assert replay(loop) == pytest.approx(120)
    assert replay(Removal(waits=True).of(loop)) == pytest.approx(90)
    assert replay(Removal(host={"data": 0.0}).of(loop)) == pytest.approx(90)


def test_a_copy_waits_once_nothing_else_does() -> None:
    """A read of the loss, and a copy in the next forward: without the read the host is held up by
    the copy, and hides no more than what it does between them. Without both it never waits."""
    row = (
        Segment("data", 10, 0),
        Segment("forward", 50, 20),
        Segment("backward", 5, 60),
        Segment("wait", 0, 0, waits=True),
        Segment("optimizer", 10, 5),
    )
    free = course(*row)
    copied = StepReplay(free.steps, 100.0, 0.0, 1_000.0, copies_wait=True)
    assert replay(copied) == replay(free) == pytest.approx(130)
    read, copy = Removal(waits=True), Removal(copies=True)
    assert replay(read.of(free)) == pytest.approx(85)
    assert replay(read.of(copied)) == pytest.approx(115)
    assert replay(copy.of(copied)) == pytest.approx(130)
    assert replay(read.joined(copy).of(copied)) == pytest.approx(85)


def test_a_late_batch_leaves_the_gpu_idle_however_far_the_host_is_ahead() -> None:
    loop = course(Segment("data", 0, 0, idle_ns=25), Segment("forward", 5, 90))
    assert replay(loop) == pytest.approx(115)
    assert replay(loop.at_best()) == pytest.approx(90)
    assert replay(Removal(device={"data": 0.0}).of(loop)) == pytest.approx(90)


def test_a_full_queue_holds_the_host_back() -> None:
    """Three short steps and a long pause of the host: what hides it is the queue's depth."""
    rows = ((1, (Segment("forward", 10, 50),)),) * 3 + ((1, (Segment("other", 100, 0),)),)
    deep = StepReplay(rows * 10, 50.0, 0.0, ahead_ns=1_000.0)
    shallow = StepReplay(rows * 10, 50.0, 0.0, ahead_ns=60.0)
    assert replay(deep) == pytest.approx(150 / 4)
    assert replay(shallow) == pytest.approx((150 + 40) / 4)


def test_a_row_of_several_steps_weighs_as_many() -> None:
    loop = StepReplay(
        ((3, (Segment("forward", 10, 0),)), (1, (Segment("forward", 50, 0),))), 20.0, 0.0, 100.0
    )
    assert replay(loop) == pytest.approx((3 * 10 + 50) / 4)


def test_two_removals_take_two_parts() -> None:
    both = Removal(host={"forward": 0.6}).joined(Removal(host={"forward": 0.7, "data": 0.0}))
    assert both.host == {"forward": pytest.approx(0.3), "data": 0.0}
    assert Removal(host={"other": 0.4}).joined(Removal(host={"other": 0.2})).host == {"other": 0.0}


def recurrent(waited: float | None) -> StepReplay:
    """An LSTM on an H200 that is busy for half of a step of 16, and 0.4 behind in the middle."""
    row = (
        MeasuredSegment("forward", 8.0, 8.3, 0.1, 0.4),
        MeasuredSegment("backward", 8.0, 7.7, 0.4, 0.1),
    )
    segments = segments_of(row, (4.2, 4.2), 0.15, False, HostSeen(waited))
    return StepReplay(((1, segments),) * 20, 16.0, 0.1, 16.0)


def test_a_host_that_loses_little_of_a_lead_does_not_wait_where_no_sample_shows_it() -> None:
    """1.5x was said for a graph of the net, and 1.95x measured: its backward was all wait."""
    graph = Removal(host={"forward": 0.3, "backward": 0.3})
    assert replay(recurrent(0.04)) == pytest.approx(16.0)
    assert replay(graph.of(recurrent(0.04))) == pytest.approx(8.4)
    waits = recurrent(0.4)
    assert any(one.name == "wait" for _, row in waits.steps for one in row)
    assert replay(graph.of(waits)) > 8.4


def test_a_gpu_that_was_nearly_caught_up_with_idled_in_both_phases() -> None:
    """All of an LSTM's forward was taken to be work, and none of its backward."""
    spans = [
        list(one)
        for one in (
            (
                MeasuredSegment("forward", 8.0, 8.3, 0.1, 0.4),
                MeasuredSegment("backward", 8.0, 7.7, 0.4, 0.1),
            ),
        )
    ]
    [worked] = _working(spans, [1.0], 1.0, 8.0, 0.0, 0.15)
    assert worked == [pytest.approx(4.15), pytest.approx(3.85)]


@pytest.mark.parametrize("other_ms", [0.0, 4.0])
def test_python_beside_a_checkpoint_is_shared_by_both_clocks_times(other_ms: float) -> None:
    """A GPU that is behind may reach both ends of a checkpoint, and of the Python beside it, at
    once: there is nothing of its time to share. The judge ended in a division by zero."""
    host = step(1, S, forward_ms=50, other_ms=6, checkpoint_ms=9)
    spans = spans_of(host, gpu_step(host, forward_ms=55, other_ms=other_ms), 3_000_000, 0, 0.25)
    in_ms = {one.name: (one.host_ns / 1e6, one.device_ns / 1e6) for one in spans}
    assert in_ms == {
        "forward": (50.0, 55.0),
        "other": (3.0, other_ms / 2),
        "evaluation": (2.25, 0.75 * other_ms / 2),
        "checkpoint": (9.75, 0.25 * other_ms / 2),
    }
