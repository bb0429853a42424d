"""One turn: the program is started, warms up, is measured, and ended with all that it started."""

import os
import signal
import subprocess
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from threading import Event
from typing import Final

import psutil

from .. import clock
from ..compare.intervals import Estimate, ratio_of
from ..errors import GpuwatchError
from ..launch.command import command_of, with_probe
from ..launch.follower import follower
from ..launch.inject import ProbeBelow
from ..messages import Noted
from ..model.observations import Delivered
from ..model.snapshot import Snapshot
from ..recording.reader import Recording
from ..recording.whole_run import read_whole
from ..session.live import LiveProvider
from ..steps import Step
from .variants import Variant

VARIABLE: Final = "GPUWATCH_LAB"
"""As `probe.lab` has it."""
TURN_VARIABLE: Final = "GPUWATCH_LAB_TURN"
"""In the environment of all that a turn starts."""
POLL_S: Final = 0.1
ENDS_S: Final = 5.0
"""For a program to end when asked; then, or at a second ctrl-c, it is killed."""
GONE_S: Final = 60.0
"""For what is killed to be gone: the kernel first takes back the memory that it had pinned."""
TAIL_LINES: Final = 8


Watch = Callable[[int], LiveProvider]
"""Makes what watches a process, connected and not started: the command line's part."""


@dataclass(frozen=True, slots=True)
class Lengths:
    """How long a turn is."""

    warm_up_steps: int
    seconds: float
    """Measured after them."""
    limit_s: float
    """Of the whole turn."""


@dataclass(frozen=True, slots=True)
class Turn:
    """What one turn came to."""

    variant: Variant
    step_ms: Estimate | None
    """None: too few steps were seen."""
    sample_ms: Estimate | None
    """Time a sample; None where samples are not seen."""
    steps: int
    losses: tuple[tuple[int, float], ...]
    """(step, loss), those that were looked at; NaN where one was not finite."""
    refused: tuple[str, ...]
    """Changes that could not be made, with the reason."""
    made: bool
    """All changes were."""
    why_not: str = ""
    """Why there is no figure."""


def turn(words: Sequence[str], variant: Variant, lengths: Lengths, watch: Watch) -> Turn:
    """One turn. Whatever happens, nothing that it started is left (else GpuwatchError: the next
    turn would be measured beside it); of a lab that is killed its program goes too. For the main
    thread: the program ends with the thread that starts it."""
    with tempfile.TemporaryDirectory(prefix="gpuwatch-lab-") as folder:
        output = Path(folder) / "output.txt"
        with output.open("wb") as out:
            program = _started(words, variant, out.fileno(), folder)
        try:
            path = Path(folder) / "turn.gpuwatch"
            ended = _watched(program, path, lengths, watch)
        finally:
            _end(program, folder)
        if not path.exists():
            tail = output.read_text("utf-8", "replace").splitlines()[-TAIL_LINES:]
            return Turn(variant, None, None, 0, (), (), False, f"{ended}: {' / '.join(tail)}")
        return _read(path, variant, lengths, ended)


def _started(
    words: Sequence[str], variant: Variant, out: int, turn_id: str
) -> "subprocess.Popen[bytes]":
    command = command_of(words)
    environ: Mapping[str, str] = {
        **with_probe(os.environ),
        VARIABLE: variant.wanted,
        TURN_VARIABLE: turn_id,
    }
    try:
        return subprocess.Popen(
            command.words,
            executable=command.path,
            env=environ,
            stdin=subprocess.DEVNULL,
            stdout=out,
            stderr=out,
            start_new_session=True,
            preexec_fn=follower(),
        )
    except OSError as error:
        raise GpuwatchError(
            f"{command.path} cannot be started", os.strerror(error.errno or 0)
        ) from None


def _watched(program: "subprocess.Popen[bytes]", path: Path, lengths: Lengths, watch: Watch) -> str:
    """Records the program from its first steps on; returns how that ended."""
    pause, until_ns = Event(), clock.now_ns() + round(lengths.limit_s * 1e9)
    below = ProbeBelow(program.pid)
    while not below.is_there():
        if program.poll() is not None:
            return f"the program ended with code {program.returncode}"
        if clock.now_ns() > until_ns:
            return "no process with the probe trained in time"
        pause.wait(POLL_S)
    assert below.pid is not None
    provider = watch(below.pid)
    provider.recording.begin(path, overwrite=True)
    provider.start()
    try:
        measured_ns: int | None = None
        while clock.now_ns() <= until_ns:
            pause.wait(POLL_S)
            snapshot = provider.snapshot()
            if program.poll() is not None or snapshot.status.state == "ended":
                return f"the program ended with code {program.poll()}"
            if measured_ns is None and _is_warm(snapshot, lengths):
                measured_ns = clock.now_ns()
            if measured_ns is not None and clock.now_ns() - measured_ns >= lengths.seconds * 1e9:
                return ""
        return "it took too long to warm up" if measured_ns is None else ""
    finally:
        provider.close()


