"""What is reported of memory that grows: when it is full, where it began, what it comes from."""

import dataclasses
import random
import re
from collections.abc import Callable
from itertools import count
from typing import Any

import pytest
from msgspec.structs import replace

from gpuwatch.tui.steps import GpuMemory
from gpuwatch.tui.verdict.engine import Engine
from gpuwatch.tui.verdict.findings import Finding
from gpuwatch.tui.verdict.memory_watch import MemoryWatch
from gpuwatch.tui.verdict.stack_samples import Stacks
from gpuwatch.tui.verdict.window import MemoryPoint, RunEvent, StepWindow
from tests.unit.verdict.windows import GIB, MIB, S, even, memory, window

ROWS = even(600, forward_ms=40, backward_ms=60)
"""Steps of 100 ms: a point a second is one in 10 steps."""


def judged(seen: StepWindow, **series: Any) -> Finding | None:
    """What the watch says at the end of a run of which it saw every second."""
    watch = MemoryWatch()
    found: tuple[Finding, ...] = ()
    for second in range(1, max(len(points) for points in series.values()) + 1):
        reported = {name: tuple(points[:second]) for name, points in series.items()}
        found = watch.update(with_fields(seen, reported))
    return found[0] if found else None


def with_fields(seen: StepWindow, fields: dict[str, Any]) -> StepWindow:
    return dataclasses.replace(seen, **fields)


def rising(bytes_a_step: float, seconds: int = 60) -> list[MemoryPoint]:
    return memory(lambda step: GIB + bytes_a_step * step, seconds, steps_s=10.0)


def on_device(held_of: Callable[[int], float], seconds: int = 60, **fields: Any) -> list[GpuMemory]:
    """The allocator's readings, one a second of 10 steps; its cache holds a fifth more."""
    return [
        GpuMemory(
            t_ns=S * second,
            step=10 * second,
            device=0,
            allocated=(held := round(held_of(10 * second))),
            reserved=held * 6 // 5,
            active=held,
            peak_allocated=held + 2 * GIB,
            peak_reserved=held + 2 * GIB,
            at_backward=held + GIB,
            retries=0,
            ooms=0,
            **{name: of(10 * second) for name, of in fields.items()},
        )
        for second in range(1, seconds + 1)
    ]


# -- when it is full ---------------------------------------------------------------------------


def test_the_forecast_is_a_range_and_urgent_when_it_is_near() -> None:
    points = rising(2 * MIB)
    limit = points[-1].bytes + 400 * MIB
    near = judged(window(ROWS, memory_limit_bytes=limit), memory=points)
    assert near is not None
    assert (near.sub, near.severity) == ("leak", "critical")
    assert near.headline == "host memory grows 200 MiB per 100 steps, full in 1 min"
    # The last test of a memory lies up to 25 steps back.
    assert near.evidence[1].text == "memory is full in 210 steps (1 min)"


def test_a_pace_that_is_not_sure_makes_a_range() -> None:
    chance = random.Random(3)
    points = memory(lambda step: GIB + MIB * (step + chance.uniform(0, 40)), 160, steps_s=10.0)
    found = judged(window(ROWS, memory_limit_bytes=points[-1].bytes + 10_000 * MIB), memory=points)
    assert found is not None
    assert found.sub == "leak"
    reported = re.fullmatch(
        r"memory is full in ([\d,]+) to ([\d,]+) steps \((\d+) to (\d+) min\)",
        found.evidence[1].text,
    )
    assert reported is not None
    earliest, latest, first, last = (int(part.replace(",", "")) for part in reported.groups())
    assert 8_000 < earliest < 10_000 < latest < 12_500
    assert (first, last) == (round(earliest / 600), round(latest / 600))


