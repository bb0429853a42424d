"""`gpuwatch replay FILE`: look at a recording as if it were happening."""

import argparse
import math
import threading
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from ..terminal import Appearance
from .options import Manual, add_appearance, appearance_of, examples
from .output import write_notes
from .screen import show_screen, why_no_screen

if TYPE_CHECKING:
    from ..model.snapshot import Snapshot
    from ..recording.reader import Recording
    from .watching import Face

READ_EVERY_NS: Final = 200_000_000
"""As often as a live run is read, in the time of the recording."""

SILENT_NS: Final = 60_000_000_000
"""A recording has an entry a second. So long without one, its monitor was stopped, or the file is
made up: nothing of that time is shown."""
LEAST_CPU_NS: Final = 10_000_000_000
CPU_NS_A_BYTE: Final = 30_000
"""What playing a file may take: three times as much as our recordings take (60 s in 42 KB: 0.4 s).
A made-up one holds thousands of entries in a byte."""
TOO_MUCH: Final = "it holds more than a recording of its size does: the rest was not played"


def add_to(commands: "argparse._SubParsersAction[Any]") -> None:
    """The command's part of the command line."""
    command = commands.add_parser(
        "replay",
        help="play a recording",
        description="Play a recording on the screen, or report on it as text.",
        epilog=examples(
            ("gpuwatch replay run.gpuwatch", "on the screen"),
            ("gpuwatch replay run.gpuwatch --speed 4", "four times as fast"),
            ("gpuwatch replay run.gpuwatch --once", "one report of its end"),
        ),
        formatter_class=Manual,
        allow_abbrev=False,
    )
    command.add_argument("file", metavar="FILE", type=Path, help="a file from `gpuwatch record`")
    face = command.add_mutually_exclusive_group()
    face.add_argument("--plain", action="store_true", help="lines of text instead of a screen")
    face.add_argument("--once", action="store_true", help="one report of its end")
    face.add_argument("--json", action="store_true", help="JSON lines")
    command.add_argument(
        "--speed",
        type=_speed,
        metavar="N",
        help="N times as fast (default: 1 on the screen; text is written at once)",
    )
    add_appearance(command)
    command.set_defaults(run=run)


def run(arguments: argparse.Namespace) -> int:
    """Raises GpuwatchError where the file cannot be replayed."""
    from ..recording.reader import Recording

    recording = Recording(arguments.file)
    if not (arguments.plain or arguments.once or arguments.json):
        return show(recording, appearance_of(arguments), arguments.speed)
    from . import watching

    if arguments.json:
        return play_to(recording, watching.JsonFace(), arguments.speed)
    if arguments.once:
        return play_to(recording, watching.OnceFace(), arguments.speed, last_alone=True)
    return play_to(recording, watching.PlainFace(), arguments.speed)


def show(recording: "Recording", appearance: Appearance, speed: float | None = None) -> int:
    """Play a recording on the screen, or in lines where there is none; then it is closed."""
    why_not = why_no_screen()
    if why_not is not None:
        from .watching import PlainFace

        write_notes([f"gpuwatch: {why_not}: writing lines of text (--plain)"])
        return play_to(recording, PlainFace(), speed)
    from .. import clock
    from ..session.replay import ReplayProvider
    from ..verdict.engine import Engine

    return show_screen(ReplayProvider(recording, Engine(), clock, speed or 1.0), appearance)


def play_to(
    recording: "Recording", face: "Face", speed: float | None, *, last_alone: bool = False
) -> int:
    """Play it to a face, `speed` times as fast as it was; with None as fast as can be.

    `last_alone`: the face is silent until the end. It is judged as often, but not put together
    five times a second for nobody: that takes a quarter of the time.

    Interrupted (KeyboardInterrupt), the face has its last word before the exception goes on.
    """
    from .. import clock
    from ..session.replay import ReplayProvider
    from ..verdict.engine import Engine

    pause = threading.Event()
    hand = _Hand()
    provider = ReplayProvider(recording, Engine(), hand)
    provider.start()
    size = recording.path.stat().st_size
    until_cpu_ns = clock.own_thread_cpu_ns() + LEAST_CPU_NS + size * CPU_NS_A_BYTE
    try:
        provider.snapshot()
        while not provider.is_over:
            if speed is not None:
                hand.ns += READ_EVERY_NS
                pause.wait(READ_EVERY_NS / 1e9 / speed)
            elif clock.own_thread_cpu_ns() > until_cpu_ns:
                recording.ends_early = TOO_MUCH
                break
            else:
                silent_ns = provider.next_ns
                hand.ns += READ_EVERY_NS if silent_ns <= SILENT_NS else silent_ns
            if last_alone:
                provider.play_on()
                continue
            snapshot = provider.snapshot()
            if not provider.is_over:
                face.show(snapshot)
    finally:
        face.last(provider.snapshot())
        provider.close()
    if recording.ends_early:
        write_notes([f"gpuwatch: {recording.path.name} ends early: {recording.ends_early}"])
    return 0


def last_snapshot(recording: "Recording") -> "Snapshot":
    """What is known at its end. The recording is closed then."""
    last: list[Snapshot] = []

    class Last:
        def show(self, snapshot: "Snapshot") -> None:
            """Nothing yet."""

        def last(self, snapshot: "Snapshot") -> None:
            """The end."""
            last.append(snapshot)

    play_to(recording, Last(), None, last_alone=True)
    return last[0]


class _Hand:
    """A clock that is moved on by hand."""

    def __init__(self) -> None:
        self.ns = 0

    def now_ns(self) -> int:
        """Where it was moved to."""
        return self.ns


def _speed(text: str) -> float:
    """How many times as fast. Raises ArgumentTypeError for anything but a number above 0."""
    try:
        speed = float(text)
    except ValueError:
        speed = math.nan
    if not 0 < speed < math.inf:
        raise argparse.ArgumentTypeError(f"{text!r} is not a number above 0")
    return speed
