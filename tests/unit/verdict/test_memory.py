"""Memory that grows, and series that only look like it."""

import math
import random
from collections.abc import Callable
from itertools import count

import pytest

from probe.wire.messages import GpuMemory
from tests.unit.verdict.windows import GIB, MIB, S, even, memory, window
from tui.verdict.engine import Engine
from tui.verdict.growth import growth, mann_kendall
from tui.verdict.rules.memory_growth import memory_growth
from tui.verdict.window import MemoryPoint

Series = Callable[[int, random.Random], float]
"""MiB at a step."""


def constant(step: int, chance: random.Random) -> float:
    return 1_000 + chance.gauss(0, 1)


def lengths_that_vary(step: int, chance: random.Random) -> float:
    return 1_000 + abs(chance.gauss(0, 80))


def plateaus(step: int, chance: random.Random) -> float:
    return 1_000 + 100 * min(4, step // 1_000) + chance.gauss(0, 3)


def saturating(step: int, chance: random.Random) -> float:
    return 1_000 + 800 * (1 - math.exp(-step / 300)) + chance.gauss(0, 3)


def sawtooth(step: int, chance: random.Random) -> float:
    return 1_000 + 0.4 * (step % 500) + chance.gauss(0, 2)


def wandering() -> Series:
    """AR(1), 0.95 from one look to the next."""
    state = [0.0]

    def series(step: int, chance: random.Random) -> float:
        state[0] = 0.95 * state[0] + chance.gauss(0, 20)
        return 1_000 + state[0]

    return series


def leaking(mib_a_step: float) -> Series:
    return lambda step, chance: 1_000 + mib_a_step * step + abs(chance.gauss(0, 20))


def looks(series: Series, seed: int, seconds: int, steps_s: float) -> tuple[int | None, int | None]:
    """Seconds until growth was seen three times running, and until it was called a leak."""
    chance = random.Random(seed)
    points: list[MemoryPoint] = []
    running, grown = 0, None
    for second in range(seconds):
        step = 20 + int(second * steps_s)
        points.append(MemoryPoint(step, second * S, int(series(step, chance) * MIB)))
        if second > 60 and second % 5:
            continue
        found = growth(points)
        running = running + 1 if found else 0
        if running >= 3 and grown is None:
            grown = second
        if running >= 3 and found is not None and found.leak:
            return grown, second
    return grown, None


@pytest.mark.parametrize("series", [constant, lengths_that_vary, plateaus])
@pytest.mark.parametrize("steps_s", [2.0, 16.0])
def test_no_growth_where_there_is_none(series: Series, steps_s: float) -> None:
    assert [looks(series, seed, 300, steps_s) for seed in range(6)] == [(None, None)] * 6


@pytest.mark.parametrize("series", [saturating, sawtooth, wandering()])
def test_no_leak_where_growth_may_be_suspected(series: Series) -> None:
    assert [looks(series, seed, 300, 5.0)[1] for seed in range(6)] == [None] * 6


@pytest.mark.parametrize(("mib_a_step", "within_s"), [(2.0, 11), (0.5, 40)])
def test_growth_is_found_early(mib_a_step: float, within_s: int) -> None:
    for seed in range(6):
        grown, leaks = looks(leaking(mib_a_step), seed, 200, 16.0)
        assert grown is not None
        assert grown <= within_s
        assert leaks is not None


def test_mann_kendall() -> None:
    assert mann_kendall([1, 2, 3, 4, 5, 6, 7, 8]) == pytest.approx(3.34, abs=0.01)
    assert mann_kendall([1] * 8) == 0
    assert mann_kendall([8, 7, 6, 5, 4, 3, 2, 1]) < -3


def grown(**fields: object) -> list[MemoryPoint]:
    return memory(lambda step: GIB + 2 * MIB * step, seconds=60, steps_s=16.0)


def test_the_forecast_is_a_range_and_urgent_when_it_is_near() -> None:
    rows = even(200, forward_ms=60)
    points = grown()
    near = window(rows, memory=tuple(points), memory_limit_bytes=points[-1].bytes + 400 * MIB)
    finding = memory_growth(near)
    assert finding is not None
    assert (finding.sub, finding.severity) == ("leak", "critical")
    assert finding.headline == "host memory grows 200 MiB per 100 steps"
    assert "memory is full in 200 to 200 steps" in finding.evidence[1].text
    far = memory_growth(window(rows, memory=tuple(points), memory_limit_bytes=999 * GIB))
    assert far is not None
    assert far.sub == "growth"


def test_workers_that_grow_are_told_from_the_training_process() -> None:
    rows = even(200, forward_ms=60)
    finding = memory_growth(window(rows, worker_memory=tuple(grown())))
    assert finding is not None
    assert "Python lists" in finding.advice[0]


def test_growth_is_the_headline_only_if_nothing_else_holds() -> None:
    for wait_ms, headline in ((0.5, "memory-growth"), (90.0, "input")):
        engine = Engine()
        points = grown()
        for look in count(40):
            rows = even(150 + look, data_ms=wait_ms, forward_ms=60)
            said = engine.judge(window(rows, memory=tuple(points[:look])))
            if look == 45:
                break
        assert said.finding.kind == headline
        assert ("memory-growth" in [f.kind for f in said.contributors]) == (headline == "input")


def on_device(series: Series, seconds: int) -> tuple[GpuMemory, ...]:
    """The allocator's readings, one a second of 10 steps; its cache holds a fifth more."""
    chance = random.Random(7)
    rows = []
    for second in range(seconds):
        held = round(series(10 * second, chance) * MIB)
        reserved = held * 6 // 5
        rows.append(
            GpuMemory(
                S * (second + 1), 10 * second, 0, held, reserved, held, held, reserved, None, 0, 0
            )
        )
    return tuple(rows)


def test_memory_that_grows_on_the_device() -> None:
    readings = on_device(leaking(5.0), 60)
    steps = even(600, forward_ms=40, backward_ms=60)
    seen = window(steps, gpu_present=True, gpu_memory=readings, gpu_memory_limit_bytes=80 * GIB)
    found = memory_growth(seen)
    assert found is not None
    assert found.headline.startswith("GPU memory grows")
    assert found.evidence[0].source == "hook"


def test_memory_that_is_constant_on_the_device() -> None:
    readings = on_device(lengths_that_vary, 60)
    seen = window(even(600, forward_ms=40, backward_ms=60), gpu_memory=readings)
    assert memory_growth(seen) is None
