"""The report of a soak: its bars, and a table for each kind of figure, in Markdown."""

from collections.abc import Iterable, Sequence

from tests.soak.bars import Bar, bars, words
from tests.soak.figures import Column, cost_columns, held_columns, memory_columns, verdicts
from tests.soak.files import Files
from tests.soak.record import SoakRecord, read_record
from tests.soak.trend import PARTS, Figure, trend

WORDS = {True: "pass", False: "FAIL", None: "not known"}


def report(files: Files) -> tuple[str, bool]:
    """(the text, whether no bar was missed)."""
    seen = read_record(files)
    found = bars(seen)
    sections = [
        _title(seen),
        _table(("", "measured", "bar", ""), map(_bar_row, found)),
        "## What it costs\n\n" + _columns(cost_columns(seen), seen),
        "## Memory, MiB\n\n" + _columns(memory_columns(seen), seen),
        "## What is held, and what was lost\n\n" + _columns(held_columns(seen), seen),
        "## What the JSON monitor reported\n\n" + _summary(seen),
    ]
    return "\n\n".join(sections) + "\n", all(bar.held is not False for bar in found)


def _title(seen: SoakRecord) -> str:
    ready = seen.ready
    steps = seen.rounds[-1]["steps"] if seen.rounds else 0
    state = "ended" if seen.closing is not None else "not ended"
    return (
        f"# A soak of {seen.length_s / 60:.0f} minutes ({state})\n\n"
        f"{steps} steps on {ready['device']}, {seen.cores} cores, Python {ready['python']}, "
        f"torch {ready['torch']}; watched by a screen and by `attach --json`, beside a bare twin. "
        "A trend is laid through the medians of the tenths but the first; 90 % intervals."
    )


def _bar_row(bar: Bar) -> tuple[str, ...]:
    return bar.what, bar.measured, bar.bar, WORDS[bar.held]


def _columns(columns: Sequence[Column], seen: SoakRecord) -> str:
    """A row for each column, since there are more of them than tenths."""
    rows = []
    for column in columns:
        name = f"{column.name}, {column.unit}" if column.unit else column.name
        figures = (_figure(figure, column.digits) for figure in column.figures)
        rows.append((name, *figures, words(trend(column.figures, seen.length_s))))
    return _table(("until", *_tenths(seen), "an hour"), rows)


def _summary(seen: SoakRecord) -> str:
    rows = zip(_tenths(seen), verdicts(seen), strict=True)
    return _table(("until", "verdicts, part of the lines"), rows)


def _tenths(seen: SoakRecord) -> tuple[str, ...]:
    return tuple(f"{(at + 1) * seen.length_s / PARTS / 60:.3g} min" for at in range(PARTS))


def _figure(figure: Figure, digits: int) -> str:
    return "–" if figure is None else f"{figure:.{digits}f}"


def _table(head: tuple[str, ...], rows: Iterable[tuple[str, ...]]) -> str:
    lines = [head, ("---",) * len(head), *rows]
    return "\n".join(f"| {' | '.join(cells)} |" for cells in lines)
