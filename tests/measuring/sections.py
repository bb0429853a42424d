"""A table of claims, a section after another."""

import json
import sys
import traceback
from collections.abc import Callable, Iterable, Mapping
from dataclasses import asdict
from pathlib import Path
from time import monotonic
from typing import Any

from tests.measuring.claims import HEADER, Claim, broken

Row = dict[str, Any]


def run(
    sections: Mapping[str, Callable[[], Iterable[Claim]]],
    file: Path | None,
    page: Callable[[list[Row]], Any] = list,
) -> bool:
    """Print the rows as they come. A section that fails says so and the next one runs.

    `page` makes of all rows what `file` is to hold, which is whole after each of them, should the
    time run out. Returns whether a bar was missed.
    """
    rows: list[Row] = []
    missed = False

    def report(section: str, claim: Claim) -> bool:
        print(claim.line(), flush=True)
        rows.append({"section": section, **asdict(claim)})
        if file is not None:
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_text(json.dumps(page(rows), indent=1))
        return claim.met is False

    print(HEADER, flush=True)
    for name, claims in sections.items():
        begin_s = monotonic()
        try:
            for claim in claims():
                missed |= report(name, claim)
        except Exception as error:
            missed |= report(name, broken(name, "", error))
            print("".join(traceback.format_exception(error)[-4:]), file=sys.stderr, flush=True)
        print(f"{name}: {monotonic() - begin_s:.0f} s", file=sys.stderr, flush=True)
    return missed
