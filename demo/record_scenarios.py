"""Record the scenarios on this machine's GPU, and measure what each one's cause really costs.

    python demo/record_scenarios.py OUT [--only a,b] [--seconds 30] [--counterfactual]

One scenario at a time, since there is one GPU; only the imports of the next one overlap. OUT gets
NAME.gpuwatch and the scripts' output, and with `--counterfactual` truth.json: each script, run
without the probe, with its cause and without.
"""

import argparse
import json
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from evaluation.catalogue import ROOT, SCENARIOS, Scenario, scenarios
from evaluation.launching import FailedError, Job, one_at_a_time
from evaluation.recording import GPUWATCH, record

REPLAYS_AT_ONCE = 4


@dataclass(frozen=True)
class ScenarioTruth:
    """What a scenario's cause costs, by running it with and without."""

    kind: str
    sub: str | None
    negative: bool
    speedup: float
    """Samples a second without the cause, over those with it."""
    step_ms_with: float
    step_ms_without: float


def main(argv: Sequence[str] | None = None) -> int:
    """Record, measure, and say what gpuwatch makes of each recording."""
    given = arguments(argv)
    folder: Path = given.folder
    folder.mkdir(parents=True, exist_ok=True)
    chosen = scenarios(given.only, SCENARIOS)
    jobs = [job for scenario in chosen for job in jobs_of(scenario, given)]
    reports: dict[tuple[str, str], dict[str, float]] = {}
    failed: set[str] = set()
    for launched in one_at_a_time(jobs):
        name, purpose = launched.job.scenario.name, launched.job.purpose
        began = time.monotonic()
        try:
            launched.begin()
            if purpose == "recording":
                file = folder / f"{name}.gpuwatch"
                record(launched, file, given.seconds)
                reported = f"recorded, {file.stat().st_size / 1024:.0f} KiB"
            else:
                report = reports[name, purpose] = launched.report()
                reported = f"{purpose} its cause {report['steps_per_s']:.2f} steps/s"
        except FailedError as error:
            failed.add(name)
            reported = f"FAILED {error}"
        print(f"{name:26} {time.monotonic() - began:5.1f} s  {reported}", flush=True)
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


def jobs_of(scenario: Scenario, given: argparse.Namespace) -> Iterator[Job]:
    """The runs that a scenario takes."""
    if given.recording:
        yield Job(scenario, "recording", given.folder, SCENARIOS, tiny=given.tiny)
    if given.counterfactual:
        for purpose in ("with", "without") if scenario.switch is not None else ("with",):
            seconds: float = given.bare_seconds
            yield Job(scenario, purpose, given.folder, SCENARIOS, seconds, tiny=given.tiny)


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


def truth_of(scenario: Scenario, slow: dict[str, float], fast: dict[str, float]) -> ScenarioTruth:
    """What the two reports say; samples count, since a switch may change the batch."""
    return ScenarioTruth(
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
            reported = f"{verdict['kind']}/{verdict['sub']}" if verdict["sub"] else verdict["kind"]
            speedup = verdict.get("speedup")
            print(
                f"{scenario.name:26} truth {truth:22} reported {reported:22} "
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
