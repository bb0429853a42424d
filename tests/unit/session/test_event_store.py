"""Events know their kind, and allocators have theirs."""

from msgspec import structs

from gpuwatch.tui.session.events import (
    MOMENTS_OF_A_KIND,
    MOST_LOADERS,
    EventStore,
    RunEventStore,
)
from gpuwatch.tui.steps import GpuMemory
from gpuwatch.tui.verdict.window_selection import PaceChange
from tests.unit.session.making import S, loader, step

READING = GpuMemory(S, 10, 0, 0, 0, 0, 0, 0, None, 3, 0)


def reported(store: EventStore, t_s: int, retries: int, ooms: int = 0, device: int = 0) -> None:
    store.allocator_reported(
        structs.replace(
            READING, t_ns=t_s * S, step=10 * t_s, device=device, retries=retries, ooms=ooms
        )
    )


def test_what_an_allocator_did_before_it_was_seen_is_no_event() -> None:
    store = EventStore()
    reported(store, 1, retries=3)
    reported(store, 2, retries=3)
    assert store.newest() == ()


def test_an_allocator_that_had_to_empty_its_cache_is_reported_once() -> None:
    store = EventStore()
    reported(store, 1, retries=3)
    reported(store, 2, retries=4)
    reported(store, 2, retries=4)  # sent again after a reconnection
    reported(store, 3, retries=7)
    reported(store, 3, retries=90, device=1)
    reported(store, 4, retries=8, ooms=2)
    assert [(event.kind, event.step, event.text) for event in store.newest()] == [
        ("allocator", 20, "1 allocation had to empty the cache first"),
        ("allocator", 30, "3 allocations had to empty the cache first"),
        ("allocator", 40, "GPU out of memory 2 times"),
    ]


def test_every_event_has_a_kind() -> None:
    store = EventStore()
    store.step_ended(step(4, 5, checkpoint_ms=1, evaluation_ms=2))
    store.loader_reported(S, 4, loader())
    store.loader_reported(2 * S, 5, loader(worker_pids=(21, 22), iterations=2))
    assert [event.kind for event in store.newest()] == ["checkpoint", "evaluation", "workers"]


def test_what_is_shorter_than_a_second_is_reported_in_milliseconds() -> None:
    store = EventStore()
    store.step_ended(step(4, 0, checkpoint_ms=47.8, evaluation_ms=4_130))
    assert [event.text for event in store.newest()] == ["checkpoint 47.8 ms", "evaluation 4.1 s"]


def test_a_change_of_pace_shows_the_new_time_first_and_which_way_it_went() -> None:
    store = EventStore()
    store.pace_changed(
        step(4, 5, forward_ms=1), PaceChange(3, 25e6, 28.6e6, "data wait 18 ms → 21 ms")
    )
    store.pace_changed(step(40, 900, forward_ms=1), PaceChange(30, 28.6e6, 14e6))
    assert [(event.text, event.better) for event in store.newest()] == [
        ("step time 29 ms, +14% (was 25 ms): data wait 18 ms → 21 ms", False),
        ("step time 14 ms, -51% (was 29 ms)", True),
    ]


def test_a_change_of_pace_that_comes_again_takes_the_place_of_the_one_before() -> None:
    store = EventStore()
    for at in range(3):
        store.pace_changed(step(100 * at, 5_000 * at, forward_ms=1), PaceChange(3, 32e6, 96e6))
        store.pace_changed(step(100 * at + 50, 5_000 * at + 2_500), PaceChange(3, 96e6, 33e6))
    assert [(event.step, event.text) for event in store.newest()] == [
        (200, "step time 96 ms, +200% (was 32 ms) · 3 times so far"),
        (250, "step time 33 ms, -66% (was 96 ms) · 3 times so far"),
    ]


def test_a_run_that_makes_loaders_for_ever_is_not_remembered_whole() -> None:
    events, moments = EventStore(), RunEventStore()
    for number in range(3_000):
        made = loader(key=number, worker_pids=(number,))
        events.loader_reported(number * S, number, made)
        moments.loader_reported(number, made)
    assert len(events._worker_pids) == len(moments._loaders) == MOST_LOADERS
    assert len(moments.all()) == MOMENTS_OF_A_KIND, "and the epochs that are held are all there"
