"""Scenario scripts as processes: they import ahead, begin when asked, and leave nothing behind."""

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Collection, Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Final, Generic, Protocol, TypeVar

import psutil

from evaluation.catalogue import ROOT, Scenario
from gpuwatch.tui.cli.target import has_probe

FIRST_STEP: Final = "first step done"
"""What a script prints when its first step is over."""
FIRST_STEP_WITHIN_S: Final = 120.0
"""Imports, a CUDA context, workers, and perhaps a compilation: 6 to 10 s as a rule."""
LOOK_EVERY_S: Final = 0.1
STOP_WITHIN_S: Final = 10.0
GRACE_S: Final = 60.0
"""What a command may take beyond the seconds that it was asked for."""


class FailedError(Exception):
    """A scenario that did not do its part; the others go on."""


class Runnable(Protocol):
    """A script to run."""

    @property
    def name(self) -> str:
        """Of its log."""

    @property
    def title(self) -> str:
        """What it is called in messages."""

    @property
    def folder(self) -> Path:
        """Where its output goes."""

    @property
    def seconds(self) -> float | None:
        """To train after the script's own warm-up; None: until stopped."""

    @property
    def probe(self) -> bool:
        """It has a probe, and is recorded through it."""

    @property
    def environment(self) -> Mapping[str, str]:
        """Variables of its own."""

    @property
    def cores(self) -> tuple[int, ...]:
        """That it may use; empty: any."""

    def command(self) -> list[str]:
        """The command line."""


@dataclass(frozen=True)
class Job:
    """One run of a scenario's script."""

    scenario: Scenario
    purpose: str
    """"recording", or without the probe: "with" or "without" its cause, or "traceml"."""
    folder: Path
    """Where its output goes."""
    scripts: Path
    """Where the scripts lie."""
    seconds: float | None = None
    """To train after the script's own warm-up; None: until stopped."""
    seed: int = 0
    scale: float = 1.0
    """Times the scenario's usual length of step."""
    turn: int = 0
    """Which of several runs for the same purpose."""
    tiny: bool = False
    cause: str = ""
    """Of several, the one that a run "without" lacks; "" for the main one."""
    probe: bool = True
    """The probe watches it; else it is recorded from outside."""
    under: tuple[str, ...] = ()
    """Module and arguments that run the script, where not Python itself."""
    cores: tuple[int, ...] = ()
    """That it may use; empty: any."""

    @property
    def name(self) -> str:
        """Of its log."""
        return f"{self.scenario.name}.{self.title}"

    @property
    def environment(self) -> Mapping[str, str]:
        """Only a recorded run is watched."""
        return {} if self.purpose == "recording" and self.probe else {"GPUWATCH": "0"}

    @property
    def title(self) -> str:
        """Its purpose, with the cause and the turn where there are several."""
        purpose = f"{self.purpose}-{self.cause}" if self.cause else self.purpose
        return f"{purpose}.{self.turn}" if self.turn else purpose

    def command(self) -> list[str]:
        """The command line."""
        script = str(self.scripts / self.scenario.script)
        command = [sys.executable, *self.under, script, "--wait", "--seed", str(self.seed)]
        if self.scale != 1.0:
            command += ["--scale", f"{self.scale:g}"]
        if self.seconds is not None:
            command += ["--seconds", f"{self.seconds:g}"]
        if self.purpose == "without":
            command += ["--without-cause", *filter(None, [self.cause])]
        if self.tiny:
            command.append("--tiny")
        return command


def end_all_when_ended() -> None:
    """Ended by a signal, as by `timeout`, this process ends what it has started, which would else
    go on beside the next run on the same GPU: each script has a session of its own."""

    def ended(number: int, _: object) -> None:
        for child in psutil.Process().children(recursive=True):
            with suppress(psutil.NoSuchProcess):  # it may have ended by itself
                child.kill()
        os._exit(128 + number)

    signal.signal(signal.SIGTERM, ended)


Work = TypeVar("Work", bound=Runnable)


