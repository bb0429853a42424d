"""The table of what was promised and what a GPU showed: `python -m tests.gpu.table [SECTION …]`.

What the probe costs is `python -m tests.bench.cost`. A section that fails says so and the next one
runs. `--out FILE` gets all figures as JSON.
"""

import argparse
import importlib
import json
import sys
import traceback
from dataclasses import asdict
from pathlib import Path
from time import monotonic
from typing import Any, Final

from tests.measuring.claims import HEADER, Claim, broken

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
    rows: list[dict[str, Any]] = []
    missed = False
    print(HEADER, flush=True)
    for name in names:
        begin_s = monotonic()
        try:
            for claim in importlib.import_module(SECTIONS[name]).claims():
                missed |= _tell(name, claim, rows, options.out)
        except Exception as error:
            missed |= _tell(name, broken(name, "", error), rows, options.out)
            print("".join(traceback.format_exception(error)[-4:]), file=sys.stderr, flush=True)
        print(f"{name}: {monotonic() - begin_s:.0f} s", file=sys.stderr, flush=True)
    return int(missed)


def _tell(section: str, claim: Claim, rows: list[dict[str, Any]], out: Path | None) -> bool:
    """Print a row and keep it; the file is whole after each, should the time run out."""
    print(claim.line(), flush=True)
    rows.append({"section": section, **asdict(claim)})
    if out is not None:
        out.parent.mkdir(parents=True, exist_ok=True)
        out.write_text(json.dumps(rows, indent=1))
    return claim.met is False


if __name__ == "__main__":
    sys.exit(main())
