"""PyTorch's own switches: a few C++ variables, 0.03 to 0.2 us each."""

import sys
from _thread import get_native_id
from functools import lru_cache
from typing import Any, Final

MOST_CHARACTERS: Final = 240
"""Of a failed guard: an expression, the line it comes from and its place."""
LATEST: Final = 32
"""Failed guards that are looked at."""
MODE_CHANGED: Final = "GLOBAL_STATE changed"


def flags() -> dict[str, Any]:
    """The switches as they stand now. Called where a backward begins: the number of threads belongs
    to the thread that asks, and anomaly detection is often on only around forward and backward."""
    torch: Any = sys.modules["torch"]
    return {
        "threads": torch.get_num_threads(),
        "matmul_precision": _matmul_precision(torch),
        "cudnn_benchmark": _cudnn_benchmark(torch),
        "deterministic": torch.are_deterministic_algorithms_enabled(),
        "anomaly": torch.is_anomaly_enabled(),
        "profiler": _profiler(),
        "cudnn_tf32": _cudnn_tf32(torch),
        "failed_guard": _failed_guard(),
        "training_thread": get_native_id(),
        "cpu_bf16": multiplies_bf16(torch),
        "cpu_intel": _cpu_intel(),
    }


def _profiler() -> bool | None:
    """Whether a profiler of the program's own records. None while something of ours is on, which a
    request has switched on: PyTorch does not tell whose it is."""
    ours: Any = sys.modules.get(__package__.rpartition(".")[0] + ".switched")
    if ours is not None and ours.any_on():
        return None
    enabled = getattr(sys.modules["torch.autograd"], "_profiler_enabled", None)
    return None if enabled is None else bool(enabled())


def _failed_guard() -> str | None:
    """Of what dynamo keeps for its own logs: 2 us for a dozen functions. None where nothing was
    compiled anew, or its name is another in this torch."""
    failures = getattr(sys.modules.get("torch._dynamo.utils"), "guard_failures", None)
    reasons = max(failures.values(), key=len, default=()) if failures else ()
    if not reasons or not isinstance(reasons[-1], str):
        return None
    # Each compilation adds why every one before did not fit: those of the other gradient mode by
    # that alone, whatever else changed.
    newest = reasons[: -LATEST - 1 : -1]
    reason = next((one for one in newest if MODE_CHANGED not in str(one)), reasons[-1])
    return " ".join(str(reason).partition("\n")[0].split())[:MOST_CHARACTERS]


def _matmul_precision(torch: Any) -> str:
    """As `get_float32_matmul_precision` says it. That one warns or raises from 2.9 on, where a
    program uses the newer switches: then these are asked, who do neither."""
    newer = getattr(torch._C, "_get_fp32_precision_getter", None)
    if newer is None:
        return str(torch.get_float32_matmul_precision())
    return "high" if newer("cuda", "matmul") == "tf32" else "highest"


def _cudnn_benchmark(torch: Any) -> bool:
    """By the public name where there is no other: 1 us instead of 0.1."""
    private = getattr(torch._C, "_get_cudnn_benchmark", None)
    return bool(torch.backends.cudnn.benchmark if private is None else private())


def _cudnn_tf32(torch: Any) -> bool | None:
    """None where neither name is there: the public one warns as the newer switches are used."""
    newer = getattr(torch._C, "_get_fp32_precision_getter", None)
    if newer is not None:
        return bool(newer("cuda", "conv") == "tf32")
    older = getattr(torch._C, "_get_cudnn_allow_tf32", None)
    return None if older is None else bool(older())


def multiplies_bf16(torch: Any) -> bool | None:
    """Whether this CPU multiplies bf16 in one instruction; None where this torch does not know."""
    asked = (
        getattr(torch.cpu, name, None)
        for name in ("_is_avx512_bf16_supported", "_is_amx_tile_supported")
    )
    known = [bool(supported()) for supported in asked if supported is not None]
    return any(known) if known else None


@lru_cache(maxsize=1)
def _cpu_intel(described: str = "/proc/cpuinfo") -> bool | None:
    """Whether Intel made this CPU; None where the system does not describe it."""
    try:
        with open(described, "rb") as file:
            return b"GenuineIntel" in file.read(256)
    except OSError:
        return None


def type_name(dtype: object) -> str:
    """ "bfloat16" of torch.bfloat16."""
    return str(dtype).removeprefix("torch.")