class Launched(Generic[Work]):
    """A script's process; it has imported what it needs and waits for `begin`."""

    def __init__(self, job: Work, beside: Collection[int] = ()) -> None:
        """It imports on the cores `beside`, and on its own where there are none."""
        self.job = job
        self.output = job.folder / f"{job.name}.log"
        paths = filter(None, (str(ROOT), str(ROOT / "demo"), os.environ.get("PYTHONPATH")))
        environment = {**os.environ, "PYTHONPATH": os.pathsep.join(paths)}
        environment.pop("GPUWATCH", None)
        environment.update(job.environment)
        with self.output.open("w") as output:
            self.process = subprocess.Popen(
                job.command(),
                env=environment,
                stdin=subprocess.PIPE,
                stdout=output,
                stderr=subprocess.STDOUT,
                # Its own group, so that whatever it started can be ended with it.
                start_new_session=True,
                text=True,
            )
        if beside or job.cores:
            os.sched_setaffinity(self.process.pid, beside or job.cores)

    def begin(self, more: bool = False) -> None:
        """Let it train; with `more` it goes on to something else after `go_on`."""
        if self.job.cores:
            with suppress(psutil.NoSuchProcess):  # what has ended is noticed below
                for thread in psutil.Process(self.process.pid).threads():
                    with suppress(ProcessLookupError):
                        os.sched_setaffinity(thread.id, self.job.cores)
        stdin: IO[str] | None = self.process.stdin
        if stdin is not None:
            try:
                stdin.write("\n")
                stdin.flush()
                if not more:
                    stdin.close()
            except BrokenPipeError:
                raise self.failure("ended before it began") from None

    def go_on(self) -> None:
        """Let it do what comes after the training."""
        if self.process.stdin is not None:
            with suppress(BrokenPipeError):  # it has ended, and what was to be read is lost
                self.process.stdin.close()

    def wait_for_steps(self, probe: bool) -> None:
        """Return once its first step is over and, with `probe`, its page is there."""
        deadline = time.monotonic() + FIRST_STEP_WITHIN_S
        while time.monotonic() < deadline:
            if self.process.poll() is not None:
                raise self.failure("ended before its first step")
            if FIRST_STEP in self.output.read_text() and (not probe or has_probe(self.process.pid)):
                return
            time.sleep(LOOK_EVERY_S)
        raise self.failure(f"showed no step within {FIRST_STEP_WITHIN_S:.0f} s")

    def report(self) -> dict[str, float]:
        """Its closing line, once it has ended."""
        try:
            code = self.process.wait(FIRST_STEP_WITHIN_S + (self.job.seconds or 0.0) + GRACE_S)
        except subprocess.TimeoutExpired:
            raise self.failure("did not end") from None
        if code:
            raise self.failure(f"ended with {code}")
        lines = self.output.read_text().splitlines()
        # Workers that are ended with the process may still complain below it.
        closing = next((line for line in reversed(lines) if line.startswith("{")), None)
        if closing is None:
            raise self.failure("printed no closing line")
        report: dict[str, float] = json.loads(closing)
        return report

    def stop(self) -> None:
        """End it, and whatever it has started."""
        if self.process.stdin is not None:
            self.process.stdin.close()
        if self.process.poll() is None:
            self.process.terminate()
            try:
                self.process.wait(STOP_WITHIN_S)
            except subprocess.TimeoutExpired:
                pass
        try:
            os.killpg(self.process.pid, signal.SIGKILL)
        except ProcessLookupError:
            pass
        self.process.wait()

    def failure(self, what: str) -> FailedError:
        """What went wrong, with the last line that it printed."""
        last = (self.output.read_text().splitlines() or ["nothing printed"])[-1]
        return FailedError(f"{self.job.title}: {what} ({last[:160]})")


@contextmanager
def running(job: Work) -> Iterator[Launched[Work]]:
    """One job's process, which has begun; stopped in the end."""
    launched = Launched(job)
    try:
        launched.begin()
        yield launched
    finally:
        launched.stop()


def one_at_a_time(
    jobs: Iterable[Work], ahead: bool = True, beside: Collection[int] = ()
) -> Iterator[Launched[Work]]:
    """Each job's process, ready to begin; it is stopped before the next one is handed out.

    With `ahead` the next one imports while this one runs, on the cores `beside` if there are any,
    and waits before it touches the GPU.
    """
    queue = iter(jobs)
    now, following = _launched(queue, beside), None
    try:
        while now is not None:
            following = _launched(queue, beside) if ahead else None
            try:
                yield now
            finally:
                now.stop()
            now, following = following if ahead else _launched(queue, beside), None
    finally:
        for left in (now, following):
            if left is not None:
                left.stop()


def _launched(queue: Iterator[Work], beside: Collection[int]) -> Launched[Work] | None:
    job = next(queue, None)
    return Launched(job, beside) if job is not None else None
