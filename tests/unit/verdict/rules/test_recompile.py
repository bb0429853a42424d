"""Recompilation."""

from dataclasses import replace
from typing import Any

import pytest

from gpuwatch.tui.settings import Settings
from gpuwatch.tui.verdict.engine import Engine
from gpuwatch.tui.verdict.findings import Verdict
from gpuwatch.tui.verdict.forecast import gain
from gpuwatch.tui.verdict.forecast.gain import gain_without, gain_without_both
from gpuwatch.tui.verdict.rules.launch import GRAPHS_OF_SIZES, launch
from gpuwatch.tui.verdict.rules.recompile import guard_of, recompile
from gpuwatch.tui.verdict.window import StepWindow
from tests.unit.verdict.on_gpu import activity, gpu_window
from tests.unit.verdict.windows import run, window

WORK: dict[str, Any] = {"data_ms": 0.2, "forward_ms": 4, "backward_ms": 5, "optimizer_ms": 0.5}
NUMBER = "L['self'].alpha == 0.5"
SHORT: dict[str, Any] = {"data_ms": 0.5, "forward_ms": 2, "backward_ms": 2, "optimizer_ms": 0.5}


def verdict(seen: StepWindow) -> Verdict:
    return Engine().judge(seen)


def test_recompiling() -> None:
    rows = run(120, lambda n: {**WORK, "compile_ms": 900 if n % 10 == 0 else 0})
    assert verdict(window(rows)).finding.kind == "recompile"
    once = run(120, lambda n: {**WORK, "compile_ms": 900 if n in (1, 90) else 0})
    assert verdict(window(once)).finding.kind == "healthy"


GUARDS = [
    ("0/0: alpha == 0.5 # y = x * alpha # ork/train.py:5 in forward", "a Python number"),
    ("0/2: s.k == 2 # return x + s.k # train.py:5 in forward (HINT: integers", "a Python number"),
    ("0/0: tensor 'x' size mismatch at index 0. expected 3, actual 4", "shapes that vary"),
    ("0/0: L['x'].size()[0] == 3", "shapes that vary"),
    ("0/1: mode == '1' # g = lambda # t.py:18 in <lambda>", "a Python value that changes"),
    ("0/0: len(L['xs']) == 3", "a list or dict whose length varies"),
    ("0/0: GLOBAL_STATE changed: grad_mode", "gradient mode or train() and eval()"),
    ("0/0: tensor 'x' dtype mismatch. expected Float, actual Half", "tensors whose type"),
]


@pytest.mark.parametrize(("text", "advice"), GUARDS)
def test_the_guard_that_failed_is_named_with_its_remedy(text: str, advice: str) -> None:
    rows = run(120, lambda n: {**WORK, "compile_ms": 900 if n % 10 == 0 else 0})
    found = recompile(window(rows, settings=Settings(failed_guard=text)))
    assert found is not None
    assert found.advice[0].startswith(advice)
    assert "no longer held" in found.evidence[1].text
    assert not found.evidence[1].text.startswith("`0/")


def test_the_guards_place_is_shown() -> None:
    guard = guard_of(GUARDS[0][0])
    assert guard is not None
    assert guard.text == "`alpha == 0.5` no longer held (train.py:5 in forward)"


def test_without_the_guard_shapes_are_only_the_usual_reason() -> None:
    rows = run(120, lambda n: {**WORK, "compile_ms": 900 if n % 10 == 0 else 0})
    found = recompile(window(rows))
    assert found is not None
    assert "TORCH_LOGS" in found.advice[1]


def test_recompiling_is_held_against_the_same_steps_as_other_causes() -> None:
    """It began late: of the last 200 steps a quarter, of the window's a half."""
    rows = run(220, lambda n: {**WORK, "compile_ms": 100 if n > 120 and n % 10 == 0 else 0})
    found = recompile(window(rows))
    assert found is not None
    assert found.share == pytest.approx(0.5, abs=0.05)


def test_compilations_seconds_apart_in_short_steps_are_recompiling() -> None:
    """Every 232 steps of 5 ms one of 300 ms: 21 % of the time, and never three in 200 steps."""
    rows = run(1_200, lambda n: {**SHORT, "compile_ms": 300 if n % 232 == 0 else 0})
    found = verdict(window(rows)).finding
    assert found.kind == "recompile"
    assert found.share == pytest.approx(300 / (300 + 232 * 5), rel=0.05)
    assert found.evidence[0].text.startswith("5 of the last 969 steps compiled, 300 ms each")


