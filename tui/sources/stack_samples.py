"""The samples of one py-spy run as the session takes them: by role, with their times."""

import re
from collections.abc import Callable, Container, Iterable, Sequence
from dataclasses import dataclass
from itertools import zip_longest
from typing import Final

from msgspec import structs

from ..model.frames import is_waiting, own_line, place_of
from ..model.loop_frames import net_at
from ..model.observations import StackCount, ThreadRole
from .py_spy import Frame, Trace, standing_at
from .source_text.structure import DECORATOR, UNKNOWN, Structure, runs_a_net

_THREAD: Final = re.compile(r"^thread \((?P<tid>\w+)\)(?:: (?P<name>.*))?$", re.DOTALL)
_PROCESS: Final = re.compile(r'^process (?P<pid>\d+):"')

LineOf = Callable[[Sequence[str]], str]
StructureOf = Callable[[Sequence[str]], Structure]
ShortOf = Callable[[str], str]

OWN_THREADS: Final = re.compile(r"/probe/publish\.py$|/gpuwatch-inject-\w+/")
"""Files in which the probe's threads begin: ours, and no part of the run. No list of the program's
has them, so they have no name."""
NAMED: Final = ("main", "worker")
"""Roles whose lines say what they call in C, which leaves no frame."""
WORKER_LOOP: Final = "_worker_loop "
PIN_LOOP: Final = "_pin_memory_loop "


@dataclass(frozen=True, slots=True)
class Chunk:
    """What one py-spy run saw."""

    moments_ms: tuple[int, ...]
    """When it sampled, since it began."""
    seen: int
    """Bits of the moments at which some stack had changed: these times are exact."""
    stacks: tuple[StackCount, ...]


@dataclass(frozen=True, slots=True)
class _Whose:
    pid: int
    tid: int
    name: str
    frames: tuple[Frame, ...]


