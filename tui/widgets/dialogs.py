"""The help in rows: the focused panel's keys, everywhere's, how to read, the other panels' keys."""

from collections.abc import Callable, Iterable, Sequence
from itertools import combinations, pairwise, zip_longest
from typing import Final, Literal

from textual.message import Message

from ..doctor.checks import GLYPHS, WORDS, Check, CheckState
from .footer import bindings
from .keys import ACTIONS, Action, actions_of, footer_of
from .panel import Panel, View
from .text import EMPTY, Row, Span, cell_len, ends, fit, rule, wrap

# The doctor's answers in rows: what is not measured first to the eye, and what changes it.

ROLES: Final[dict[CheckState, str]] = {
    "ok": "good",
    "partly": "warning",
    "missing": "critical",
    "unknown": "dim",
}
NAME: Final = 16
"""Cells of the longest id, and a blank."""
INDENT: Final = 3 + NAME
NARROW: Final = 60
"""Below this a check's name has a row of its own."""
BESIDE: Final = 150
"""From here on the remedy stands beside the answer."""
MOST_DOCTOR_LINES: Final = 6


def doctor_rows(checks: Sequence[Check], width: int) -> list[Row]:
    """The sum, then every check."""
    rows = [_sum(checks), EMPTY]
    for check in checks:
        rows += _check(check, width)
    return rows


def _sum(checks: Sequence[Check]) -> Row:
    """ " ✓ 9 measured   ▲ 2 missing"."""
    spans: list[Span] = []
    for state, word in WORDS.items():
        number = sum(check.state == state for check in checks)
        if number:
            spans += [Span(f" {GLYPHS[state]} ", ROLES[state]), Span(f"{number} {word}  ")]
    return tuple(spans)


def _check(check: Check, width: int) -> list[Row]:
    mark = Span(f" {GLYPHS[check.state]} ", ROLES[check.state])
    role = "dim" if check.state == "unknown" else "text"
    if width < NARROW:
        lines = _lines(check.text, role, width, 3)
        return [(mark, Span(check.id, "strong")), *lines, *_fix(check, width, 3)]
    each = (width - INDENT) // 2 if width >= BESIDE else width - INDENT
    lines = _lines(check.text, role, each, 0)
    head = (mark, Span(check.id.ljust(NAME), "strong"))
    if width >= BESIDE:
        parts = zip_longest(lines, _fix(check, each, 2), fillvalue=EMPTY)
        both = [(*fit(left, each), *right) for left, right in parts]
        return [(*(head if at == 0 else _blank(INDENT)), *row) for at, row in enumerate(both)]
    below = _fix(check, each, 0)
    return [
        (*(head if at == 0 else _blank(INDENT)), *row) for at, row in enumerate([*lines, *below])
    ]


def _fix(check: Check, width: int, indent: int) -> list[Row]:
    if not check.fix:
        return []
    lines = wrap(check.fix, width - indent - 3, MOST_DOCTOR_LINES)
    return [
        (*_blank(indent), Span("→ " if at == 0 else "  ", "key"), Span(line, "key"))
        for at, line in enumerate(lines)
    ]


def _lines(text: str, role: str, width: int, indent: int) -> list[Row]:
    return [
        (*_blank(indent), Span(line, role))
        for line in wrap(text, width - indent - 1, MOST_DOCTOR_LINES)
    ]


def _blank(cells: int) -> Row:
    return (Span(" " * cells),) if cells else ()


COLUMN: Final = 48
"""Narrower than this a column would wrap nearly every line."""
MOST_COLUMNS: Final = 3
GAP: Final = 3
SIGN: Final = 11
"""Cells of a key or a sign, and the blanks behind it."""
MOST_LINES: Final = 4
"""Of one entry."""

READING: Final = (
    (Span("▲ critical", "critical"), "holds the run back: see NEXT"),
    (Span("◆ warning", "warning"), "holds it back a little, or will"),
    (Span("● info", "info"), "worth knowing, nothing to mend"),
    (Span("○", "strong"), "no verdict yet, or data missing"),
    (Span("≤ 2.3x", "strong"), "faster at most, never more"),
    (Span("~2.3x", "strong"), "an estimate"),
    (Span("[hook]", "dim"), "by the probe inside the run"),
    (Span("[event]", "dim"), "on the GPU's clock, by CUDA events"),
    (Span("[gpm]", "dim"), "read from the GPU's counters"),
    (Span("[nvml]", "dim"), "reported by the GPU's driver"),
    (Span("[py-spy]", "dim"), "stacks, sampled without a pause"),
    (Span("[probe]", "dim"), "where threads stand, reported once by the probe"),
    (Span("[proc]", "dim"), "reported by the kernel"),
    (Span("█ ▒ ░", "area"), "lowest, mean and highest of a column; without ▒ █ is the mean"),
    (Span("┴", "dim"), "a step begins"),
    (Span("┄", "dim"), "on an axis: not measured; in a bar: the loader starts"),
    (Span("↑", "area"), "goes on above the scale"),
    (Span("blank", "dim"), "not measured: never drawn as 0"),
    (Span("duty", "dim"), "part of the time in which the GPU works"),
    (Span("period", "dim"), "time from one peak to the next: one step"),
    (Span("trough", "dim"), "lowest use between two peaks"),
    (Span("lag", "dim"), "how far the GPU runs behind the host"),
    (Span("hidden", "dim"), "the part of a wait in which the GPU still had work"),
    (Span("PSS", "dim"), "memory; what processes share is counted once"),
    (Span("RSS", "dim"), "memory with mapped files, which the memory charts leave out"),
    (Span("no core", "dim"), "ready to run, and no core was free"),
)

PageBlock = list[Row]


