"""Nets in float64."""

import pytest

from gpuwatch.tui.settings import Settings
from gpuwatch.tui.verdict.engine import Engine
from gpuwatch.tui.verdict.findings import Finding
from gpuwatch.tui.verdict.forecast.interval import forecast_of
from gpuwatch.tui.verdict.rules.double_precision import in_float64
from tests.unit.verdict.on_gpu import activity, gpu_window
from tests.unit.verdict.windows import even, window


def found(forward_ms: float, backward_ms: float, nodes: int, dtype: str) -> Finding | None:
    rows = even(60, forward_ms=forward_ms, backward_ms=backward_ms, optimizer_ms=0.1)
    known = Settings(parameter_dtype=dtype, parameter_device="cpu", graph_nodes=nodes)
    return in_float64(window(rows, settings=known))


@pytest.mark.parametrize(
    ("net_ms", "nodes", "measured"),
    [(7.66, 10, 2.16), (24.4, 90, 1.99), (2.57, 19, 1.65), (68.4, 12, 5.68), (9.5, 7, 3.83)],
)
def test_arithmetic_in_float64_takes_twice_as_long_at_least(
    net_ms: float, nodes: int, measured: float
) -> None:
    """Products of 512, a transformer, a net of tanh, convolutions and an LSTM, measured."""
    finding = found(net_ms / 3, net_ms * 2 / 3, nodes, "float64")
    assert finding is not None
    assert (finding.kind, finding.sub) == ("compute", "float64")
    forecast = forecast_of(finding)
    assert forecast is not None
    assert forecast.kind == "at-least"
    assert 1.5 < forecast.speedup <= measured


def test_a_net_that_only_calls_its_operations_gains_little_by_float32() -> None:
    """Two layers of 64 for 32 samples, 1.0x measured; seven of 20 for 200, 1.2x."""
    assert found(0.04, 0.08, 7, "float64") is None
    small = found(0.16, 0.3, 25, "float64")
    assert small is not None
    assert ((small.forecast and small.forecast.speedup) or 0) < 1.25


def test_without_a_loader_what_lies_before_a_backward_is_no_arithmetic() -> None:
    """A rollout of GAIL's, 4.2 ms before a backward of 0.5 ms: "float64 takes 43 %", 0.9x by
    float32."""
    parts = {"forward_ms": 4.2, "backward_ms": 0.5, "optimizer_ms": 0.3}
    known = Settings(parameter_dtype="float64", parameter_device="cpu", graph_nodes=30)
    assert in_float64(window(even(60, **parts), settings=known)) is not None
    alone = in_float64(window(even(60, **parts, fetches=0), settings=known))
    assert alone is None or (alone.share or 0) < 0.1


def test_float32_is_accused_of_nothing() -> None:
    assert found(4, 6, 10, "float32") is None


def test_float64_is_the_verdict_where_the_net_is_the_limit() -> None:
    rows = even(60, data_ms=0.3, forward_ms=4, backward_ms=6, optimizer_ms=0.8)
    known = Settings(parameter_dtype="float64", parameter_device="cpu", graph_nodes=10)
    judged = Engine().judge(window(rows, settings=known))
    assert (judged.finding.kind, judged.finding.sub) == ("compute", "float64")
    assert "model.float()" in judged.finding.advice[0]
    assert not any("float64" in note.text for note in judged.notes)


@pytest.mark.parametrize(("busy", "is_found"), [(98.0, True), (60.0, False)])
def test_on_a_gpu_it_is_the_verdict_where_the_gpu_is_busy(busy: float, is_found: bool) -> None:
    """A transformer on an H200, whose tensor cores multiply doubles: "well used", 2.1x measured."""
    step = {"forward_ms": 20, "backward_ms": 38, "optimizer_ms": 2}
    given = gpu_window(
        even(60, **step),
        {**step, "lag_ms": 100.0},
        activity=activity(busy, tensor=42.0, dram=43.0),
        settings=Settings(parameter_dtype="float64", parameter_device="cuda"),
    )
    judged = Engine().judge(given).finding
    assert ((judged.kind, judged.sub) == ("compute", "float64")) is is_found
    forecast = forecast_of(judged)
    assert not is_found or (forecast is not None and 1.5 < forecast.speedup <= 2.1)
