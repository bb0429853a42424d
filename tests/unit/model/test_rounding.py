"""What is kept: order, equality and sums survive the rounding; twice is once."""

from hypothesis import given
from hypothesis import strategies as some
from msgspec import structs

from gpuwatch.tui.model.observations import Delivered, ProcessesSeen
from gpuwatch.tui.recording.tape import kept
from tests.unit.recording.a_run import a_run
from tests.unit.session.making import delivered, process, processes, step

NS = some.integers(0, 10**9)


def test_rounding_twice_changes_nothing_more() -> None:
    once = [kept(seen) for seen in a_run(5)]
    assert [kept(seen) for seen in once] == once


def test_what_is_around_the_target_is_rounded_as_it_is() -> None:
    rank = process(9, "rank", rank=1, parent=7, cpu_percent=12.3456, pin_cpu_percent=3.14159)
    seen = kept(structs.replace(processes(1_000, process(8, parent=7)), around=(rank,)))
    assert isinstance(seen, ProcessesSeen)
    (reported,) = seen.around
    assert (reported.cpu_percent, reported.pin_cpu_percent) == (12.3, 3.1)
    assert (reported.rank, reported.parent) == (1, 7)


@given(some.integers(0, 10**12), some.lists(NS, min_size=4, max_size=4), NS)
def test_phases_still_add_up_to_the_step(start_ns: int, parts: list[int], own_ns: int) -> None:
    names = ("data_ms", "forward_ms", "backward_ms", "other_ms")
    given_parts = {name: ns / 1e6 for name, ns in zip(names, parts, strict=True)}
    row = step(1, start_ns / 1e6, phases={"augment": own_ns}, **given_parts)
    seen = kept(delivered([row]))
    assert isinstance(seen, Delivered)
    rounded = seen.batch.steps[0]
    reported = rounded.data_ns + rounded.forward_ns + rounded.backward_ns + rounded.other_ns
    assert reported + rounded.phases["augment"] == rounded.end_ns - rounded.start_ns
    assert 0 <= row.start_ns - rounded.start_ns < 1_000
    assert abs(row.data_ns - rounded.data_ns) < 1_000
    assert rounded.data_max_ns == rounded.data_ns


def test_steps_that_touch_still_touch() -> None:
    first = step(1, 0.0001234, forward_ms=3.3333337)
    second = step(2, first.end_ns / 1e6, forward_ms=1.0)
    seen = kept(delivered([first, second]))
    assert isinstance(seen, Delivered)
    rounded = seen.batch.steps
    assert rounded[0].end_ns == rounded[1].start_ns
