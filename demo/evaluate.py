"""Run the scenarios, judge what was reported about them, and print the tables.

    python demo/evaluate.py OUT [--only a,b] [--seeds 0,1,2] [--seconds 30] [--cpu-only]
    python demo/evaluate.py OUT --no-probe  # as who attaches to a run without the line sees it
    python demo/evaluate.py OUT --truth EARLIER  # what EARLIER measured bare is not run again
    python demo/evaluate.py OUT --again     # judge the recordings in OUT anew
    python demo/evaluate.py OUT --table     # the tables, from OUT's results
    python demo/evaluate.py OUT --reliability  # how often what is 90 % sure is right

A scenario that has its result in OUT is not run again.
"""

import argparse
import importlib.util
import os
import sys
from collections.abc import Sequence
from pathlib import Path

import pynvml

from evaluation.catalogue import Scenario, scenarios
from evaluation.judging import judge
from evaluation.launching import end_all_when_ended
from evaluation.reliability import claims_in, reliability_table
from evaluation.result import MEASURED, RESULT, measured_in, results_in
from evaluation.running import Run, RunPlan, run_all
from evaluation.table import tables
from gpuwatch.tui.discovery.command_lines import visible
from gpuwatch.tui.sources.nvml import text_of


def main(argv: Sequence[str] | None = None) -> int:
    """Run, or judge anew, or only print."""
    given = arguments(argv)
    out: Path = given.folder
    if given.reliability:
        print(reliability_table(claims_in(out)))
        return 0
    chosen = [each for each in scenarios(given.only) if wanted(each, given)]
    failed = 0
    if not given.table:
        judge_measured(out, chosen, given.again)
    if not (given.table or given.again):
        seeds = [int(seed) for seed in given.seeds.split(",")]
        runs = [
            Run(scenario, seed, scale, out)
            for scenario in chosen
            for seed in seeds
            for scale in (scenario.scales if given.scales else (1.0,))
        ]
        failed = len(
            run_all([run for run in runs if not (run.folder / MEASURED).exists()], plan(given))
        )
    names = {scenario.name for scenario in chosen}
    results = [result for result in results_in(out) if result.scenario in names]
    print(tables(results))
    return 1 if failed or unjudged(out) else 0


def arguments(argv: Sequence[str] | None) -> argparse.Namespace:
    """The command line."""
    about, _, more = (__doc__ or "").partition("\n")
    parser = argparse.ArgumentParser(
        description=about, epilog=more, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("folder", type=Path, metavar="OUT")
    what = parser.add_mutually_exclusive_group()
    what.add_argument("--again", action="store_true", help="judge the recordings in OUT anew")
    what.add_argument("--reliability", action="store_true", help="said against right, in OUT")
    what.add_argument("--table", action="store_true", help="print the tables, and do nothing else")
    parser.add_argument("--only", default="", metavar="A,B", help="names from the catalogue")
    parser.add_argument("--half", choices=("tune", "report", "both"), default="both")
    parser.add_argument("--cpu-only", action="store_true", help="those that need no GPU")
    parser.add_argument("--seeds", default="0", metavar="0,1")
    parser.add_argument("--scales", action="store_true", help="in every length of step it has")
    parser.add_argument("--seconds", type=float, default=30.0, help="of a recording")
    parser.add_argument("--bare-seconds", type=float, default=4.0, help="of a run without it")
    parser.add_argument("--repeats", type=int, default=2, help="of those, each way")
    parser.add_argument("--traceml", action="store_true", help="run under TraceML too")
    parser.add_argument("--no-probe", action="store_true", help="record from outside alone")
    parser.add_argument("--truth", type=Path, metavar="OUT", help="take the bare runs from there")
    parser.add_argument("--tiny", action="store_true", help="sizes for a test")
    return parser.parse_args(argv)


def wanted(scenario: Scenario, given: argparse.Namespace) -> bool:
    """Whether the command line asks for it."""
    in_half = given.half in ("both", scenario.half)
    return in_half and (scenario.cpu or not given.cpu_only)


def plan(given: argparse.Namespace) -> RunPlan:
    """Of each scenario, on this machine."""
    if given.traceml and importlib.util.find_spec("traceml_ai") is None:
        sys.exit("no TraceML here: pip install traceml-ai==0.5.0")
    if given.truth is not None and not list(given.truth.glob(f"*/{MEASURED}")):
        sys.exit(f"{given.truth} holds nothing that was measured")
    if given.truth is not None and unjudged(given.truth):
        again = f"python demo/evaluate.py {given.truth} --again"
        sys.exit(f"{given.truth} was not judged here: {again}")
    gpu = gpu_here()
    if given.truth is not None and gpu not in (known := gpus_of(given.truth)):
        there = " and ".join(sorted(name or "no GPU" for name in known))
        sys.exit(f"{given.truth} was measured on {there}, and this machine has {gpu or 'no GPU'}")
    return RunPlan(
        seconds=given.seconds,
        bare_seconds=given.bare_seconds,
        repeats=given.repeats,
        gpu=gpu,
        traceml=given.traceml,
        tiny=given.tiny,
        probe=not given.no_probe,
        truth=given.truth,
    )


def judge_measured(out: Path, chosen: Sequence[Scenario], again: bool) -> None:
    """What was measured and has no result; with `again`, after a rule has changed, all of it."""
    by_name = {scenario.name: scenario for scenario in chosen}
    for path in sorted(out.glob(f"*/{MEASURED}")):
        measured = measured_in(path.parent)
        scenario = by_name.get(measured.scenario)
        if scenario is not None and (again or not (path.parent / RESULT).exists()):
            print(judge(scenario, measured, path.parent), flush=True)


def unjudged(out: Path) -> list[Path]:
    """Runs that have been measured and have no result: a rule broke on them."""
    return [path for path in out.glob(f"*/{MEASURED}") if not (path.parent / RESULT).exists()]


def gpus_of(earlier: Path) -> set[str | None]:
    """On which an earlier evaluation was measured; None among them: on none."""
    return {result.gpu for result in results_in(earlier)}


def gpu_here() -> str | None:
    """The name of the first GPU that a run from here may use (CUDA_VISIBLE_DEVICES); None without
    one."""
    try:
        pynvml.nvmlInit()
    except pynvml.NVMLError:
        return None
    try:
        every = [pynvml.nvmlDeviceGetHandleByIndex(at) for at in range(pynvml.nvmlDeviceGetCount())]
        uuids = [text_of(pynvml.nvmlDeviceGetUUID(device)) for device in every]
        chosen = visible(os.environ.get("CUDA_VISIBLE_DEVICES"), uuids)
        return text_of(pynvml.nvmlDeviceGetName(every[chosen[0]])) if chosen else None
    finally:
        pynvml.nvmlShutdown()


if __name__ == "__main__":
    end_all_when_ended()
    sys.exit(main())
