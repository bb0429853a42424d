"""What two GPUs show of a job of two ranks: `python -m tests.gpu.ranks OUT [SECTION …]`.

Sections: standstill, cost, graphs, profile, scenarios (`demo/record_ranks.py`). Writes
OUT/kept/results.json after each row and OUT/ranks.tar.gz at the end; takes about eight minutes,
profile four of its own. One rank a GPU with NCCL; gloo on a CPU where there are none, to try the
section itself.
"""

import argparse
import os
import subprocess
import sys
import tarfile
from collections.abc import Callable, Iterable
from pathlib import Path
from time import monotonic
from typing import Final

from tests.gpu.ranks.jobs import RANKS
from tests.measuring.child import ROOT, python_path
from tests.measuring.claims import Claim
from tests.measuring.sections import run

SECTIONS: Final = ("standstill", "cost", "graphs", "profile", "scenarios")
SECONDS: Final = 480.0
SCENARIOS: Final = (
    "shared_gpu", "tensor_parallel", "fsdp2", "fsdp2_alone", "balanced_fsdp2", "big_layers",
    "computes_twice", "balanced", "checkpoint", "slow_loader", "slow_python", "uneven",
    "slow_loader_all", "accumulation",
)  # fmt: skip
"""The first are those that were never tried: the time may not be enough for all."""
RECORDED_S: Final = 12.0
A_SCENARIO_S: Final = 19.0
"""With its start: imports run beside the one before it."""


def main() -> int:
    """Print the rows as they come. 1 when a bar was missed."""
    parser = argparse.ArgumentParser(prog="python -m tests.gpu.ranks", description=__doc__)
    parser.add_argument("out", type=Path)
    parser.add_argument("sections", nargs="*", help=f"of {', '.join(SECTIONS)}; all when none")
    parser.add_argument("--seconds", type=float, default=SECONDS, help="in all")
    parser.add_argument("--cost-seconds", type=float, default=90.0, help="of the windows of cost")
    parser.add_argument("--ranks", type=int, default=RANKS, help="of the jobs of profile")
    options = parser.parse_args()
    out = options.out.resolve()
    names = options.sections or list(SECTIONS)
    if unknown := set(names) - set(SECTIONS):
        parser.error(f"no such section: {', '.join(sorted(unknown))}")
    end_s = monotonic() + options.seconds
    kept = out / "kept"
    kept.mkdir(parents=True, exist_ok=True)
    sections: dict[str, Callable[[], Iterable[Claim]]] = {
        "cost": lambda: _cost(options.cost_seconds),
        "graphs": _graphs,
        "standstill": lambda: _standstill(kept / "standstill"),
        "profile": lambda: _profile(kept / "profile", options.ranks),
    }
    chosen = {name: sections[name] for name in names if name in sections}
    missed = run(chosen, kept / "results.json")
    if "scenarios" in names:
        _record(kept / "scenarios", end_s)
    with tarfile.open(out / "ranks.tar.gz", "w:gz") as tar:
        tar.add(kept, "ranks")
    return int(missed)


def _cost(seconds: float) -> Iterable[Claim]:
    from tests.gpu.ranks import cost

    return cost.claims(seconds)


def _graphs() -> Iterable[Claim]:
    from tests.gpu.ranks import graphs

    return graphs.claims()


def _standstill(out: Path) -> Iterable[Claim]:
    from tests.gpu.ranks import standstill

    return standstill.claims(out)


def _profile(out: Path, ranks: int) -> Iterable[Claim]:
    from tests.gpu.ranks import profile

    return profile.claims(out, ranks)


def _record(out: Path, end_s: float) -> None:
    """As many as the time is enough for."""
    many = int(max(0.0, end_s - monotonic()) // A_SCENARIO_S)
    if not many:
        print("no time left for scenarios", file=sys.stderr)
        return
    command = [sys.executable, str(ROOT / "demo" / "record_ranks.py"), str(out)]
    command += [*SCENARIOS[:many], "--seconds", f"{RECORDED_S:g}"]
    subprocess.run(command, env={**os.environ, "PYTHONPATH": python_path()}, check=False)


if __name__ == "__main__":
    sys.exit(main())