def test_recompiling_is_over_when_none_comes_for_three_times_their_distance() -> None:
    def at(last: int) -> StepWindow:
        known = (120, 150, 180, 210)
        return window(run(last, lambda n: {**SHORT, "compile_ms": 300 if n in known else 0}))

    assert recompile(at(295)) is not None
    assert recompile(at(305)) is None


def test_what_was_compiled_in_the_warm_up_alone_is_not_recompiling() -> None:
    rows = run(400, lambda n: {**SHORT, "compile_ms": 300 if n in (1, 2, 3, 5) else 0})
    assert recompile(window(rows)) is None


def test_at_least_is_the_lower_end_of_what_compiling_takes() -> None:
    """Of compilations that come at random the mean is above the truth half the time."""
    rows = run(200, lambda n: {**WORK, "compile_ms": 300 + n * 7 % 400 if n % 9 == 0 else 0})
    found = recompile(window(rows))
    assert found is not None
    assert found.share is not None
    assert found.share_low is not None
    assert found.share_low < found.share
    assert found.forecast is not None
    assert found.forecast.low == found.forecast.speedup
    least, mean = (1 / (1 - part) for part in (found.share_low, found.share))
    assert least <= found.forecast.speedup < mean


def test_what_compiling_takes_is_known_by_all_that_came_lately() -> None:
    """Of the eleven compilations of an H200 run three lay in the window: "at least 1.0x", and
    1.76x was measured (generated run 1075)."""
    rows = run(480, lambda n: {**WORK, "compile_ms": 450 + n * 7 % 60 if n % 44 == 0 else 0})
    every = window(rows)
    few = replace(every, steps=tuple(row for row in every.steps if row.number > 350))
    found = recompile(few)
    assert found is not None
    assert found.forecast is not None
    whole = recompile(every)
    assert whole is not None
    assert whole.forecast is not None
    assert found.forecast.speedup == pytest.approx(whole.forecast.speedup, rel=0.05)
    assert found.forecast.speedup > 1.3


@pytest.mark.parametrize("compiling", [True, False])
def test_no_graph_holds_what_compiles_anew(compiling: bool) -> None:
    """Generated runs 2149 and 2159 launch small kernels and compile their net anew: 1.5x and 1.4x
    was said of a graph, and 3.4x and 2.4x measured of one of a net that does not."""
    seen = compiling_anew(60 if compiling else 0, NUMBER)
    found, alone = launch(seen), gain_without("launch", seen)
    assert found is not None
    assert alone is not None
    both, likely = gain_without_both("launch", "recompile", seen), found.forecast
    assert ("first end what compiles anew" in found.advice[0]) is compiling
    if compiling:
        assert both is not None
        assert likely is not None
        assert likely.speedup == both > 1.3 * alone.speedup
        assert found.speedup == alone.speedup, "what compiles ranks by itself"


@pytest.mark.parametrize("guard", [None, "tensor 'x' size mismatch at index 0. expected 3"])
def test_sizes_that_compile_anew_want_a_graph_each(guard: str | None) -> None:
    """`dynamic=True`, which ends the compilations, makes no graphs of sizes."""
    found = launch(compiling_anew(60, guard))
    assert found is not None
    assert found.advice[0].startswith(f"{GRAPHS_OF_SIZES}, about ")
    assert "dynamic" not in found.advice[0]


def test_a_graph_that_gives_little_beyond_the_end_of_compilations() -> None:
    found = launch(compiling_anew(60, NUMBER, busy=55.0))
    assert found is not None
    assert "compiles anew" not in found.advice[0]


def test_batches_that_are_often_late_leave_a_bound_beside_compilations(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """An estimate was made of it, by what a replay without late batches gives."""
    monkeypatch.setattr(gain, "often_late", lambda _: True)
    found = launch(compiling_anew(60, NUMBER))
    assert found is not None
    assert found.speedup_is == "bound"
    assert "compiles anew" not in found.advice[0]


def compiling_anew(each_ms: float, guard: str | None, busy: float = 10.0) -> StepWindow:
    """Small kernels, and one step in twelve that compiles."""
    rows = run(120, lambda n: {**WORK, "compile_ms": each_ms if n % 12 == 0 else 0})
    seen = gpu_window(
        rows,
        {**WORK, "lag_ms": 0.1},
        activity=activity(busy, sm=2.0),
        settings=Settings(failed_guard=guard),
    )
    return replace(seen, gpu_steps=tuple(row for row in seen.gpu_steps if row.number % 12))
