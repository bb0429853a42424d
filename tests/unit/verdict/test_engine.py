"""The engine: one verdict from all rules, and its memory."""

import random
from typing import Any

import msgspec
import pytest
from msgspec import structs

from gpuwatch.tui.settings import Settings
from gpuwatch.tui.verdict.engine import Engine, _merged
from gpuwatch.tui.verdict.findings import Verdict
from gpuwatch.tui.verdict.scoring import state
from gpuwatch.tui.verdict.window import StepWindow
from tests.unit.verdict.on_gpu import activity, gpu_window
from tests.unit.verdict.rules.test_fragmentation import seen as memory_in_pieces
from tests.unit.verdict.runs import bursty_wait, steady_wait
from tests.unit.verdict.windows import (
    S,
    even,
    flips,
    kinds,
    loader,
    run,
    stacks,
    step,
    watch,
    window,
)
from tests.unit.verdict.with_traces import SEEN, STEP, needless


@pytest.mark.parametrize("share", [0.15, 0.3, 0.6])
def test_a_steady_wait_has_its_verdict_in_twenty_steps_or_ten_seconds(share: float) -> None:
    for work_ms in (10.0, 100.0, 1_000.0):
        rows = run(60 if work_ms > 100 else 1_200, steady_wait(share, 1, work_ms))
        judged = watch(rows)
        ten_s = next(
            (seen for seen, _ in judged if rows[seen - 1].end_ns - rows[0].start_ns > 10**10), 20
        )
        first = next(seen for seen, verdict in judged if verdict.finding.kind == "input")
        assert first <= max(21, ten_s)
        assert set(kinds(judged)) <= {"warming-up", "input"}


def test_a_bursty_wait_has_its_verdict_within_a_hundred_steps() -> None:
    firsts = []
    for seed in range(9):
        judged = watch(run(300, bursty_wait(0.3, seed)))
        firsts.append(next(seen for seen, v in judged if v.finding.kind == "input"))
    assert sorted(firsts)[4] <= 60


@pytest.mark.parametrize("share", [0.0, 0.02, 0.05])
def test_a_small_wait_is_no_verdict(share: float) -> None:
    for seed in range(3):
        for wait in (steady_wait, bursty_wait):
            judged = watch(run(500, wait(share, seed)))
            assert set(kinds(judged)) <= {"warming-up", "healthy"}


def test_between_the_thresholds_it_is_a_contributor() -> None:
    judged = watch(even(200, data_ms=7, forward_ms=93))[-1][1]
    assert judged.finding.kind == "healthy"
    assert [finding.kind for finding in judged.contributors] == ["input"]


def test_two_causes_of_a_size_do_not_take_turns() -> None:
    chance = random.Random(5)
    rows = run(
        800,
        lambda _: {
            "data_ms": 30 * chance.gauss(1, 0.3),
            "other_ms": 30 * chance.gauss(1, 0.3),
            "forward_ms": 60,
        },
    )
    judged = watch(rows, loaders=())
    assert flips(kinds(judged)) == 0
    last = judged[-1][1]
    assert {last.finding.kind, *(f.kind for f in last.contributors)} == {"input", "host"}
    assert last.confidence < 0.9, "which of them is first is not sure"


def test_a_change_of_pace_gets_a_new_verdict_soon() -> None:
    rows = run(160, lambda n: {"data_ms": 1 if n <= 100 else 80, "forward_ms": 60})
    judged = watch(rows)
    assert next(v for seen, v in judged if seen >= 60).finding.kind == "healthy"
    first = next(seen for seen, v in judged if v.finding.kind == "input")
    assert first <= 120
    last = judged[-1][1]
    assert last.since_step is not None
    assert 100 <= last.since_step <= 120
    assert flips(kinds(judged)) == 1


def test_a_verdict_holds_since_it_was_reported() -> None:
    """A probe hands over steps of before the monitor came: "for 9 s" of 5 s of watching is no time
    that anybody watched, and the account of what was reported must add up with it."""
    engine, rows = Engine(), even(300, data_ms=60, forward_ms=40)
    first = engine.judge(window(rows[:200]))
    assert (first.since_ns, first.since_step) == (rows[199].end_ns, 200)
    later = engine.judge(window(rows))
    assert (later.since_ns, later.since_step) == (first.since_ns, first.since_step)
    [entry] = engine.timeline().verdicts
    assert (entry.since_ns, entry.since_step) == (later.since_ns, later.since_step)


def test_memory_that_is_full_soon_comes_before_what_only_takes_time() -> None:
    slow = state("input", None, "warning", "")
    soon = state("memory-growth", "leak", "critical", "")
    some = state("memory-growth", "growth", "warning", "")
    assert _merged([slow], [soon, some]) == (soon, slow, some)


def test_looking_twice_at_the_same_steps_counts_once() -> None:
    engine = Engine()
    rows = run(200, lambda n: {"data_ms": 1 if n <= 190 else 30, "forward_ms": 100})
    engine.judge(window(rows[:190]))
    for _ in range(5):
        judged = engine.judge(window(rows, steps=tuple(rows[90:])))
    assert judged.finding.kind == "healthy"


FORWARD = stacks([(0.85, "forward (model.py:12)", None)])


