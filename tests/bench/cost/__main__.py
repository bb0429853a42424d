"""What the probe and the monitor cost, beside others: `python -m tests.bench.cost` (`make bench`).

Prints one markdown table. `--json FILE` gets all figures; `python -m tests.bench.cost.table` draws
tables from such files. A section that fails says so and the next one runs.
"""

import argparse
import importlib
import json
import signal
import sys
import traceback
from dataclasses import asdict
from pathlib import Path
from time import monotonic
from typing import Any, Final

from tests.bench.cost.machine import machine
from tests.measuring.claims import HEADER, Claim, broken

SECTIONS: Final = {"steps": 10, "peers": 8, "start": 1, "memory": 1, "wire": 1, "monitor": 2}
"""Parts of the time that each gets."""
SECONDS: Final = 600.0


def main() -> int:
    """Print the rows as they come. 1 when a bar was missed by more than the noise."""
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
    print(f"{here.said()}\n\n{HEADER}", flush=True)
    told: dict[str, Any] = {"machine": asdict(here), "seconds": options.seconds, "rows": []}
    parts = sum(SECTIONS[name] for name in names)
    missed = False
    for name in names:
        begin_s = monotonic()
        try:
            section = importlib.import_module(f"tests.bench.cost.{name}")
            for claim in section.claims(options.seconds * SECTIONS[name] / parts):
                missed |= _tell(name, claim, told, options.json)
        except Exception as error:
            missed |= _tell(name, broken(name, "", error), told, options.json)
            print("".join(traceback.format_exception(error)[-4:]), file=sys.stderr, flush=True)
        print(f"{name}: {monotonic() - begin_s:.0f} s", file=sys.stderr, flush=True)
    return int(missed)


def _tell(section: str, claim: Claim, told: dict[str, Any], file: Path | None) -> bool:
    """Print a row and keep it; the file is whole after each, should the time run out."""
    print(claim.line(), flush=True)
    told["rows"].append({"section": section, **asdict(claim)})
    if file is not None:
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(json.dumps(told, indent=1))
    return claim.met is False and claim.sure


if __name__ == "__main__":
    sys.exit(main())
