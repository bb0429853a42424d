"""The clock of another machine: laid on ours by round trips, standing while nothing comes."""

from gpuwatch.tui.remote.far_clock import HOLD_NS, FarClock

MS = 1_000_000
S = 1_000 * MS
AHEAD = 500 * S


class Held:
    """Our own clock, moved by hand."""

    def __init__(self) -> None:
        self.ns = 1_000 * S

    def now_ns(self) -> int:
        return self.ns

    def now_unix(self) -> float:
        return self.ns / 1e9

    def own_cpu_ns(self) -> int:
        return 0


def test_the_offset_is_that_of_the_shortest_round_trip() -> None:
    near = Held()
    far = FarClock(near)
    far.begin(near.ns + AHEAD)
    for length_ms, one_way_ms in ((300, 250), (20, 12), (90, 5)):
        sent_ns = near.ns
        near.ns += length_ms * MS
        far.answered(sent_ns, sent_ns + one_way_ms * MS + AHEAD, sent_ns / 1e9 + 3.0)
    assert far.best is not None
    assert far.best.length_ns == 20 * MS
    assert abs(far.best.ahead_ns - AHEAD) <= 10 * MS
    assert abs(far.best.ahead_unix_s - 3.0) <= 0.011


def test_the_runs_time_stands_while_nothing_comes_and_never_goes_back() -> None:
    near = Held()
    far = FarClock(near)
    far.begin(near.ns + AHEAD)
    stood_ns = near.ns + AHEAD + HOLD_NS
    near.ns += 20 * S
    assert far.now_ns() == stood_ns
    assert far.free_ns() == near.ns + AHEAD
    far.answered(near.ns, near.ns + AHEAD - S, 0.0)
    assert far.now_ns() == stood_ns
    far.reached(near.ns + AHEAD)
    assert far.now_ns() == near.ns + AHEAD - S


def test_after_the_end_of_the_run_it_goes_on() -> None:
    near = Held()
    far = FarClock(near)
    far.begin(near.ns + AHEAD)
    far.run_free()
    near.ns += 60 * S
    assert far.now_ns() == near.ns + AHEAD


def test_an_answer_to_a_ping_of_the_future_is_none() -> None:
    near = Held()
    far = FarClock(near)
    far.answered(near.ns + S, 0, 0.0)
    assert far.best is None
