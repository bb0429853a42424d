"""That collectives are not known is said once it has been so for long."""

from gpuwatch.tui.sources.lacking import LONG_NS, Lacking, has_collectives
from gpuwatch.tui.verdict.job.matching import Bounds, Collective
from tests.unit.session.making import MS, S


def test_what_lacks_for_long_is_said_until_it_comes() -> None:
    lacking = Lacking()
    assert not lacking.for_long(3 * S, lacks=True)
    assert not lacking.for_long(3 * S + LONG_NS - 1, lacks=True)
    assert lacking.for_long(3 * S + LONG_NS, lacks=True)
    assert not lacking.for_long(4 * S + LONG_NS, lacks=False)
    assert not lacking.for_long(5 * S + LONG_NS, lacks=True)


def test_steps_without_collectives_lack_none() -> None:
    ended = (Bounds(1, 0, S), Bounds(2, S, 2 * S))
    first = Collective("0", 1, "nccl:all_reduce", 8, 500 * MS, MS)
    later = Collective("0", 2, "nccl:all_reduce", 8, 2 * S, MS)
    assert has_collectives(ended, [first, later])
    assert not has_collectives(ended, [later])
    assert not has_collectives(ended, [])
    assert not has_collectives((), [first])
