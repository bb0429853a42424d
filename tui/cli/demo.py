"""`gpuwatch demo [NAME]`: start a real training run with a bottleneck and watch it."""

import argparse
import shlex
import tempfile
import threading
from dataclasses import replace
from functools import partial
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from .. import clock
from ..terminal import Appearance
from ..verdict.findings import Note, Verdict
from ..verdict.rules.warming_up import NO_STEP
from .demo_runs import Demo
from .options import Manual, add_appearance, appearance_of, examples
from .output import write_lines, write_notes
from .screen import show_screen, why_no_screen

if TYPE_CHECKING:
    from ..errors import UsageError
    from ..session.live import LiveProvider
    from .demo_runs import Catalogue, Demo, Training
    from .watching import Until


def annotate_for(demo: Demo, verdict: Verdict) -> Verdict:
    """The verdict; where others hold the cores or the GPU, with a note of what the demo shows, and
    before the first step with what is being started."""
    verdict = starting(demo, verdict)
    finding = verdict.finding
    if finding.kind != "contention" or finding.kind in (demo.kind, demo.kind_without_gpu):
        return verdict
    shows = f"{demo.kind}/{demo.sub}" if demo.sub else demo.kind
    held = "GPU" if finding.sub == "gpu" else "cores"
    text = f"this demo shows {shows}, but other processes hold the {held} of this machine"
    note = Note(f"{text}: run it when they are done", None, "proc")
    return replace(verdict, notes=(note, *verdict.notes))


def starting(demo: Demo, verdict: Verdict) -> Verdict:
    """The verdict; before the first step it says what is being started: that takes seconds."""
    if not verdict.finding.headline.startswith(NO_STEP):
        return verdict
    headline = f"starting a training run: {demo.title} …"
    return replace(verdict, finding=replace(verdict.finding, headline=headline))


NEEDED: Final = {"torch": "torch", "PIL": "pillow", "numpy": "numpy"}
"""Module and distribution of what the scripts import."""
START_S: Final = 120.0
"""Importing torch from a cold network disk takes that long; a script that dies is seen at once."""
POLL_S: Final = 0.05
PLAIN_S: Final = 20.0
"""After the first step, without a terminal."""
LONGEST_S: Final = 60.0
"""A run that takes longer to show its bottleneck gets this long."""


def add_to(commands: "argparse._SubParsersAction[Any]") -> None:
    """The command's part of the command line."""
    command = commands.add_parser(
        "demo",
        help="start a slow training run and watch it",
        description="Start a real training run with a bottleneck and watch it; the run ends with "
        "the monitor. Without a terminal it is watched for about 20 s. With --gpu nothing is "
        "started: it plays a recording from a GPU.",
        epilog=examples(
            ("gpuwatch demo", "the first one"),
            ("gpuwatch demo --list", "list them"),
            ("gpuwatch demo storage", "the one of that name"),
            ("gpuwatch demo --gpu", "play a recording, no GPU needed"),
        ),
        formatter_class=Manual,
        allow_abbrev=False,
    )
    command.add_argument("name", metavar="NAME", nargs="?", help="see --list; default: the first")
    command.add_argument("--gpu", action="store_true", help="play a recording from a GPU")
    command.add_argument("--list", action="store_true", help="list the demos")
    add_appearance(command)
    command.set_defaults(run=run)


def run(arguments: argparse.Namespace) -> int:
    """Raises GpuwatchError where the demonstration cannot be started."""
    if arguments.gpu:
        return _run_recorded(arguments)
    from .demo_runs import read_catalogue, table

    catalogue = read_catalogue()
    if arguments.list:
        write_lines(table(catalogue))
        return 0
    demo = catalogue.named(arguments.name)
    if demo is None:
        raise _unknown(arguments.name, [demo.name for demo in catalogue.demos], "demo")
    _check_needs()
    with tempfile.TemporaryDirectory(prefix="gpuwatch-demo-") as folder:
        log = Path(folder) / f"{demo.name}.log"
        return _show(catalogue, demo, log, appearance_of(arguments))


