"""What the probe's hooks lay hands on."""

import sys
from typing import Any

import torch

BASE: Any = sys.modules["torch.utils.data.dataloader"]._BaseDataLoaderIter


def held() -> dict[str, Any]:
    """Every object that a hook replaces, and the registries it writes into."""
    graph: Any = torch.autograd.graph
    autograd: Any = torch.autograd
    optimizers: Any = sys.modules["torch.optim.optimizer"]
    return {
        "next": BASE.__dict__["__next__"],
        "init": BASE.__dict__["__init__"],
        "reset": BASE.__dict__["_reset"],
        "graph": graph._engine_run_backward,
        "autograd": autograd._engine_run_backward,
        "save": torch.save,
        "zipfile": torch.serialization._open_zipfile_writer,
        "legacy": torch.serialization._legacy_save,
        "pre": dict(optimizers._global_optimizer_pre_hooks),
        "post": dict(optimizers._global_optimizer_post_hooks),
        "meta_path": list(sys.meta_path),
    }