def _is_warm(snapshot: Snapshot, lengths: Lengths) -> bool:
    return snapshot.steps is not None and snapshot.steps.total >= lengths.warm_up_steps


def _end(program: "subprocess.Popen[bytes]", turn_id: str) -> None:
    """The program, its process group, and what it has started in sessions of its own, as torchrun
    does its ranks. Ctrl-C hurries it."""
    with _ctrl_c_last() as pressed:
        for number in (signal.SIGTERM, signal.SIGKILL):
            try:
                os.killpg(program.pid, number)
            except ProcessLookupError:
                pass  # none of them is left
            _wait(program, pressed)
        _kill_what_is_left(turn_id)


@contextmanager
def _ctrl_c_last() -> Iterator[Sequence[int]]:
    """What ctrl-c would have interrupted meanwhile is ended first. Yields a list that is not empty
    once it was pressed."""
    pressed: list[int] = []
    former = signal.signal(signal.SIGINT, lambda number, _: pressed.append(number))
    try:
        yield pressed
    finally:
        signal.signal(signal.SIGINT, former)
    if pressed and callable(former):
        former(signal.SIGINT, None)


def _wait(program: "subprocess.Popen[bytes]", pressed: Sequence[int]) -> None:
    until_ns = clock.now_ns() + round(ENDS_S * 1e9)
    while not pressed and clock.now_ns() < until_ns:
        try:
            program.wait(POLL_S)
        except subprocess.TimeoutExpired:
            continue
        return


def _kill_what_is_left(turn_id: str) -> None:
    """Raises GpuwatchError where one stays."""
    until_ns = clock.now_ns() + round(GONE_S * 1e9)
    while left := _of_turn(turn_id):
        if clock.now_ns() > until_ns:
            raise GpuwatchError(
                f"process {left[0].pid}, which the program has started, does not end",
                "It cannot be killed; the next turn would be measured beside it.",
            )
        for one in left:
            try:
                one.kill()
            except psutil.Error:
                pass  # it has ended, or is another user's
        psutil.wait_procs(left, POLL_S)


def _of_turn(turn_id: str) -> list[psutil.Process]:
    """Processes of it that run, by the environment that they were started with: whoever their
    parent is by now, and no other."""
    found = []
    for one in psutil.process_iter():
        try:
            ran = one.environ().get(TURN_VARIABLE) == turn_id
            if ran and one.status() != psutil.STATUS_ZOMBIE:
                found.append(one)
        except psutil.Error:
            continue  # another user's, or it has just ended
    return found


def _read(path: Path, variant: Variant, lengths: Lengths, ended: str) -> Turn:
    recording = Recording(path)
    try:
        run = read_whole(recording)
        notes: list[Noted] = []
        for entry in recording.entries():
            if isinstance(entry, Delivered):
                notes += entry.batch.notes
    finally:
        recording.close()
    steps = [step for step in run.steps if step.number - step.count >= lengths.warm_up_steps]
    walls = [(step.end_ns - step.start_ns) / 1e6 for step in steps]
    counts = [float(step.count) for step in steps]
    step_ms = ratio_of(walls, counts)
    seen = all(step.samples for step in steps)
    sample_ms = ratio_of(walls, [float(step.samples or 0) for step in steps]) if seen else None
    refused = [f"{one.name}: {one.why}" for one in notes if one.kind == "lab" and one.why]
    made = {one.name for one in notes if one.kind == "lab" and not one.why}
    return Turn(
        variant=variant,
        step_ms=step_ms,
        sample_ms=sample_ms,
        steps=sum(step.count for step in steps),
        losses=tuple(_losses(notes, run.steps)),
        refused=tuple(refused),
        made=len(made) >= len(variant.changes),
        why_not="" if step_ms is not None else ended or "too few steps after warming up",
    )


def _losses(notes: Sequence[Noted], steps: Sequence[Step]) -> list[tuple[int, float]]:
    """Each with its step: by the moment at which it was taken."""
    found, at = [], 0
    for note in notes:
        if note.kind != "log" or note.name != "loss":
            continue
        while at < len(steps) and steps[at].end_ns <= note.t_ns:
            at += 1
        if at < len(steps):
            found.append((steps[at].number, float("nan") if note.why else note.figure))
    return found
