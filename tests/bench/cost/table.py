"""What `--json` kept, as the table of docs/cost.md: `python -m tests.bench.cost.table FILE…`.

A column a machine. A later file's rows of the same machine take the place of an earlier one's, so
sections may be run on their own. What misses its bar is bold.
"""

import argparse
import json
import sys
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

from tests.bench.cost.machine import Machine

Row = dict[str, Any]
Key = tuple[str, str, str]
"""Item, loop, bar."""


def table(machines: Mapping[str, Iterable[Row]]) -> Iterator[str]:
    """Its lines; rows in the order in which they first came."""
    cells: dict[Key, dict[str, str]] = {}
    for machine, rows in machines.items():
        for row in rows:
            cells.setdefault((row["item"], row["loop"], row["bar"]), {})[machine] = cell(row)
    yield "| | | bar | " + " | ".join(machines) + " |"
    yield "|---" * (3 + len(machines)) + "|"
    for key, measured in cells.items():
        line = " | ".join((*key, *(measured.get(machine, "") for machine in machines)))
        yield f"| {line} |"


def cell(row: Row) -> str:
    """What was measured."""
    return f"**{row['measured']}**" if row["met"] is False else str(row["measured"])


def main() -> int:
    """Print it."""
    parser = argparse.ArgumentParser(prog="python -m tests.bench.cost.table", description=__doc__)
    parser.add_argument("files", type=Path, nargs="+", metavar="FILE")
    machines: dict[str, dict[Key, Row]] = {}
    for path in parser.parse_args().files:
        kept = json.loads(path.read_text())
        rows = machines.setdefault(Machine(**kept["machine"]).name, {})
        rows |= {(row["item"], row["loop"], row["bar"]): row for row in kept["rows"]}
    print(*table({name: rows.values() for name, rows in machines.items()}), sep="\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