def help_rows(panel: str, width: int) -> list[Row]:
    """All of the help for a width, in columns where there is room; `panel`: the focused kind."""
    columns = max(1, min(MOST_COLUMNS, (width + GAP) // (COLUMN + GAP)))
    each = (width - GAP * (columns - 1)) // columns
    mine, others = _key_blocks(panel, each)
    blocks = [*mine, _block("How to read it", READING, each), *others]
    parts = [_stacked(part) for part in _split(blocks, columns)]
    rows: list[Row] = []
    for line in zip_longest(*parts, fillvalue=EMPTY):
        cells = [fit(row, each) for row in line]
        rows.append(tuple(span for cell in cells for span in (*cell, Span(" " * GAP)))[:-1])
    return rows


def title_of(panel: str) -> str:
    """Over the keys of one kind of panel."""
    return {"": "Everywhere", "page": "In this window"}.get(panel, f"In the {panel}")


def _key_blocks(panel: str, width: int) -> tuple[list[PageBlock], list[PageBlock]]:
    """Those of the focused panel and of everywhere, then those of the other panels."""
    kinds = list(dict.fromkeys(action.panel for action in ACTIONS))
    first = [kind for kind in dict.fromkeys((panel, "")) if kind in kinds]
    rest = [kind for kind in kinds if kind not in first]
    mine, others = (
        [_block(title_of(kind), map(_entry, actions_of(kind)), width) for kind in part]
        for part in (first, rest)
    )
    return mine, others


def _entry(action: Action) -> tuple[Span, str]:
    return Span(action.shown, "key"), action.description


def _block(title: str, entries: Iterable[tuple[Span, str]], width: int) -> PageBlock:
    rows: PageBlock = [(Span(f" {title}", "title"),)]
    for sign, text in entries:
        blank = " " * max(1, SIGN - cell_len(sign.text))
        lines = wrap(text, width - SIGN - 2, MOST_LINES)
        rows.append((Span("  "), sign, Span(blank + lines[0])))
        rows += [(Span(" " * (SIGN + 2) + line),) for line in lines[1:]]
    return rows


def _stacked(blocks: Sequence[PageBlock]) -> PageBlock:
    """Blocks below each other, a blank row before each but the first."""
    rows = [row for block in blocks for row in (EMPTY, *block)]
    return rows[1:]


def _split(blocks: Sequence[PageBlock], columns: int) -> list[Sequence[PageBlock]]:
    """The blocks in their order over so many columns, so that the longest is as short as can be."""
    cuts = combinations(range(1, len(blocks)), min(columns, len(blocks)) - 1)
    parts = [_parts(blocks, (0, *cut, len(blocks))) for cut in cuts]
    return min(parts, key=lambda columns: max(len(_stacked(column)) for column in columns))


def _parts(blocks: Sequence[PageBlock], cuts: Sequence[int]) -> list[Sequence[PageBlock]]:
    return [blocks[start:end] for start, end in pairwise(cuts)]


# Text that may be longer than the screen: help and doctor. Moved with its own keys.

Content = Callable[[View, int], Sequence[Row]]
"""All of the rows for a width."""

FRAME = 2
"""Rows of the heading and of the keys."""


class Page(Panel):
    """A heading with the place in the text, the rows that fit, and the keys that move them."""

    KIND = "page"
    BINDINGS = bindings("page")

    class Wanted(Message):
        """A key that means something to the window."""

        def __init__(self, what: Literal["begin", "save"]) -> None:
            super().__init__()
            self.what = what

    def __init__(self, title: str, content: Content) -> None:
        super().__init__("page")
        self._title = title
        self._content = content
        self._offset = 0
        """Rows above the first that is shown."""
        self._length = 0

    def rows(self, view: View, width: int, height: int) -> Sequence[Row]:
        """The part that is looked at."""
        content = self._content(view, width)
        self._length = len(content)
        room = max(0, height - FRAME)
        self._offset = max(0, min(self._offset, len(content) - room))
        shown = list(content[self._offset : self._offset + room])
        place = place_words(self._offset, len(shown), len(content))
        filler = [EMPTY] * (room - len(shown))
        return [rule(self._title, place, width), *shown, *filler, keys_row(width)]

    def action_down(self) -> None:
        """A line further."""
        self._move(1)

    def action_up(self) -> None:
        """A line back."""
        self._move(-1)

    def action_page_down(self) -> None:
        """As much further as is shown, but for a line to hold on to."""
        self._move(self.size.height - FRAME - 1)

    def action_page_up(self) -> None:
        """As much back."""
        self._move(1 + FRAME - self.size.height)

    def action_first(self) -> None:
        """To the top."""
        self._move(-self._length)

    def action_last(self) -> None:
        """To the end."""
        self._move(self._length)

    def action_begin(self) -> None:
        """What the window offers to do."""
        self.post_message(self.Wanted("begin"))

    def action_save(self) -> None:
        """Keep what came of it."""
        self.post_message(self.Wanted("save"))

    def action_close(self) -> None:
        """Back to the screen."""
        self.screen.dismiss()

    def _move(self, by: int) -> None:
        self._offset += by
        self._redraw()


def place_words(first: int, shown: int, length: int) -> list[str]:
    """ "rows 11 to 30 of 64"; nothing where all is shown."""
    return [f"rows {first + 1} to {first + shown} of {length}"] if shown < length else []


def keys_row(width: int) -> Row:
    """The page's own keys, the way out at the right."""
    *first, last = [
        (Span(f" {key}", "key"), Span(f" {word} ", "dim"))
        for key, word in footer_of(actions_of("page"))
    ]
    return ends(tuple(span for entry in first for span in entry), last, width, gap=0)