def test_launching_a_fifth_and_waiting_for_data_a_seventh() -> None:
    """S41 of demo/scenarios/catalogue.json."""
    steps = even(60, data_ms=15, forward_ms=35, backward_ms=46, optimizer_ms=4)
    on_gpu = {"data_ms": 15, "forward_ms": 35, "backward_ms": 46, "optimizer_ms": 4}
    given = {"activity": activity(65.0), "stacks": FORWARD, "loaders": (loader(0),)}
    judged = Engine().judge(gpu_window(steps, on_gpu, **given))
    assert judged.finding.kind == "launch"
    assert judged.finding.share == pytest.approx(0.20, abs=0.01)
    beside = {one.kind: one.share for one in judged.contributors}
    assert beside["input"] == pytest.approx(0.15, abs=0.01)


def test_memory_in_pieces_is_no_headline_beside_what_surely_takes_time() -> None:
    """A generated run on an H200 was told of it, "0% sure"."""
    engine, memory = Engine(), memory_in_pieces(0.3, 0.01).gpu_memory
    of_step = {"data_ms": 15, **STEP}
    shown = structs.replace(SEEN, constant=needless(40_000))
    for known in range(30, 41):
        rows, on_gpu = even(10 * known, **of_step), {**of_step, "lag_ms": 80.0}
        more = {"gpu_memory": memory[:known], "settings": Settings(step_operations=shown)}
        more |= {"activity": activity(85.0), "loaders": (loader(0),)}
        judged = engine.judge(gpu_window(rows, on_gpu, **more))
    assert judged.finding.kind == "compute"
    assert "memory-growth" in [one.kind for one in judged.contributors]


def test_a_load_that_an_item_exposes_is_one_or_the_other() -> None:
    """S11: 30 ms of loading that 90 ms on the GPU would hide, were it not for `loss.item()`."""
    steps = even(60, data_ms=30, forward_ms=2, backward_ms=3, optimizer_ms=1, other_ms=84)
    on_gpu = {"data_ms": 30, "forward_ms": 30, "backward_ms": 57, "optimizer_ms": 3, "lag_ms": 84}
    item = stacks([(0.70, "item (_tensor.py:10)", "train (train.py:40)")])
    given = {"activity": activity(75.0), "stacks": item, "loaders": (loader(0),)}
    judged = Engine().judge(gpu_window(steps, on_gpu, **given))
    shares = {one.kind: one.share for one in (judged.finding, *judged.contributors)}
    assert shares["input"] == pytest.approx(0.25, abs=0.01)
    assert shares["sync"] == pytest.approx(0.25, abs=0.01)


def test_a_crowded_machine_beside_a_serial_loader() -> None:
    """The neighbours take a third, the loader half: first the loader, whatever the machine."""
    rows = even(60, data_ms=50, forward_ms=20, backward_ms=25, optimizer_ms=5)
    crowd = {"run_delay": 0.3, "others_cores": 1.2, "beside_cores": 0.0}
    judged = Engine().judge(window(rows, loaders=(loader(0),), **crowd))
    assert (judged.finding.kind, judged.finding.sub) == ("input", "serial")
    beside = {one.kind: one.share for one in judged.contributors}
    assert beside["contention"] == pytest.approx(0.3)


METRICS = (0.6, "spread_in_python (train.py:70)", None)


def verdict(seen: StepWindow) -> Verdict:
    return Engine().judge(seen)


def test_a_cause_is_named_by_the_first_look_that_has_its_signal() -> None:
    rows = even(60, forward_ms=1.4, backward_ms=1.5, optimizer_ms=0.2, other_ms=32)
    blind = window(rows[:59], gpu_present=True, stacks=None)
    seen = window(rows, gpu_present=True, stacks=stacks(main=[METRICS]))
    engine = Engine()
    assert engine.judge(blind).finding.kind == "incomplete"
    assert engine.judge(seen).finding.kind == "host"


@pytest.mark.parametrize(
    "known",
    [
        {"unused_parameters": 18, "graph_parameters": 20, "unused_nodes": 0.9},
        {"cleared_parameters": 18, "cleared_nodes": 0.9},
    ],
)
def test_gradients_that_turn_out_to_be_unused_take_the_headline_at_once(
    known: dict[str, Any],
) -> None:
    """They are known some seconds after the first steps, by which a smaller cause leads."""
    rows = even(60, data_ms=18, forward_ms=25, backward_ms=50, optimizer_ms=2)
    early = Settings(parameters=20, parameter_device="cpu")
    later = msgspec.structs.replace(early, **known)
    engine = Engine()
    given: dict[str, Any] = {"loaders": (loader(0),)}
    assert engine.judge(window(rows[:59], settings=early, **given)).finding.kind == "input"
    found = engine.judge(window(rows, settings=later, **given)).finding
    assert (found.kind, found.sub) == ("compute", "unused-gradients")


def test_a_step_without_length_is_no_error() -> None:
    rows = [step(n, S) for n in range(1, 60)]
    assert verdict(window(rows)).finding.kind == "incomplete"


def test_what_a_fix_would_not_give_back_is_no_verdict() -> None:
    """Python holds a quarter of the step, and the workers are busy all the time: without it the
    loader is the limit."""
    steps = even(60, data_ms=4, forward_ms=20, backward_ms=40, other_ms=22, optimizer_ms=2)
    at = (0.25, "log (train.py:5)", None)
    seen = stacks(main=[at], workers=[(0.97, "load (data.py:3)", None)], idle=0.03)
    judged = watch(steps, stacks=seen, loaders=(loader(2),), cores=2.0)
    assert judged[-1][1].finding.kind != "host"
