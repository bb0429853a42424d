"""What is dear to read is read rarely."""

from gpuwatch.tui.sources.system import Pace

S = 10**9


def test_the_first_time_is_at_once_and_the_next_not_before_the_least_pause() -> None:
    pace = Pace(least_ns=10 * S, share=0.001)
    assert pace.is_due(5 * S)
    pace.read(5 * S, took_ns=S // 1000)
    assert not pace.is_due(15 * S - 1)
    assert pace.is_due(15 * S)


def test_what_takes_long_waits_for_its_share() -> None:
    pace = Pace(least_ns=10 * S, share=0.001)
    pace.read(0, took_ns=S // 10)
    assert not pace.is_due(100 * S - 1)
    assert pace.is_due(100 * S)
