"""Where the steps began."""

from gpuwatch.tui.session.steps import HELD, EdgeStore
from gpuwatch.tui.timeseries.series import NO_STEPS, StepEdges
from tests.unit.session.making import MS, steps


def test_edges_are_the_starts_and_the_newest_end() -> None:
    store = EdgeStore()
    assert len(store.edges()) == 0
    store.ended(steps(3, data_ms=10, forward_ms=30))
    edges = store.edges()
    assert [edge // MS for edge in edges] == [0, 40, 80, 120]
    assert edges[-1] == 120 * MS
    assert edges[1:3] == (40 * MS, 80 * MS)


def test_how_many_lie_before_a_moment() -> None:
    edges = StepEdges.of((100, 200, 300))
    moments = (50, 100, 101, 200, 300, 301)
    assert [edges.before(t_ns) for t_ns in moments] == [0, 0, 1, 1, 2, 3]
    assert NO_STEPS.before(5) == 0


def test_which_step_ran_at_a_moment() -> None:
    edges = StepEdges.of((100, 200, 300), number=7)
    moments = (99, 100, 199, 200, 300, 10_000)
    assert [edges.number_at(t_ns) for t_ns in moments] == [None, 7, 7, 8, 9, 9]
    assert NO_STEPS.number_at(5) is None


def test_it_is_bounded_and_what_it_gave_stays() -> None:
    store = EdgeStore()
    many = steps(1_000, forward_ms=1)
    store.ended(many)
    early = store.edges()
    were = tuple(early)
    for _ in range(100):
        store.ended(many)
    assert len(store.edges()) == HELD + 1
    assert tuple(early) == were
