"""Chrome traces as py-spy writes them, from samples that a test says."""

import json
from typing import Any

Frame = tuple[str, str, int]
Sample = tuple[int, int, int, list[Frame]]
"""Microseconds, process, pthread's address, frames with those of process and thread."""


def process(pid: int, command: str = "python train.py") -> Frame:
    return (f'process {pid}:"{command}"', "", 0)


def thread(tid: int, name: str = "MainThread") -> Frame:
    return (f"thread ({tid}): {name}", "", 0)


def trace(samples: list[Sample], ended_us: int) -> bytes:
    """What py-spy does with them: of each address it remembers the last stack, whosever it was, and
    writes what ended and what began since."""
    events: list[dict[str, Any]] = []
    last: dict[int, list[Frame]] = {}
    for at_us, pid, address, frames in [*samples, *_end(samples, ended_us)]:
        before = last.get(address, [])
        alike = next(
            (i for i, (a, b) in enumerate(zip(before, frames, strict=False)) if a != b),
            min(len(before), len(frames)),
        )
        missing = [("E", frame) for frame in reversed(before[alike:])]
        for ph, (name, path, line) in missing + [("B", frame) for frame in frames[alike:]]:
            events.append(
                {
                    "args": {"filename": path, "line": line},
                    "cat": "py-spy",
                    "name": name,
                    "ph": ph,
                    "pid": pid,
                    "tid": address,
                    "ts": at_us,
                }
            )
        last[address] = frames
    return json.dumps(events).encode()


def _end(samples: list[Sample], ended_us: int) -> list[Sample]:
    """All stacks end together."""
    return [(ended_us, pid, address, []) for _, pid, address, _ in samples]
