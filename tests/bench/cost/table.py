"""What `--json` kept, as markdown for a page: `python -m tests.bench.cost.table FILE…`.

A table of steps for each side, and all other rows below. A later file's sections take the place of
an earlier one's, so sections may be run on their own. What misses its bar is bold; "?" says that
the bar lies within the noise.
"""

import argparse
import json
import sys
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any, Final

from tests.bench.cost.machine import Machine
from tests.measuring.claims import HEADER, Claim

Row = dict[str, Any]

NOISE: Final = "the same code twice"
COLUMNS: Final = {
    NOISE: ("mode", "A/A, watched"),
    "nobody watches": ("mode", "unwatched"),
    "watched": ("mode", "watched"),
    "watched, a process of its own": ("tool", "gpuwatch"),
    "TraceML": ("tool", "TraceML"),
    "gpuprof": ("tool", "gpuprof"),
}
"""Heading: which row's figure. The first three were measured in one process, the others in one run
of a process each."""


def steps_table(rows: Iterable[Row], side: str) -> Iterator[str]:
    """What a step costs more, a line a length of step; nothing for a side that was not measured."""
    cells: dict[float, dict[str, str]] = {}
    for row in rows:
        figures = row["figures"]
        if figures.get("side") != side:
            continue
        for heading, (key, value) in COLUMNS.items():
            if figures.get(key) == value:
                cells.setdefault(figures["target_ms"], {})[heading] = cell(heading, row)
    if not cells:
        return
    there = [heading for heading in COLUMNS if any(heading in one for one in cells.values())]
    yield f"| {side} | {' | '.join(there)} |"
    yield "|---" * (1 + len(there)) + "|"
    for target_ms, one in sorted(cells.items()):
        line = " | ".join(one.get(heading, "") for heading in there)
        yield f"| {target_ms:g} ms | {line} |"


def cell(heading: str, row: Row) -> str:
    """ "+12.3 us (0.6 %)", bold where the bar is missed; of the noise its interval."""
    figures = row["figures"]
    if heading == NOISE:
        return f"{digits(figures['low_us'])} to {digits(figures['high_us'])} us"
    words = (
        f"{digits(figures['cost_us'])} us ({100 * figures['cost_us'] / figures['step_us']:.1f} %)"
    )
    words += "" if row["sure"] else "?"
    return f"**{words}**" if row["met"] is False else words


def digits(us: float) -> str:
    """Two or three of them."""
    return f"{us:+.{0 if abs(us) >= 99.5 else 1}f}"


def other_rows(rows: Iterable[Row]) -> Iterator[str]:
    """All rows that are in no table of steps."""
    left = [row for row in rows if "side" not in row["figures"]]
    if left:
        yield from HEADER.splitlines()
    for row in left:
        yield Claim(**{key: value for key, value in row.items() if key != "section"}).line()


def main() -> int:
    """Print it all."""
    parser = argparse.ArgumentParser(prog="python -m tests.bench.cost.table", description=__doc__)
    parser.add_argument("files", type=Path, nargs="+", metavar="FILE")
    latest: dict[str, list[Row]] = {}
    for path in parser.parse_args().files:
        told = json.loads(path.read_text())
        for section in dict.fromkeys(row["section"] for row in told["rows"]):
            latest[section] = [row for row in told["rows"] if row["section"] == section]
        print(Machine(**told["machine"]).said())
    rows = [row for section in latest.values() for row in section]
    for lines in (steps_table(rows, "host"), steps_table(rows, "CUDA"), other_rows(rows)):
        print("", *lines, sep="\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