def sampled(
    trace: Trace,
    moments_us: Sequence[int],
    target: int,
    short_of: ShortOf = lambda path: path,
    line_of: LineOf = lambda frames: "",
    structure_of: StructureOf = lambda frames: UNKNOWN,
    sampled_pid: int | None = None,
    trains: int | None = None,
) -> Chunk:
    """The stacks of the target's training and pinning threads and of its workers.

    `line_of` gives the text of a stack's innermost line of the user's own, `structure_of` what its
    source says. `sampled_pid` is the process that py-spy sampled, where that is one of the workers.
    `trains` is the kernel's id of the thread that trains; the main thread where it is not known, or
    not among those that were seen (a process in a container has ids of its own).
    """
    bits: dict[tuple[Frame, ...], int] = {}
    for thread in trace.threads:
        for index, moment_us in enumerate(moments_us):
            at = standing_at(thread.at_us, moment_us)
            if at is not None:
                stack = thread.stacks[at]
                bits[stack] = bits.get(stack, 0) | 1 << index
    outermost = sampled_pid or target
    is_seen = _is_seen(trains, target, outermost, bits)
    wanted = _Wanted(target, outermost, trains if is_seen else None)
    every = (_counted(stack, held, wanted, short_of) for stack, held in bits.items())
    counts = [count for count in every if count is not None]
    for count in counts:
        if count.role == "main" and runs_a_net(count.frames):
            structure_of(count.frames)  # it shows whose loop that is, to stacks before it as well
    observed_us = set(trace.moments_us)
    return Chunk(
        moments_ms=tuple(moment_us // 1_000 for moment_us in moments_us),
        seen=sum(1 << index for index, at in enumerate(moments_us) if at in observed_us),
        stacks=_of_one_call([_with_source(count, line_of, structure_of) for count in counts]),
    )


@dataclass(frozen=True, slots=True)
class _Wanted:
    target: int
    outermost: int
    trains: int | None
    """None: the main thread."""


def _is_seen(
    tid: int | None, target: int, outermost: int, stacks: Iterable[tuple[Frame, ...]]
) -> bool:
    threads = (_whose(stack, outermost) for stack in stacks)
    return any(one is not None and (one.pid, one.tid) == (target, tid) for one in threads)


def _counted(
    stack: tuple[Frame, ...], moments: int, wanted: _Wanted, short_of: ShortOf
) -> StackCount | None:
    whose = _whose(stack, wanted.outermost)
    if whose is None or not whose.frames or OWN_THREADS.search(whose.frames[0][1]):
        return None
    frames = tuple(frame_text(frame, short_of) for frame in whose.frames)
    role = _role(whose, wanted, frames)
    if role is None:
        return None
    return StackCount(
        role=role,
        pid=whose.pid,
        thread=whose.name,
        frames=_own_part(frames),
        count=moments.bit_count(),
        moments=moments,
    )


def _with_source(count: StackCount, line_of: LineOf, structure_of: StructureOf) -> StackCount:
    if count.role not in NAMED:
        return count
    structure = structure_of(count.frames) if count.role == "main" else UNKNOWN
    return StackCount(
        role=count.role,
        pid=count.pid,
        thread=count.thread,
        frames=_without_decorators(count.frames, structure.with_gradients),
        count=count.count,
        line=line_of(count.frames),
        moments=count.moments,
        in_parts=structure.in_parts,
        evaluates=structure.evaluates,
        in_turns=structure.in_turns,
        unpacked=structure.unpacked,
        computes=structure.computes,
        acts=structure.acts,
        feeds=structure.feeds,
        in_step=structure.in_step,
        padded_again=structure.padded_again,
        chooses=structure.chooses,
        fixed=structure.fixed,
        anew=structure.anew,
        beside=structure.beside,
        one_row=structure.one_row,
        redrawn=structure.redrawn,
        pairs=structure.pairs,
    )


def _of_one_call(stacks: Sequence[StackCount]) -> tuple[StackCount, ...]:
    """With what lies beside a net that each step learns from, in the same call of a function: PPO's
    `evaluate` makes a distribution of what its net says."""
    asked = {_call(one.frames[: net_at(one.frames)]) for one in stacks if one.in_step} - {None}
    return tuple(
        structs.replace(one, in_step=True)
        if one.role == "main"
        and not (one.evaluates or runs_a_net(one.frames))
        and _call(one.frames) in asked
        else one
        for one in stacks
    )


def _call(frames: tuple[str, ...]) -> tuple[str, ...] | None:
    """The innermost function of the user's own, without its line, behind what called it."""
    own = own_line(frames)
    if not own:
        return None
    at = len(frames) - 1 - frames[::-1].index(own)
    return (*frames[:at], own.rpartition(":")[0])


def _without_decorators(frames: tuple[str, ...], called: Container[str]) -> tuple[str, ...]:
    """Without those that call one of these with gradients on: by its name the decorator's frame is
    that of `torch.no_grad()`."""
    return tuple(
        one
        for one, own in zip_longest(frames, frames[1:])
        if not (own in called and place_of(one)[0] == DECORATOR)
    )


def _whose(stack: tuple[Frame, ...], outermost: int) -> _Whose | None:
    """Processes come first, the innermost last, then the thread; none of them has a file. What runs
    in the outermost process names none."""
    pid = outermost
    for depth, (name, path, _) in enumerate(stack):
        if path:
            return None
        if (thread := _THREAD.match(name)) is not None:
            frames = stack[depth + 1 :]
            return _Whose(pid, int(thread["tid"], 0), thread["name"] or "", frames)
        if (process := _PROCESS.match(name)) is not None:
            pid = int(process["pid"])
    return None


def frame_text(frame: Frame, short_of: ShortOf) -> str:
    """ "forward (conv.py:12)"."""
    name, path, line = frame
    if not path:
        return name
    return f"{name} ({short_of(path)}:{line})" if line else f"{name} ({short_of(path)})"


def _role(whose: _Whose, wanted: _Wanted, frames: tuple[str, ...]) -> ThreadRole | None:
    is_main_thread = whose.tid == whose.pid or whose.name == "MainThread"
    if whose.pid == wanted.target:
        if is_main_thread if wanted.trains is None else whose.tid == wanted.trains:
            return "main"
        if any(frame.startswith(PIN_LOOP) for frame in frames):
            return "pin"
        return None if is_waiting(frames) else "other"
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
