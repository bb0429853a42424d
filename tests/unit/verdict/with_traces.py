"""Windows with a traced step, on a CPU and on a GPU."""

from typing import Any

from msgspec import structs

from gpuwatch.tui.settings import FunctionTime, NeedlessOperations, Settings, StepOperations
from gpuwatch.tui.verdict.findings import Finding
from gpuwatch.tui.verdict.rules.traced_operations import traced_operations
from gpuwatch.tui.verdict.window import StepWindow
from tests.unit.verdict.on_gpu import activity, gpu_window
from tests.unit.verdict.windows import even, window

STEP: dict[str, Any] = {"forward_ms": 30, "backward_ms": 60, "optimizer_ms": 10}
NET = 0.9
PLACE = "Net.forward (/home/me/train.py:12)"
NET_TIME = FunctionTime(PLACE, 90_000, 9_000, 60_000, 0, 20_000, 15_000, 400, "mm", 50_000)
SEEN = StepOperations(1, 1_000, 100_000, 10_000, (NET_TIME,))
SETTINGS = Settings(step_operations=SEEN)


def needless(us: int, host_us: int = 0) -> NeedlessOperations:
    return NeedlessOperations("graph (/home/me/train.py:7)", us, host_us, 20)


def on_cpu(**seen: Any) -> StepWindow:
    return window(
        even(60, **STEP), settings=Settings(step_operations=structs.replace(SEEN, **seen))
    )


def on_gpu(busy: float = 99.0, lag_ms: float = 80.0, **seen: Any) -> StepWindow:
    return gpu_window(
        even(60, **STEP),
        {**STEP, "lag_ms": lag_ms},
        activity=activity(busy),
        settings=Settings(step_operations=structs.replace(SEEN, **seen)),
    )


def is_expected(gain: float, found: Finding) -> bool:
    """The forecast's interval holds it."""
    forecast = found.forecast
    return forecast is not None and forecast.low <= gain <= (forecast.high or gain)


def found_in(seen: StepWindow) -> Finding:
    (found,) = traced_operations(seen)
    return found
