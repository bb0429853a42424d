"""`python -m tests.frameworks.table`: the table of docs/frameworks.md, measured here.

GPUWATCH_FRAMEWORKS names the interpreter with the frameworks.
"""

import os
import sys
import tempfile
from collections.abc import Iterable
from pathlib import Path

from tests.frameworks.cases import CASES, Case
from tests.frameworks.real_run import Seen, off_by, watch
from tests.frameworks.test_frameworks import has_cuda, version_of

COLUMNS = ("data", "forward", "backward", "optimizer", "evaluation", "other", "not ours")


def main() -> None:
    """Run every case, a row each."""
    python = os.environ["GPUWATCH_FRAMEWORKS"]
    print(line(("run", "with", "steps", *COLUMNS, "to know")))
    print(line("---" for _ in range(len(COLUMNS) + 4)), flush=True)
    for case in CASES:
        version = version_of(python, case.package)
        if case.on_gpu and not has_cuda(python):
            print(f"{case.name}: no CUDA device here", file=sys.stderr)
            continue
        if version is None:
            print(f"{case.name}: {case.package} is not installed there", file=sys.stderr)
            continue
        with tempfile.TemporaryDirectory() as folder:
            seen = watch(python, case, Path(folder))
        print(row(case, f"{case.package} {version}", seen), flush=True)


def row(case: Case, version: str, seen: list[Seen]) -> str:
    """Of several ranks the worst figure."""
    errors: dict[str, float] = {}
    for one in seen:
        for phase, error in off_by(case, one).items():
            errors[phase] = max(errors.get(phase, 0.0), error, key=abs)
    steps = " and ".join(f"{one.reported_steps} of {one.true_steps}" for one in seen)
    figures = (f"{errors[name]:+.1%}" if name in errors else "" for name in COLUMNS)
    return line((case.name, version, steps, *figures, case.note))


def line(cells: Iterable[str]) -> str:
    """Of a Markdown table."""
    return f"| {' | '.join(cells)} |"


if __name__ == "__main__":
    main()
