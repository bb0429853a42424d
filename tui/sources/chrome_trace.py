"""py-spy's Chrome trace, back into samples with their times.

Of its formats only this one tells when a stack was seen (py-spy draws the pauses between samples at
random, so the rank of a sample says little about its time). For every thread it writes which frames
ended ("E") and began ("B") since that thread's last sample, and nothing for a stack that stayed as
it was. What it takes for a thread is the address that pthread gave it, which forked workers share
with their parent: these appear as one thread that jumps between processes. The process in each
event tells them apart again.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

import msgspec

SAME_MOMENT_US: Final = 8_000
"""py-spy writes the threads of a moment down one after the other, in 0.3 ms (3 processes) to 5 ms
(9, on two busy cores), each less than 1 ms after the last."""


class Place(msgspec.Struct):
    """Of a frame; "" and 0 for the frames that name processes and threads."""

    filename: str
    line: int


class Event(msgspec.Struct):
    """A frame begins or ends."""

    name: str
    ph: str
    pid: int
    tid: int
    ts: int
    args: Place


Frame = tuple[str, str, int]
"""Function, file, line."""
_EVENTS: Final = msgspec.json.Decoder(list[Event])


@dataclass(frozen=True, slots=True)
class Thread:
    """One thread's samples."""

    at_us: tuple[int, ...]
    """When its stack was another than before."""
    stacks: tuple[tuple[Frame, ...], ...]
    """What it was from then on, outermost first, after the frames that name process and thread."""


@dataclass(frozen=True, slots=True)
class Trace:
    """What one run of py-spy saw."""

    moments_us: tuple[int, ...]
    """When it sampled, as far as any stack told, since it began."""
    ended_us: int
    threads: tuple[Thread, ...]


def read_trace(data: bytes) -> Trace:
    """Raises msgspec.DecodeError for anything else than a trace."""
    events = _EVENTS.decode(data)
    standing: dict[int, list[Frame]] = {}
    seen: dict[tuple[int, int], list[tuple[int, tuple[Frame, ...]]]] = {}
    moments: list[int] = []
    written_us = -SAME_MOMENT_US
    told: set[tuple[int, int]] = set()
    for tid, pid, ts, run in _runs(events):
        stack = standing.setdefault(tid, [])
        for event in run:
            if event.ph == "B":
                stack.append((event.name, event.args.filename, event.args.line))
            elif stack:
                stack.pop()
        if not stack:
            continue  # the end of the trace
        thread = (pid, tid)
        if thread in told or ts - written_us >= SAME_MOMENT_US:
            moments.append(ts)
            told.clear()
        told.add(thread)
        written_us = ts
        seen.setdefault(thread, []).append((moments[-1], tuple(stack)))
    threads = tuple(
        Thread(tuple(at for at, _ in rows), tuple(stack for _, stack in rows))
        for rows in seen.values()
    )
    return Trace(tuple(moments), events[-1].ts if events else 0, threads)


def _runs(events: Sequence[Event]) -> list[tuple[int, int, int, list[Event]]]:
    """The events that turn one sample of a thread into its next: frames end, then frames begin."""
    runs: list[tuple[int, int, int, list[Event]]] = []
    key, began = (0, 0, -1), False
    for event in events:
        own = (event.tid, event.pid, event.ts)
        begins = event.ph == "B"
        if own != key or (began and not begins):
            runs.append((*own, []))
            key = own
        runs[-1][3].append(event)
        began = begins
    return runs
