"""py-spy's raw lines: `process 1:"cmd";thread (2): MainThread;f (a.py:1);g (b.py:2) 17`."""

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Final

from msgspec import structs

from tui.observations import StackCount

_LINE: Final = re.compile(r"^(?P<stack>.*) (?P<count>\d+)$")
_THREAD: Final = re.compile(r"(?:^|;)thread \((?P<tid>\w+)\)(?:: (?P<name>[^;]*))?")
_PROCESS: Final = re.compile(r'(?:^|;)process (?P<pid>\d+):"')
_ERRORS: Final = re.compile(r"Samples: (?P<samples>\d+)")

LineOf = Callable[[Sequence[str]], str]

OWN_THREAD: Final = "gpuwatch"
"""The probe's publisher: ours, and no part of the run."""
NAMED: Final = ("main", "worker")
"""Roles whose lines say what they call in C, which leaves no frame."""
WORKER_LOOP: Final = "_worker_loop "
PIN_LOOP: Final = "_pin_memory_loop "


@dataclass(frozen=True, slots=True)
class Chunk:
    """What one py-spy run wrote."""

    moments: int
    stacks: tuple[StackCount, ...]


def parse(text: str, target: int, line_of: LineOf = lambda frames: "") -> Chunk:
    """The stacks of the target's main and pinning threads and of its workers.

    Lines that are no stacks (py-spy mixes its messages in) are passed over. `line_of` gives the
    text of a stack's innermost line of the user's own.
    """
    stacks = [
        structs.replace(stack, line=line_of(stack.frames)) if stack.role in NAMED else stack
        for line in text.splitlines()
        if (stack := _stack(line, target)) is not None
    ]
    main = sum(stack.count for stack in stacks if stack.role == "main")
    return Chunk(main, tuple(stacks))


def _stack(line: str, target: int) -> StackCount | None:
    if line.startswith("py-spy>"):
        return None
    split = _LINE.match(line)
    thread = _THREAD.search(line)
    if split is None or thread is None:
        return None
    before = line[: thread.start()]
    pids = [int(found["pid"]) for found in _PROCESS.finditer(before)]
    pid = pids[-1] if pids else target
    name = thread["name"] or ""
    frames = tuple(frame for frame in split["stack"][thread.end() :].split(";") if frame)
    if name == OWN_THREAD or not frames:
        return None
    role = _role(pid, target, int(thread["tid"], 0), name, frames)
    if role is None:
        return None
    return StackCount(
        role=role, pid=pid, thread=name, frames=_own_part(frames), count=int(split["count"])
    )


def _role(pid: int, target: int, tid: int, name: str, frames: tuple[str, ...]) -> str | None:
    is_main_thread = tid == pid or name == "MainThread"
    if pid == target:
        if is_main_thread:
            return "main"
        return "pin" if any(frame.startswith(PIN_LOOP) for frame in frames) else None
    if not is_main_thread:
        return None
    return "worker" if any(frame.startswith(WORKER_LOOP) for frame in frames) else "other"


def _own_part(frames: tuple[str, ...]) -> tuple[str, ...]:
    """A forked worker shows the frames that its parent had when it forked: cut them off."""
    for index in range(len(frames) - 1, -1, -1):
        if frames[index].startswith(WORKER_LOOP):
            return frames[index:]
    for index in range(len(frames) - 1, -1, -1):
        if "Popen._launch (" in frames[index]:
            return frames[index + 1 :]
    return frames