def test_one_test_that_fails_ends_no_trend() -> None:
    """A leak with plateaus: 18 to 25 alerts for the same memory in half an hour."""
    draw, watch, level = random.Random(0), MemoryWatch(), 2.0 * GIB
    points: list[MemoryPoint] = []
    lost = held = 0
    for second in range(900):
        level += draw.uniform(0, 2.4) * MIB * (second // 97 % 3 != 2)
        points.append(
            MemoryPoint(20 + 10 * second, second * S, int(level + draw.gauss(0, 10) * MIB))
        )
        at = {"memory": tuple(points), "steps_seen": 20 + 10 * second}
        grows = bool(watch.update(with_fields(window(ROWS, warm_step=10), at)))
        held += grows
        lost += grows and not watch.trends
    assert held > 300
    assert lost == 0


def test_growth_that_is_not_confirmed_has_no_forecast() -> None:
    far = judged(window(ROWS, memory_limit_bytes=999 * GIB), memory=rising(2 * MIB))
    assert far is not None
    assert (far.sub, far.severity) == ("growth", "info")
    assert not any("full" in evidence.text for evidence in far.evidence)


def test_a_leak_that_lasts_for_days_is_no_emergency() -> None:
    points = rising(MIB, seconds=140)
    for limit, severity in ((GIB + 10**6 * MIB, "warning"), (GIB + 10**5 * MIB, "critical")):
        found = judged(window(ROWS, memory_limit_bytes=limit), memory=points)
        assert found is not None
        assert (found.sub, found.severity) == ("leak", severity)


def test_growth_that_bends_is_not_drawn_on_as_a_line() -> None:
    bending = memory(lambda step: GIB + 3 * GIB * (1 - 0.99 ** (step / 4)), 60, steps_s=10.0)
    limit = bending[-1].bytes + 300 * MIB
    found = judged(window(ROWS, memory_limit_bytes=limit), memory=bending)
    assert found is None or found.sub == "growth"


def test_on_the_device_the_peak_counts_and_free_pieces_do_not() -> None:
    readings = on_device(lambda step: GIB + 2 * MIB * step, inactive_split=lambda step: GIB)
    # 2.2 GiB are held at the end and 2 GiB more are needed within a step; 1 GiB is in pieces.
    limit = readings[-1].peak_allocated + GIB + 400 * MIB
    seen = window(ROWS, gpu_present=True, gpu_memory_limit_bytes=limit)
    found = judged(seen, gpu_memory=readings)
    assert found is not None
    assert found.headline == "GPU memory grows 200 MiB per 100 steps, full in 1 min"
    assert found.evidence[0].source == "hook"
    assert found.evidence[1].value == pytest.approx(200, abs=25)


def test_a_peak_of_long_ago_is_not_what_a_step_needs() -> None:
    readings = [
        replace(reading, peak_allocated=60 * GIB)
        for reading in on_device(lambda step: GIB + 2 * MIB * step)
    ]
    limit = (readings[-1].at_backward or 0) + 400 * MIB
    seen = window(ROWS, gpu_present=True, gpu_memory_limit_bytes=limit)
    found = judged(seen, gpu_memory=readings)
    assert found is not None
    assert found.evidence[1].value == pytest.approx(200, abs=25)


# -- where it began ----------------------------------------------------------------------------


def test_the_step_where_it_began_and_what_happened_there() -> None:
    late = memory(lambda step: GIB + MIB * max(0, step - 1_000), 160, steps_s=10.0)
    moments = (RunEvent(400, "evaluation"), RunEvent(1_000, "evaluation"))
    found = judged(window(ROWS, moments=moments), memory=late)
    assert found is not None
    began = found.evidence[0].text.split("since about step ")[1]
    assert began.endswith(" (evaluation at step 1,000)")
    assert int(began.split(" ")[0].replace(",", "")) == pytest.approx(1_000, abs=25)


def test_memory_that_always_grew_has_no_such_step() -> None:
    found = judged(window(ROWS), memory=rising(MIB, seconds=160))
    assert found is not None
    assert "since" not in found.evidence[0].text


# -- what it comes from ------------------------------------------------------------------------


def grown_on_device(alive_of: Callable[[int], int]) -> Finding:
    readings = on_device(lambda step: GIB + 2 * MIB * step, allocations=alive_of)
    found = judged(window(ROWS, gpu_present=True), gpu_memory=readings)
    assert found is not None
    return found


def test_many_tensors_a_step_are_a_graph_that_is_kept() -> None:
    found = grown_on_device(lambda step: 500 + 20 * step)
    assert found.evidence[-1].text == "20.0 tensors of 0.1 MiB on average stay after each step"
    assert found.advice[0].startswith("append loss.item(), not loss")


def test_few_large_ones_are_a_list_or_a_cache() -> None:
    found = grown_on_device(lambda step: 500 + step)
    assert found.evidence[-1].text == "1.0 tensors of 2.0 MiB on average stay after each step"
    assert found.advice[0].startswith("look for a list or cache of GPU tensors")


def test_as_many_as_before_become_larger() -> None:
    found = grown_on_device(lambda step: 500 + step % 3)
    assert "not in number" in found.evidence[-1].text
    assert "torch.cat" in found.advice[0]


def test_growth_that_comes_with_evaluations() -> None:
    held = memory(lambda step: GIB + 30 * MIB * (step // 70), 60, steps_s=10.0)
    moments = tuple(RunEvent(step, "evaluation") for step in range(70, 600, 70))
    found = judged(window(ROWS, moments=moments), memory=held)
    assert found is not None
    assert found.evidence[-1].text == "100% of it comes with evaluations, 30 MiB each"
    assert "evaluation keeps" in found.advice[0]


def test_growth_from_one_epoch_to_the_next_is_seen_over_epochs() -> None:
    """Half a minute of each epoch is level: no window of 300 steps shows more than one jump."""
    held = memory(lambda step: GIB + 40 * MIB * (step // 400), 500, steps_s=10.0)
    moments = tuple(RunEvent(step, "epoch") for step in range(400, 5_000, 400))
    found = judged(window(ROWS, moments=moments), memory=held)
    assert found is not None
    assert "over 2,800 steps" in found.evidence[0].text or "over 3" in found.evidence[0].text


def test_workers_that_grow_alike_copy_what_they_touch() -> None:
    seen = window(ROWS, workers_grown=(120 * MIB, 130 * MIB))
    found = judged(seen, worker_memory=rising(2 * MIB))
    assert found is not None
    assert found.evidence[-1].text == "each of the 2 workers has grown by 120 MiB to 130 MiB"
    assert "Python lists" in found.advice[0]


def test_one_worker_that_grows_is_a_cache_of_its_own() -> None:
    seen = window(ROWS, workers_grown=(4 * MIB, 130 * MIB))
    found = judged(seen, worker_memory=rising(2 * MIB))
    assert found is not None
    assert "__getitem__" in found.advice[0]


def test_the_process_alone_is_not_the_dataset() -> None:
    found = judged(window(ROWS, workers_grown=(MIB, MIB)), memory=rising(2 * MIB))
    assert found is not None
    assert "the dataset is not the cause" in found.evidence[-1].text
    assert "lists of tensors" in found.advice[0]


# -- beside another verdict --------------------------------------------------------------------


def test_growth_is_the_headline_only_if_nothing_else_holds() -> None:
    for wait_ms, headline in ((0.5, "memory-growth"), (90.0, "input")):
        engine = Engine()
        points = memory(lambda step: GIB + 2 * MIB * step, seconds=60, steps_s=16.0)
        for look in count(40):
            rows = even(150 + look, data_ms=wait_ms, forward_ms=60)
            known = {"memory": tuple(points[:look]), "memory_limit_bytes": 32 * GIB}
            verdict = engine.judge(window(rows, **known))
            if look == 55:
                break
        assert verdict.finding.kind == headline
        beside = "memory-growth" in [finding.kind for finding in verdict.contributors]
        assert beside == (headline == "input")


def test_growth_that_fills_nothing_in_sight_is_a_note() -> None:
    """Caches and libraries that fill in the first hundreds of steps, with 128 GiB free."""
    engine = Engine()
    points = memory(lambda step: GIB + 1.3 * MIB * step, seconds=60, steps_s=3.0)
    for look in range(1, 61):
        rows = even(40 + look, data_ms=0.5, forward_ms=60)
        known = {"memory": tuple(points[:look]), "memory_limit_bytes": 128 * GIB}
        verdict = engine.judge(window(rows, **known))
    assert verdict.finding.kind == "healthy"
    assert verdict.contributors == ()
    assert any(note.text.startswith("host memory grows 130 MiB") for note in verdict.notes)


def test_a_leak_is_reported_before_growth_elsewhere() -> None:
    points = rising(2 * MIB)
    seen = window(ROWS, gpu_present=True, memory_limit_bytes=points[-1].bytes + 400 * MIB)
    readings = on_device(lambda step: GIB + 2 * MIB * step)
    found = judged(seen, memory=points, gpu_memory=readings)
    assert found is not None
    assert found.headline.startswith("host memory")


def test_processes_of_the_programs_own_have_no_dataset() -> None:
    """Four environments were told to keep "the dataset's metadata in arrays"."""
    seen = window(ROWS, workers_grown=(120 * MIB, 130 * MIB), loaders=())
    found = judged(seen, worker_memory=rising(2 * MIB))
    assert found is not None
    assert found.evidence[0].text.startswith("the memory of the processes that it started: ")
    assert found.evidence[-1].text == "each of the 2 has grown by 120 MiB to 130 MiB"
    assert not any("dataset" in one or "__getitem__" in one for one in found.advice)
    in_loop = Stacks(100, (), 40, (), 0.0)
    loads = judged(with_fields(seen, {"stacks": in_loop}), worker_memory=rising(2 * MIB))
    assert loads is not None
    assert "Python lists" in loads.advice[0]
