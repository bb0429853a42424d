"""Examine generated runs: verdicts against what each change to a run really gives.

    python demo/evaluate_runs.py OUT --seeds 0-49 [--device cuda] [--jobs 4]
    python demo/evaluate_runs.py OUT --ordinary [--only dlrm,ppo]  # the scripts of demo/ordinary
    python demo/evaluate_runs.py OUT --again     # judge the recordings in OUT anew
    python demo/evaluate_runs.py OUT --report    # the tables
    python demo/evaluate_runs.py OUT --keep tests/recordings/generated  # add all of them to it

Even seeds are for development and odd ones for the report. Of odd seeds nothing is printed but
their sums: rules must not be fitted to them. A seed that has its result in OUT is not run again.
"""

import argparse
import subprocess
import sys
import threading
import time
from collections.abc import Sequence
from pathlib import Path

from evaluation.examined import Examined
from evaluation.examined_table import row_of, tables
from evaluation.kept_runs import RESULTS, all_again, keep, keep_all, kept_in
from evaluation.launching import end_all_when_ended
from evaluation.ordinary import ScriptPlan, run_scripts, scripts
from evaluation.seeds import Plan, run_seeds, slots_of
from generated.spec import half_of


def main(argv: Sequence[str] | None = None) -> int:
    """Run, or judge anew, or only print."""
    given = arguments(argv)
    out: Path = given.folder
    out.mkdir(parents=True, exist_ok=True)
    path: Path = given.out or out / RESULTS
    before = kept_in(out / RESULTS if given.again else path)
    results = {(each.device, each.name): each for each in before}
    failed: list[str] = []
    if given.again:
        results = {(each.device, each.name): each for each in all_again(before, out, given.jobs)}
        keep_all(path, list(results.values()))
    elif given.seeds or given.ordinary:
        failed = _run(given, path, results)
    if given.keep is not None:
        left_out = [each.name for each in keep(list(results.values()), out, given.keep)]
        print(f"{len(results) - len(left_out)} of {len(results)} runs kept in {given.keep}")
        print(*([f"no room for {', '.join(left_out)}"] if left_out else []))
    if given.report or given.again:
        print(tables(list(results.values())))
    return 1 if failed else 0


def arguments(argv: Sequence[str] | None) -> argparse.Namespace:
    """The command line."""
    about, _, more = (__doc__ or "").partition("\n")
    parser = argparse.ArgumentParser(
        description=about, epilog=more, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("folder", type=Path, metavar="OUT", help="recordings and results")
    what = parser.add_mutually_exclusive_group()
    what.add_argument("--seeds", type=_seeds, default=[], metavar="A-B", help="or A,B,C")
    what.add_argument("--ordinary", action="store_true", help="the scripts of demo/ordinary")
    parser.add_argument("--only", default="", metavar="A,B", help="of those scripts")
    parser.add_argument("--half", choices=("development", "report", "both"), default="both")
    parser.add_argument("--device", choices=("cpu", "cuda"), default="cpu")
    parser.add_argument("--mode", choices=("run", "probe", "bare"), default="run")
    parser.add_argument("--seconds", type=float, default=8.0, help="of a recording")
    parser.add_argument("--turn-seconds", type=float, default=0.6, help="of a turn")
    parser.add_argument("--turns", type=int, default=2, help="with each switch near the best")
    parser.add_argument("--jobs", type=int, default=1, help="runs at a time, each on its own cores")
    parser.add_argument("--limit", type=float, metavar="S", help="begin no run after S seconds")
    parser.add_argument("--out", type=Path, metavar="JSON", help="results; OUT/results.json")
    parser.add_argument("--again", action="store_true", help="judge the recordings in OUT anew")
    parser.add_argument("--keep", type=Path, metavar="FOLDER", help="add all runs there, 7 MiB")
    parser.add_argument("--report", action="store_true", help="print the tables")
    return parser.parse_args(argv)


def _run(
    given: argparse.Namespace, path: Path, results: dict[tuple[str, str], Examined]
) -> list[str]:
    one = threading.Lock()

    def done(result: Examined) -> None:
        with one:
            results[result.device, result.name] = result
            keep_all(path, list(results.values()))
            print(row_of(result), flush=True)

    def is_new(name: str) -> bool:
        return (given.device, name) not in results

    slots = slots_of(given.jobs, _gpus() if given.device == "cuda" else 0)
    timing = (given.seconds, given.turn_seconds, given.turns)
    if given.ordinary:
        chosen = [script for script in scripts(given.only) if is_new(script.name)]
        return run_scripts(chosen, ScriptPlan(given.device, *timing, given.folder), slots, done)
    plan = Plan(given.device, given.mode, *timing, given.folder)
    seeds = [seed for seed in given.seeds if given.half in ("both", half_of(seed))]
    ends = None if given.limit is None else time.monotonic() + given.limit
    missing = [seed for seed in seeds if is_new(str(seed))]
    return [str(seed) for seed in run_seeds(missing, plan, slots, done, ends)]


def _gpus() -> int:
    """Of this machine; without torch, which would begin to use them."""
    listed = subprocess.run(["nvidia-smi", "-L"], capture_output=True, text=True, check=True)
    return len(listed.stdout.splitlines())


def _seeds(text: str) -> list[int]:
    first, dash, last = text.partition("-")
    if dash:
        return list(range(int(first), int(last) + 1))
    return [int(seed) for seed in text.split(",")]


if __name__ == "__main__":
    end_all_when_ended()
    sys.exit(main())
