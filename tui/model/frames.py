"""From stacks to the places in the code that are worth naming."""

import os
import sys
from collections import Counter
from collections.abc import Iterable, Sequence
from functools import lru_cache
from typing import Final

from ..verdict.window import FrameShare, Stacks
from .observations import StackCount

TOP: Final = 12
"""Places kept for each role; the rest is too little to act on."""

# fmt: off
LIBRARIES: Final = frozenset((
    "accelerate", "albumentations", "bitsandbytes", "cupy", "cv2", "datasets", "deepspeed",
    "einops", "fsspec", "h5py", "huggingface_hub", "imageio", "joblib", "jax", "keras",
    "lightning", "lightning_fabric", "litdata", "lmdb", "matplotlib", "monai", "numba", "numpy",
    "nvidia", "pandas", "peft", "PIL", "pip", "pyarrow", "pytorch_lightning", "ray",
    "safetensors", "scipy", "sentencepiece", "skimage", "sklearn", "streaming", "tensorboard",
    "tensordict", "timm", "tokenizers", "torch", "torchao", "torchaudio", "torchdata",
    "torchmetrics", "torchvision", "tqdm", "transformers", "triton", "wandb", "webdataset",
    "zarr", "zmq",
))
# fmt: on
"""Packages that are not the user's own code."""

WAY: Final = 5
WAY_OF_USERS: Final = 3
"""Frames kept of the way to a place, and how many of them may be the user's own."""

MACHINERY: Final = (
    "multiprocessing/",
    "threading.py",
    "selectors.py",
    "queue.py",
    "contextlib.py",
    "socket.py",
    "functools.py",
    "importlib/",
    "<frozen",
    "gpuwatch/probe/",
    "_pytest/",
)
"""Files that show how something waits, not what for."""

MOST_PATHS: Final = 8_192
"""The same lines come again and again."""

MOST_STACKS: Final = 1_024
"""A run is at the same places again and again, and its stacks are read every few seconds."""

IDLE_WORKER: Final = ("Queue.get (", "get (multiprocessing/queues")


def summarise(stacks: Iterable[StackCount]) -> Stacks:
    """Shares by role. A worker that waits for its next index is idle and names no place."""
    kept = list(stacks)
    main = [stack for stack in kept if stack.role == "main"]
    workers = [stack for stack in kept if stack.role == "worker"]
    busy = [stack for stack in workers if not waits_for_work(stack.frames)]
    samples = _samples(workers)
    return Stacks(
        main_samples=_samples(main),
        main=_shares(main),
        worker_samples=samples,
        workers=_shares(busy),
        worker_idle_share=1 - _samples(busy) / samples if samples else None,
    )


def waits_for_work(frames: tuple[str, ...]) -> bool:
    """Whether a worker's stack waits in its index queue rather than make a batch."""
    return len(frames) < 2 or frames[1].startswith(IDLE_WORKER)


def is_notebook(argv: Sequence[str]) -> bool:
    """Whether a process is a notebook's kernel, by what it was started with."""
    return bool(argv) and "kernel_launcher" in os.path.basename(argv[0])


def at_prompt(frames: tuple[str, ...]) -> bool | None:
    """Whether a notebook's main thread waits for a cell to run; None without frames."""
    if not frames:
        return None
    runs_cell = any("run_code (" in one and "interactiveshell.py" in one for one in frames)
    return not runs_cell and any("ipykernel" in _file(one) for one in frames)


def worth_naming(frames: tuple[str, ...]) -> str:
    """The innermost frame that shows what is done, not how it waits."""
    for frame in reversed(frames):
        if not _file(frame).startswith(MACHINERY):
            return frame
    return frames[-1] if frames else "?"


def caller_of(frames: tuple[str, ...], named: str) -> str | None:
    """The innermost frame of the user's own code, unless that is the one that is named."""
    for frame in reversed(frames):
        if is_users(_file(frame)):
            return frame if frame != named else None
    return None


def way_to(frames: tuple[str, ...]) -> tuple[str, ...]:
    """The few frames that show how the thread came there, outermost first: the user's innermost
    ones, and the innermost of what they call."""
    telling = [i for i, frame in enumerate(frames) if not _file(frame).startswith(MACHINERY)]
    own = [i for i in telling if is_users(_file(frames[i]))][-WAY_OF_USERS:]
    called = [i for i in telling if i not in own and i > min(own, default=-1)]
    return tuple(frames[i] for i in sorted(own + called[-(WAY - len(own)) :]))


@lru_cache(maxsize=MOST_PATHS)
def is_users(path: str) -> bool:
    """Whether a file is the user's own: neither a library's nor the standard library's."""
    if path.startswith(MACHINERY) or path.startswith("<") or "-packages/" in path:
        return False
    top = path.partition(":")[0].split("/", 1)[0].removesuffix(".py")
    return top not in LIBRARIES and top not in sys.stdlib_module_names


def place_of(frame: str) -> tuple[str, int]:
    """("conv.py", 12) of "forward (conv.py:12)"; number 0 where there is none."""
    path, _, number = _file(frame).rpartition(":")
    return (path, int(number)) if number.isdecimal() else (_file(frame), 0)


def _file(frame: str) -> str:
    """ "conv.py:12" of "forward (conv.py:12)"."""
    return frame.rpartition("(")[2].rstrip(")")


def _samples(stacks: list[StackCount]) -> int:
    return sum(stack.count for stack in stacks)


@lru_cache(maxsize=MOST_STACKS)
def _place(frames: tuple[str, ...]) -> tuple[str, str | None]:
    """What is named of a stack, and who called it."""
    named = worth_naming(frames)
    return named, caller_of(frames, named)


def _shares(stacks: list[StackCount]) -> tuple[FrameShare, ...]:
    places: Counter[tuple[str, str | None, str]] = Counter()
    for stack in stacks:
        named, caller = _place(stack.frames)
        places[named, caller, stack.line] += stack.count
    total = sum(places.values())
    if not total:
        return ()  # no samples, no shares
    return tuple(
        FrameShare(share=count / total, frame=frame, caller=caller, line=line)
        for (frame, caller, line), count in places.most_common(TOP)
    )
