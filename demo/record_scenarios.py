"""Record the scenarios on this machine's GPU, and measure what each one's cause really costs.

    python -m demo.record_scenarios OUT [--only a,b] [--seconds 30] [--counterfactual]

One scenario at a time, since there is one GPU; only the imports of the next one overlap. OUT gets
NAME.gpuwatch and the scripts' output, and with `--counterfactual` truth.json: each script, run
without the probe, with its cause and without.
"""

import argparse
import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import IO, Any

from tui.cli.target import has_probe

ROOT = Path(__file__).resolve().parents[1]
SCENARIOS = ROOT / "demo" / "scenarios"
GPUWATCH = (sys.executable, "-m", "tui.cli.main")

FIRST_STEP = "first step done"
"""What a script prints when its first step is over."""
FIRST_STEP_WITHIN_S = 120.0
"""Imports, a CUDA context, workers, and perhaps a compilation: 6 to 10 s as a rule."""
LOOK_EVERY_S = 0.1
STOP_WITHIN_S = 10.0
GRACE_S = 60.0
"""What a command may take beyond the seconds that it was asked for."""
REPLAYS_AT_ONCE = 4


class FailedError(Exception):
    """A scenario that did not do its part; the others go on."""


@dataclass(frozen=True)
class Scenario:
    """One row of the catalogue."""

    name: str
    script: str
    title: str
    shape: str
    kind: str
    sub: str | None
    also_accept: list[str]
    """Kinds that are as right as `kind`."""
    negative: bool
    """Whether a verdict that asks for a change would be a false alarm."""
    switch: str | None
    """What `--without-cause` does; None where there is no cause to remove."""
    notes: str


@dataclass(frozen=True)
class Truth:
    """What a scenario's cause costs, by running it with and without."""

    kind: str
    sub: str | None
    negative: bool
    speedup: float
    """Samples a second without the cause, over those with it."""
    step_ms_with: float
    step_ms_without: float


@dataclass(frozen=True)
class Job:
    """One run of a scenario's script."""

    scenario: Scenario
    purpose: str
    """"recording", or "with" or "without" for a run without the probe."""


class Launched:
    """A script's process; it has imported what it needs and waits for `begin`."""

    def __init__(self, job: Job, folder: Path, seconds: float, tiny: bool) -> None:
        self.job = job
        self.output = folder / f"{job.scenario.name}.{job.purpose}.log"
        command = [sys.executable, str(SCENARIOS / job.scenario.script), "--wait"]
        paths = filter(None, (str(ROOT), os.environ.get("PYTHONPATH")))
        environment = {**os.environ, "PYTHONPATH": os.pathsep.join(paths)}
        environment.pop("GPUWATCH", None)
        if job.purpose != "recording":
            command += ["--seconds", str(seconds)]
            environment["GPUWATCH"] = "0"
        if job.purpose == "without":
            command.append("--without-cause")
        if tiny:
            command.append("--tiny")
        with self.output.open("w") as output:
            self.process = subprocess.Popen(
                command,
                env=environment,
                stdin=subprocess.PIPE,
                stdout=output,
                stderr=subprocess.STDOUT,
                # Its own group, so that whatever it started can be ended with it.
                start_new_session=True,
                text=True,
            )

    def begin(self) -> None:
        """Let it train."""
        stdin: IO[str] | None = self.process.stdin
        if stdin is not None:
            try:
                stdin.write("\n")
                stdin.close()
            except BrokenPipeError:
                raise self.failure("ended before it began") from None

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

    def report(self, seconds: float) -> dict[str, float]:
        """Its closing line, once it has ended."""
        try:
            code = self.process.wait(FIRST_STEP_WITHIN_S + seconds + GRACE_S)
        except subprocess.TimeoutExpired:
            raise self.failure("did not end") from None
        if code:
            raise self.failure(f"ended with {code}")
        report: dict[str, float] = json.loads(self.output.read_text().splitlines()[-1])
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
        return FailedError(f"{self.job.purpose}: {what} ({last[:160]})")


def main(argv: Sequence[str] | None = None) -> int:
    """Record, measure, and say what gpuwatch makes of each recording."""
    given = arguments(argv)
    folder: Path = given.folder
    folder.mkdir(parents=True, exist_ok=True)
    chosen = scenarios(given.only)
    jobs = [
        job
        for scenario in chosen
        for job in jobs_of(scenario, given.recording, given.counterfactual)
    ]
    reports: dict[tuple[str, str], dict[str, float]] = {}
    failed: set[str] = set()
    for launched in one_at_a_time(jobs, folder, given.bare_seconds, given.tiny):
        name, purpose = launched.job.scenario.name, launched.job.purpose
        began = time.monotonic()
        try:
            launched.begin()
            if purpose == "recording":
                file = folder / f"{name}.gpuwatch"
                record(launched, file, given.seconds)
                said = f"recorded, {file.stat().st_size / 1024:.0f} KiB"
            else:
                report = reports[name, purpose] = launched.report(given.bare_seconds)
                said = f"{purpose} its cause {report['steps_per_s']:.2f} steps/s"
        except FailedError as error:
            failed.add(name)
            said = f"FAILED {error}"
        print(f"{name:26} {time.monotonic() - began:5.1f} s  {said}", flush=True)
        write_truth(folder / "truth.json", chosen, reports)
    if given.recording:
        show_verdicts(folder, chosen)
    return 1 if failed else 0


