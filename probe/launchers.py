"""Programs that import torch and do not train: they start those who do, or compile for them."""

import os
from collections.abc import Sequence
from itertools import pairwise
from typing import Final

PROGRAMS: Final = frozenset(
    {"torchrun", "accelerate", "accelerate-launch", "deepspeed", "fabric", "lightning"}
)
"""Console scripts, by name."""
MODULES: Final = frozenset(
    {
        "torch.distributed.run",
        "torch.distributed.launch",
        "accelerate.commands.accelerate_cli",
        "accelerate.commands.launch",
        "deepspeed.launcher.launch",
        "deepspeed.launcher.runner",
        "lightning.fabric.cli",
        "torch._inductor.compile_worker",
    }
)
"""What `python -m` starts."""
SCRIPTS: Final = ("torch/_inductor/compile_worker/__main__.py", "deepspeed/launcher/launch.py")
"""Ends of the paths of what is started as a file."""


def is_launcher(command: Sequence[str]) -> bool:
    """Whether a process with this command line (`sys.orig_argv`) waits for others to train."""
    if any(flag.endswith("m") and name in MODULES for flag, name in pairwise(command)):
        return True
    script = next((word for word in command[1:] if not word.startswith("-")), "")
    return os.path.basename(script) in PROGRAMS or script.endswith(SCRIPTS)
