"""Stacks for speedscope.app: a profile for each thread's role and each state of the GPU, and one
for the main thread's waits. The format is of its file-format-spec, profiles of type "sampled"."""

import os
import re
from collections.abc import Iterable, Sequence
from typing import Any, Final

import msgspec

from ..model.stack_trees import KINDS, Merged, StackTrees

STATES: Final = {"all": "at any time", "idle": "GPU idle", "busy": "GPU busy"}
WAITS: Final = ("threading.py", "selectors.py", "queue.py", "multiprocessing/", "socket.py")
"""Files in whose functions a thread waits (`verdict.code_origin.MACHINERY`)."""
SCHEMA: Final = "https://www.speedscope.app/file-format-schema.json"
_FRAME: Final = re.compile(r"^(?P<name>.*) \((?P<file>[^()]*?)(?::(?P<line>\d+))?\)$")


def speedscope_of(trees: StackTrees, name: str) -> str:
    """The file. Weights are samples."""
    frames: dict[str, int] = {}
    profiles: list[dict[str, Any]] = []
    for when in KINDS:
        merged = trees.of(when).merged
        for role in dict.fromkeys(one.role for one in merged):
            own = [one for one in merged if one.role == role]
            profiles.append(_profile(f"{role}, {STATES[when]}", own, frames))
    waits = [one for one in trees.all.merged if one.role == "main" and _is_wait(one)]
    if waits:
        profiles.append(_profile("main, waiting", waits, frames))
    made = {
        "$schema": SCHEMA,
        "name": name,
        "exporter": "gpuwatch",
        "activeProfileIndex": 0,
        "shared": {"frames": [_frame(text) for text in frames]},
        "profiles": profiles,
    }
    return msgspec.json.encode(made).decode() + "\n"


def _profile(name: str, stacks: Iterable[Merged], frames: dict[str, int]) -> dict[str, Any]:
    rows: list[tuple[Sequence[int], int]] = [
        ([frames.setdefault(text, len(frames)) for text in one.frames], one.samples)
        for one in stacks
    ]
    rows.sort(key=lambda row: -row[1])
    return {
        "type": "sampled",
        "name": name,
        "unit": "none",
        "startValue": 0,
        "endValue": sum(samples for _, samples in rows),
        "samples": [stack for stack, _ in rows],
        "weights": [samples for _, samples in rows],
    }


def _frame(text: str) -> dict[str, Any]:
    found = _FRAME.match(text)
    if found is None:
        return {"name": text}
    frame: dict[str, Any] = {"name": found["name"], "file": found["file"]}
    if found["line"]:
        frame["line"] = int(found["line"])
    return frame


def _is_wait(stack: Merged) -> bool:
    found = _FRAME.match(stack.frames[-1]) if stack.frames else None
    if found is None:
        return False
    file = found["file"]
    return file.startswith(WAITS) or os.path.basename(file) in WAITS
