"""Each pattern in steps that have it, and in steps that have another."""

from collections.abc import Callable

import pytest

from gpuwatch.tui.trace.profile import Pattern, Profile, profile_of
from tests.gpu.by_hand import by_hand
from tests.unit.trace.traces import LAUNCH_US, Steps

Body = Callable[[Steps], None]


def run(body: Body, steps: int = 5) -> Steps:
    """So many steps, of which the first is not used."""
    made = Steps()
    made.end()
    for _ in range(steps):
        body(made)
        made.end()
    return made


def profile(body: Body) -> Profile:
    return profile_of(run(body).window())


def ms_of(found: Profile, pattern: Pattern) -> float:
    return next((one.ns_a_step / 1e6 for one in found.patterns if one.pattern == pattern), 0.0)


def busy(made: Steps) -> None:
    """The device has always work queued."""
    made.fetch(20)
    for _ in range(10):
        made.launch(300)


def launches(made: Steps) -> None:
    made.fetch(5)
    for _ in range(100):
        made.python(30)
        made.launch(4)


def waits_for_data(made: Steps) -> None:
    made.fetch(8_000)
    for _ in range(10):
        made.launch(300)
    made.synchronize()


def asks_each_step(made: Steps) -> None:
    """`.item()`, and then 3 ms of Python that the device would not have noticed."""
    made.fetch(5)
    for _ in range(10):
        made.launch(300)
    made.synchronize()
    made.python(900)


def copies_pageable(made: Steps) -> None:
    made.fetch(5)
    made.upload(5_000, pageable=True)
    for _ in range(10):
        made.launch(300)
    made.synchronize()


def copies_pinned(made: Steps) -> None:
    made.fetch(5)
    made.upload(2_000, pageable=False)
    for _ in range(10):
        made.launch(300)


def computes_in_python(made: Steps) -> None:
    made.fetch(5)
    made.launch(300)
    made.python(6_000)


def computes_metrics(made: Steps) -> None:
    """Fetches results, then computes with them in Python: waiting is not what takes the time."""
    made.fetch(5)
    for _ in range(10):
        made.launch(300)
    made.synchronize()
    made.python(6_000)


def communicates(made: Steps) -> None:
    made.fetch(5)
    made.launch(1_000)
    made.launch(2_000, name="ncclDevKernel_AllReduce_Sum_f32_RING_LL")


BODIES: dict[str, tuple[Body, Pattern | None, float]] = {
    "busy": (busy, None, 0.0),
    "launches": (launches, "launch", 100 * (30 + LAUNCH_US - 4) / 1e3),
    "waits for data": (waits_for_data, "input", 8.0),
    "asks each step": (asks_each_step, "sync", 0.91),
    "copies, pageable": (copies_pageable, "copies", 5.0),
    "copies, pinned": (copies_pinned, "copies", 2.0),
    "Python": (computes_in_python, "host", 5.705),
    "Python behind a wait": (computes_metrics, "host", 6.0),
    "collectives": (communicates, "communication", 2.0),
}


@pytest.mark.parametrize("name", BODIES)
def test_pattern_is_found_with_its_milliseconds(name: str) -> None:
    body, pattern, ms = BODIES[name]
    found = profile(body)
    largest = found.patterns[0] if found.patterns else None
    if pattern is None:
        assert largest is None or largest.share < 0.01
        return
    assert largest is not None
    assert largest.pattern == pattern
    assert ms_of(found, pattern) == pytest.approx(ms, rel=0.03)


@pytest.mark.parametrize("name", BODIES)
def test_parts_add_up_to_the_step(name: str) -> None:
    found = profile(BODIES[name][0])
    parts = [found.compute_ns_a_step, found.device_ns_a_step]
    parts += [one.ns_a_step for one in found.patterns]
    assert sum(parts) == pytest.approx(found.step_ns, abs=2.0)


@pytest.mark.parametrize("name", BODIES)
def test_trace_read_by_hand_shows_the_same(name: str) -> None:
    made = run(BODIES[name][0])
    recorded = made.recorded()
    found = profile_of(made.window())
    hand = by_hand(recorded.data, list(recorded.ends_ns), list(recorded.marks), recorded.anchor)
    assert hand is not None
    assert found.step_ns / 1e6 == pytest.approx(hand["step_ms"], rel=0.001)
    assert found.compute_ns_a_step / 1e6 == pytest.approx(hand["compute_ms"], abs=0.02)
    assert ms_of(found, "input") == pytest.approx(hand["input_ms"], abs=0.02)


def test_wait_that_the_queue_hides_is_nobodys() -> None:
    """A fetch of 2 ms while the device has 3 ms of work left."""

    def body(made: Steps) -> None:
        for _ in range(10):
            made.launch(300)
        made.fetch(2_000)

    assert ms_of(profile(body), "input") == 0.0


def test_sync_costs_no_more_than_it_held_the_host() -> None:
    """A launch-bound loop that asks for a value: the device was idle anyway."""

    def body(made: Steps) -> None:
        launches(made)
        made.synchronize()

    found = profile(body)
    assert found.patterns[0].pattern == "launch"
    assert found.share_of("sync") < 0.01


def test_kernels_of_a_graph_have_no_launch_between_them() -> None:
    def body(made: Steps) -> None:
        made.fetch(5)
        made.launch(100, call="cudaGraphLaunch")
        graph = made.events[-1]
        for _ in range(20):
            made.free_us += 3
            made.events.append({**graph, "ts": made.free_us, "dur": 100.0})
            made.free_us += 100
        made.synchronize()

    found = profile(body)
    assert found.device_ns_a_step / 1e3 == pytest.approx(60, rel=0.05)
    assert found.share_of("launch") < 0.02
    assert found.graph_share == 1.0


def test_line_of_a_wait_is_where_it_was_looked_at() -> None:
    def body(made: Steps) -> None:
        made.fetch(5)
        for _ in range(10):
            made.launch(300)
        made.look("train.py", 31, made.now_us + 500)
        made.synchronize()
        made.python(900)

    found = profile_of(run(body).window(run(body, 3)))
    assert found.patterns[0].pattern == "sync"
    assert found.patterns[0].lines[0][0] == "train.py:31 in step"
    assert found.gaps[0].line == "train.py:31 in step"


def test_a_wait_in_each_layer_is_the_cause_of_all_gaps_that_follow() -> None:
    """Without the waits the host, which launches faster than the device computes, would be ahead
    of all of them."""

    def body(made: Steps) -> None:
        made.fetch(5)
        for _ in range(20):
            made.launch(300)
            made.synchronize()
            for _ in range(4):
                made.python(20)
                made.launch(10)

    found = profile(body)
    assert found.share_of("sync") > 0.15
    assert found.share_of("launch") < 0.02
