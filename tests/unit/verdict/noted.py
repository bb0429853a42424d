"""Windows of trainings whose settings are worth a note, or are not."""

from dataclasses import replace
from typing import Any

from gpuwatch.tui.messages import Loader
from gpuwatch.tui.settings import Settings
from gpuwatch.tui.steps import Padding, Step
from gpuwatch.tui.verdict.stack_samples import FrameShare, Stacks
from gpuwatch.tui.verdict.window import StepWindow
from tests.unit.verdict.on_gpu import gpu_window
from tests.unit.verdict.windows import MIB, MS, even, loader, run, window

STEP: dict[str, Any] = {"data_ms": 1, "forward_ms": 30, "backward_ms": 60, "optimizer_ms": 9}
CUDA: dict[str, Any] = {
    "threads": 16,
    "matmul_precision": "high",
    "anomaly": False,
    "deterministic": False,
    "autocast": "bfloat16",
    "scaler": False,
    "optimizer": "AdamW",
    "parameters": 161,
    "parameter_bytes": 348 * MIB,
    "parameter_dtype": "float32",
    "parameter_device": "cuda",
    "cudnn_tf32": True,
    "capability": 90,
    "set_to_none": True,
}
"""A training on an H200 with nothing to remark."""


def settings(**fields: Any) -> Settings:
    """That training's, but for these fields."""
    return Settings(**{**CUDA, **fields})


def on_gpu(reported: Settings | None = None, **fields: Any) -> StepWindow:
    """A GPU that does what the host asks, in even steps of 100 ms."""
    given: dict[str, Any] = {"settings": reported or settings(), "loaders": (PINNED,), **fields}
    return gpu_window(even(60, **STEP), {**STEP, "data_ms": 0}, **given)


PINNED = loader(
    4, pin_memory=True, persistent_workers=True, batch_bytes=38 * MIB, batch_device="cpu",
    pinned=True,
)  # fmt: skip


def lines(*places: tuple[float, str, str], samples: int = 200) -> Stacks:
    """Main-thread samples: (share, innermost frame, the user's line)."""
    return Stacks(
        main_samples=samples,
        main=tuple(
            FrameShare(share, frame, None if "train.py" in frame else "step (train.py:31)", line)
            for share, frame, line in places
        ),
        worker_samples=0,
        workers=(),
        worker_idle_share=None,
    )


def in_net(*places: tuple[float, str, str]) -> Stacks:
    """The same below a call of a module."""
    seen = lines(*places)
    return replace(seen, main=tuple(replace(one, in_net=True) for one in seen.main))


FP32 = {"matmul_precision": "highest", "autocast": ""}


def replace_loader(**fields: Any) -> Loader:
    """The pinned loader, but for these fields."""
    given = {name: getattr(PINNED, name) for name in PINNED.__struct_fields__}
    return Loader(**{**given, **fields})


def epochs(every: int, startup_ms: float) -> list[Step]:
    """An epoch starts every so many steps."""
    return run(400, lambda n: {**STEP, "startup_ms": startup_ms if n % every == 0 else 0})


def packed_reviews() -> StepWindow:
    """Texts of 175 words in batches as long as the longest, packed for an LSTM."""
    seen = tuple(Padding(at * 250 * MS, 1, 16, 256, 16 * 175, 256, by_ids=True) for at in range(10))
    layer = FrameShare(
        0.6, "LSTM.forward (torch/nn/modules/rnn.py:1177)", None, phase="forward", in_net=True
    )
    return window(even(60, **STEP), padding=seen, stacks=Stacks(100, (layer,), 0, (), None))
