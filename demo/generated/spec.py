"""What a generated run consists of: one value for each axis, and the causes injected into it."""

from dataclasses import asdict, dataclass, fields
from typing import Literal

Device = Literal["cpu", "cuda"]
Family = Literal["mlp", "conv", "encoder", "gpt", "lstm", "recommender", "pointwise"]
Size = Literal["small", "medium", "large"]
Precision = Literal["fp32", "tf32", "bf16"]
"""Of matrix products: full fp32, TF32, or bf16 under autocast."""
Feed = Literal["loader", "function", "resident"]
"""A DataLoader, a function that draws a batch (`get_batch`), or batches that lie on the device."""
Sync = Literal["none", "item", "finite", "synchronize"]
"""How the loop waits for the GPU: `loss.item()`, a check on NaN, `torch.cuda.synchronize()`."""
Log = Literal["none", "print", "file"]
Evaluation = Literal["none", "loader", "function"]
"""Over a DataLoader with `eval()` and `train()`, or a function under `no_grad` that draws batches
and switches nothing."""
Optimizer = Literal["sgd", "adamw", "adamw-fused", "hand"]
""" "hand": parameters are changed under `no_grad`, without an optimizer."""
Work = Literal["python", "arrays", "sleep"]
"""What makes a slow part slow: plain Python, NumPy, or a wait as for a disk or a service."""
Development = Literal["development", "report"]

CauseName = Literal[
    "transform",
    "burst",
    "restarts",
    "draw",
    "logger",
    "checkpoints",
    "evaluations",
    "per_parameter",
    "dense_table",
    "recompiles",
    "statistics",
    "norms",
    "classes",
    "pieces",
    "cells",
    "full_precision",
    "pageable",
    "tiny_copies",
    "empty_cache",
]


@dataclass(frozen=True)
class Cause:
    """Something injected that costs time."""

    name: CauseName
    strength: float
    """Part of the wall time that it is made to take where nothing hides it, 0 to 1."""
    work: Work = "python"
    """What it does meanwhile, where that may differ."""


@dataclass(frozen=True)
class Spec:
    """One run. What depends on the machine's speed is measured when the run begins: a cause of
    strength 0.4 takes 40 % of the wall time on a laptop as on an H200."""

    seed: int
    device: Device
    family: Family
    size: Size
    precision: Precision
    compiled: bool
    feed: Feed
    workers: int
    whole_batches: bool
    """The dataset hands over whole batches; else samples, which the loader collates."""
    pinned: bool
    varied: bool
    """Sequences differ in length from batch to batch."""
    sync: Sync
    sync_every: int
    """Steps; 1 is each step."""
    log: Log
    log_every: int
    evaluation: Evaluation
    evaluate_every: int
    evaluate_batches: int
    checkpoint_every: int
    """Steps; 0: never."""
    optimizer: Optimizer
    accumulation: int
    """Backwards to a step of the optimizer."""
    clip: bool
    causes: tuple[Cause, ...]
    ready: bool = False
    """A switch: batches lie ready in host memory, and nothing fetches them."""
    copies: bool = True
    """Batches are copied to the GPU; off, the net gets one that is there already."""
    graphed: bool = False
    """Forward and backward are replayed as CUDA graphs."""
    whole_step: bool = False
    """A switch: so are the loss and the update."""
    table: Literal["dense", "sparse"] = "dense"
    """Gradients of a recommender's table."""
    more_workers: int = 0
    """A switch: workers added to those that the causes were made for."""
    steady: bool = False
    """A switch: what was compiled anew for each value of a Python number is compiled once."""

    @property
    def half(self) -> Development:
        """Rules are developed on even seeds; odd ones are only reported."""
        return half_of(self.seed)

    def cause(self, name: CauseName) -> Cause | None:
        """The one of this name, where it is injected."""
        return next((cause for cause in self.causes if cause.name == name), None)

    def describe(self) -> str:
        """A line for each axis, as `--describe` prints it."""
        shown = asdict(self)
        shown["causes"] = ", ".join(
            f"{cause.name} {cause.strength:.2f} ({cause.work})" for cause in self.causes
        )
        names = (field.name for field in fields(self))
        return "\n".join(f"{name:17} {shown[name]}" for name in names)


def half_of(seed: int) -> Development:
    """Even seeds are for development, odd ones for the report."""
    return "development" if seed % 2 == 0 else "report"
