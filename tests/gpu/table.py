"""The table of what was promised and what a GPU showed: `python -m tests.gpu.table [SECTION …]`.

What the probe costs is `python -m tests.bench.cost`. A section that fails says so and the next one
runs. `--out FILE` gets all figures as JSON.
"""

import argparse
import importlib
import sys
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Final

from tests.measuring.claims import Claim
from tests.measuring.sections import run

SECTIONS: Final = {
    "partition": "tests.gpu.partition",
    "exposed": "tests.gpu.exposed",
    "lag": "tests.gpu.lag",
    "graphs": "tests.gpu.graphs",
    "gpm": "tests.gpu.gpm",
}
"""Imported when they run: one that cannot be must not stop the others."""


def main() -> int:
    """Print the rows as they come. 1 when a bar was missed."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("sections", nargs="*", help=f"of {', '.join(SECTIONS)}; all when none")
    parser.add_argument("--out", type=Path, help="JSON of all figures")
    options = parser.parse_args()
    names = options.sections or list(SECTIONS)
    if unknown := set(names) - set(SECTIONS):
        parser.error(f"no such section: {', '.join(sorted(unknown))}")
    return int(run({name: claims_of(SECTIONS[name]) for name in names}, options.out))


def claims_of(module: str) -> Callable[[], Iterable[Claim]]:
    """What its section claims, imported when it runs."""
    return lambda: importlib.import_module(module).claims()


if __name__ == "__main__":
    sys.exit(main())
