"""What the probe and the monitor cost, beside others: `python -m tests.bench.cost` (`make bench`).

Prints one markdown table. `--json FILE` gets all figures; `python -m tests.bench.cost.table` makes
one of several such files, a column each: that of docs/cost.md. A section that fails says so and the
next one runs.
"""

import argparse
import importlib
import signal
import sys
from collections.abc import Callable, Iterable
from dataclasses import asdict
from pathlib import Path
from typing import Final

from tests.bench.cost.machine import machine
from tests.measuring.claims import Claim
from tests.measuring.sections import run

SECTIONS: Final = {
    "steps": 12,
    "peers": 5,
    "install": 1,
    "unused": 1,
    "memory": 2,
    "wire": 1,
    "marks": 1,
    "monitor": 2,
    "many_ranks": 1,
}
"""Parts of the time that each gets."""
SECONDS: Final = 600.0


def main() -> int:
    """Print the rows as they come. 1 when a bar was missed, its interval and all."""
    parser = argparse.ArgumentParser(prog="python -m tests.bench.cost", description=__doc__)
    parser.add_argument(
        "--only", metavar="SECTIONS", default=",".join(SECTIONS), help=f"of {', '.join(SECTIONS)}"
    )
    parser.add_argument("--json", type=Path, metavar="FILE", help="all figures")
    parser.add_argument(
        "--seconds",
        type=float,
        default=SECONDS,
        help="for measuring, shared by the sections; starting processes takes a minute or two more "
        f"({SECONDS:.0f})",
    )
    options = parser.parse_args()
    # What was started must go, the stopped ones too, also when a time limit ends this.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
    names = options.only.split(",")
    if unknown := set(names) - set(SECTIONS):
        parser.error(f"no such section: {', '.join(sorted(unknown))}")
    here = machine()
    print(f"{here.name}\n", flush=True)
    parts = sum(SECTIONS[name] for name in names)
    missed = run(
        {name: _claims_of(name, options.seconds * SECTIONS[name] / parts) for name in names},
        options.json,
        lambda rows: {"machine": asdict(here), "seconds": options.seconds, "rows": rows},
    )
    return int(missed)


def _claims_of(section: str, seconds: float) -> Callable[[], Iterable[Claim]]:
    return lambda: importlib.import_module(f"tests.bench.cost.{section}").claims(seconds)


if __name__ == "__main__":
    sys.exit(main())