def arguments(argv: Sequence[str] | None) -> argparse.Namespace:
    """The command line."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("folder", type=Path, metavar="OUT")
    parser.add_argument("--only", default="", metavar="A,B", help="names from the catalogue")
    parser.add_argument("--seconds", type=float, default=30.0, help="of a recording")
    parser.add_argument("--counterfactual", action="store_true", help="write truth.json")
    parser.add_argument("--bare-seconds", type=float, default=8.0, help="of a run for truth.json")
    parser.add_argument("--no-recording", dest="recording", action="store_false")
    parser.add_argument("--tiny", action="store_true", help="sizes for a test without a GPU")
    return parser.parse_args(argv)


def scenarios(only: str) -> list[Scenario]:
    """The catalogue, or the scenarios of it that are named, in the order of their names given."""
    rows = json.loads((SCENARIOS / "catalogue.json").read_text())
    every = {row["name"]: Scenario(**row) for row in rows}
    names = only.split(",") if only else list(every)
    if unknown := [name for name in names if name not in every]:
        sys.exit(f"no such scenario: {', '.join(unknown)}")
    return [every[name] for name in names]


def jobs_of(scenario: Scenario, recording: bool, counterfactual: bool) -> Iterator[Job]:
    """The runs that a scenario takes."""
    if recording:
        yield Job(scenario, "recording")
    if counterfactual:
        yield Job(scenario, "with")
        if scenario.switch is not None:
            yield Job(scenario, "without")


def one_at_a_time(
    jobs: Sequence[Job], folder: Path, seconds: float, tiny: bool
) -> Iterator[Launched]:
    """Each job's process, ready to begin; it is stopped before the next one is handed out.

    The next one imports while this one starts up, and waits before it touches the GPU.
    """
    ahead: Launched | None = None
    try:
        for number in range(len(jobs)):
            now = ahead or Launched(jobs[number], folder, seconds, tiny)
            following = jobs[number + 1 : number + 2]
            ahead = Launched(following[0], folder, seconds, tiny) if following else None
            try:
                yield now
            finally:
                now.stop()
    finally:
        if ahead is not None:
            ahead.stop()


def record(launched: Launched, file: Path, seconds: float) -> None:
    """Write a recording of the running script."""
    launched.wait_for_steps(probe=True)
    pid = str(launched.process.pid)
    command = [*GPUWATCH, "record", pid, "-o", str(file), "--duration", f"{seconds:g}"]
    try:
        done = subprocess.run(
            command, cwd=ROOT, timeout=seconds + GRACE_S, capture_output=True, text=True
        )
    except subprocess.TimeoutExpired:
        raise FailedError("gpuwatch record did not end") from None
    if done.returncode or not file.exists():
        said = " ".join(done.stderr.split())[-300:]
        raise FailedError(f"gpuwatch record ended with {done.returncode}: {said}")
    if launched.process.poll() is not None:
        raise launched.failure("ended while it was recorded")


def write_truth(
    path: Path, chosen: Sequence[Scenario], reports: dict[tuple[str, str], dict[str, float]]
) -> None:
    """Write what is known by now, beside what an earlier call found out about other scenarios."""
    truths = json.loads(path.read_text()) if path.exists() else {}
    for scenario in chosen:
        slow = reports.get((scenario.name, "with"))
        # Without a cause there is nothing to remove: both runs are the same.
        fast = slow if scenario.switch is None else reports.get((scenario.name, "without"))
        if slow and fast:
            truths[scenario.name] = asdict(truth_of(scenario, slow, fast))
    if truths:
        path.write_text(json.dumps(truths, indent=2) + "\n")


def truth_of(scenario: Scenario, slow: dict[str, float], fast: dict[str, float]) -> Truth:
    """What the two reports say; samples count, since a switch may change the batch."""
    return Truth(
        kind=scenario.kind,
        sub=scenario.sub,
        negative=scenario.negative,
        speedup=round(fast["samples_per_s"] / slow["samples_per_s"], 3),
        step_ms_with=round(1_000 / slow["steps_per_s"], 3),
        step_ms_without=round(1_000 / fast["steps_per_s"], 3),
    )


def show_verdicts(folder: Path, chosen: Sequence[Scenario]) -> None:
    """One line for each recording: what gpuwatch says in the end, and whether that is right."""
    recorded = [each for each in chosen if (folder / f"{each.name}.gpuwatch").exists()]
    with ThreadPoolExecutor(REPLAYS_AT_ONCE) as pool:
        files = [folder / f"{each.name}.gpuwatch" for each in recorded]
        for scenario, verdict in zip(recorded, pool.map(final_verdict, files), strict=True):
            truth = f"{scenario.kind}/{scenario.sub}" if scenario.sub else scenario.kind
            if verdict is None:
                print(f"{scenario.name:26} truth {truth:22} replay failed", flush=True)
                continue
            right = verdict["kind"] in (scenario.kind, *scenario.also_accept)
            said = f"{verdict['kind']}/{verdict['sub']}" if verdict["sub"] else verdict["kind"]
            speedup = verdict.get("speedup")
            print(
                f"{scenario.name:26} truth {truth:22} said {said:22} "
                f"{'right' if right else 'WRONG'}  speedup {speedup if speedup else '-'}",
                flush=True,
            )


def final_verdict(file: Path) -> dict[str, Any] | None:
    """The verdict on the last line of a replay; None where there is none."""
    command = [*GPUWATCH, "replay", str(file), "--json"]
    try:
        done = subprocess.run(command, cwd=ROOT, timeout=180, capture_output=True, text=True)
        last = json.loads(done.stdout.splitlines()[-1])
    except (subprocess.TimeoutExpired, IndexError, ValueError):
        return None
    verdict: dict[str, Any] | None = last.get("verdict")
    return verdict


if __name__ == "__main__":
    sys.exit(main())
