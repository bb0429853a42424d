"""`python -m tests.versions.matrix FOLDER [--keep]`: on other Pythons and torches.

Each pair gets an environment below FOLDER, 5 GB with a torch that brings CUDA, which is removed
again; `--keep` leaves it for the next time. Prints the table of docs/versions.md. Ends with 1 where
a test failed; a pair that cannot be had here is named, and fails nothing.
"""

import argparse
import re
import shutil
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

from tests.versions.environment import Missing, environment_of
from tests.versions.pairs import PAIRS, TESTS, Pair

ROOT = Path(__file__).parents[2]
TESTS_S = 900.0


@dataclass(frozen=True)
class Result:
    """What the tests of one pair came to."""

    pair: Pair
    python: str
    """In full."""
    passed: int
    failed: list[str]
    skipped: list[str]
    """Why, each reason once."""


def main(arguments: list[str]) -> int:
    """Run all pairs; the exit status."""
    parser = argparse.ArgumentParser(prog="python -m tests.versions.matrix")
    parser.add_argument("folder", type=Path)
    parser.add_argument("--keep", action="store_true")
    options = parser.parse_args(arguments)
    folder = options.folder.resolve()
    folder.mkdir(parents=True, exist_ok=True)
    failed = False
    print("| Python | torch | passed | failed | skipped |\n| --- | --- | --- | --- | --- |")
    for pair in PAIRS:
        try:
            result = tested(pair, environment_of(pair, folder))
        except Missing as missing:
            print(f"| {pair.python} | {pair.torch} | not run: {missing} | | |", flush=True)
        else:
            print(row(result), flush=True)
            failed |= bool(result.failed)
        if not options.keep:
            shutil.rmtree(folder / pair.name, ignore_errors=True)
    return int(failed)


def tested(pair: Pair, python: Path) -> Result:
    """Run the tests there."""
    version = subprocess.run(
        [python, "-c", "import platform; print(platform.python_version())"],
        capture_output=True,
        text=True,
        check=True,
    )
    ran = subprocess.run(
        [python, "-m", "pytest", "-q", "-p", "no:cacheprovider", "--timeout=240", *TESTS],
        cwd=ROOT,
        capture_output=True,
        text=True,
        timeout=TESTS_S,
        check=False,
    )
    return read(pair, version.stdout.strip(), ran.stdout)


def read(pair: Pair, python: str, shown: str) -> Result:
    """pytest's summary. Raises ValueError where it has none."""
    counted = re.search(r"(\d+) passed", shown)
    failed = re.findall(r"^(?:FAILED|ERROR) (.+?)(?: - .*)?$", shown, re.MULTILINE)
    if counted is None and not failed:
        raise ValueError(f"{pair.name}: {shown[-2000:]}")
    skipped = re.findall(r"^SKIPPED \[\d+\] \S+: (.*)", shown, re.MULTILINE)
    passed = int(counted[1]) if counted else 0
    return Result(pair, python, passed, failed, list(dict.fromkeys(skipped)))


def row(result: Result) -> str:
    """Of the table."""
    failed = ", ".join(result.failed) or "0"
    skipped = "; ".join(result.skipped) or "0"
    return f"| {result.python} | {result.pair.torch} | {result.passed} | {failed} | {skipped} |"


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