def _run_recorded(arguments: argparse.Namespace) -> int:
    from ..errors import NothingToMeasureError
    from ..recording.reader import Recording
    from .demo_runs import read_recorded, recorded_table
    from .replay import show

    catalogue = read_recorded()
    if not catalogue.demos:
        raise NothingToMeasureError(
            "this gpuwatch has no recordings",
            f"No catalogue in {catalogue.folder}",
            "Try: gpuwatch demo, a real run that needs no GPU either",
        )
    if arguments.list:
        write_lines(recorded_table(catalogue))
        return 0
    demo = catalogue.named(arguments.name)
    if demo is None:
        raise _unknown(arguments.name, [demo.name for demo in catalogue.demos], "demo --gpu")
    write_notes(
        [
            f"gpuwatch demo --gpu {demo.name}: {demo.title}",
            f"  {demo.about}",
            f"  A recording from an {demo.gpu} with torch {demo.torch}, {demo.recorded}: nothing "
            "runs here.",
        ]
    )
    return show(Recording(catalogue.folder / demo.file), appearance_of(arguments))


def _unknown(name: str, names: list[str], command: str) -> "UsageError":
    from ..errors import UsageError

    return UsageError(
        f"unknown demo {name!r}",
        f"Demos: {', '.join(names)}",
        f"See: gpuwatch {command} --list",
    )


def _check_needs() -> None:
    from ..errors import NothingToMeasureError

    missing = [NEEDED[module] for module in NEEDED if find_spec(module) is None]
    if missing:
        raise NothingToMeasureError(
            f"the demos train a model, and {' and '.join(missing)} cannot be imported",
            "gpuwatch itself does not need that, so it is not installed with it.",
            f"Install: pip install {' '.join(missing)}",
        )


def _show(catalogue: "Catalogue", demo: "Demo", log: Path, appearance: Appearance) -> int:
    from .demo_runs import Training, how_it_ended
    from .target import watch_live

    script = catalogue.folder / demo.script
    write_notes([f"gpuwatch demo {demo.name}: {demo.title}", f"  {demo.about}"])
    training = Training(script, log, catalogue.import_root)
    try:
        write_notes([f"  {shlex.quote(str(script))}, pid {training.pid}, writes to {log}"])
        write_notes([f"  starting a training run: {demo.title} …"])
        _wait_for_probe(training)
        status = training.exit_status
        if status is None:
            annotate = partial(annotate_for, demo)
            provider = watch_live(training.pid, stacks=True, annotate=annotate)
            code = _watch(provider, demo, appearance)
            status = training.exit_status
            if status is None or status == 0:
                return code
        write_notes(
            [
                f"gpuwatch: the training script ended: {how_it_ended(status)}",
                "Its last lines:",
                *(f"  {line}" for line in training.tail()),
            ]
        )
        return 1
    finally:
        training.end()


def _wait_for_probe(training: "Training") -> None:
    """Until the process shows its state page, or has ended.

    Raises NothingToMeasureError when it does neither.
    """
    from ..errors import NothingToMeasureError
    from .target import has_probe

    pause = threading.Event()
    started_ns = clock.now_ns()
    while training.exit_status is None and not has_probe(training.pid):
        if (clock.now_ns() - started_ns) / 1e9 > START_S:
            raise NothingToMeasureError(
                "the training script did not install its probe",
                f"It has been running for {START_S:.0f} s.",
                "Run it by hand to see what it waits for.",
            )
        pause.wait(POLL_S)


def _watch(provider: "LiveProvider", demo: "Demo", appearance: Appearance) -> int:
    why_not = why_no_screen()
    if why_not is None:
        return show_screen(provider, appearance)
    from .watching import PlainFace, watch

    write_notes([f"  {why_not}: lines of text for about {PLAIN_S:.0f} s"])
    watch(provider, PlainFace(), long_enough(demo))
    return 0


def long_enough(demo: "Demo") -> "Until":
    """Until PLAIN_S after the first step; longer while the bottleneck has not shown itself yet."""
    from ..model.snapshot import Snapshot

    promised = {demo.kind, demo.kind_without_gpu}

    first_step_s: list[float] = []

    def over(snapshot: Snapshot) -> bool:
        if snapshot.steps is None:
            return snapshot.attached_s >= LONGEST_S
        if not first_step_s:
            first_step_s.append(snapshot.attached_s)
        since_s = snapshot.attached_s - first_step_s[0]
        verdict = snapshot.verdict
        found = {verdict.finding.kind, *(other.kind for other in verdict.contributors)}
        return since_s >= (PLAIN_S if promised & found else LONGEST_S)

    return over
