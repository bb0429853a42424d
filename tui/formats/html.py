"""Pages of HTML: one file that needs no network and no script, readable on a phone.

Whatever comes from outside (a script's name, a headline with a file's name in it) goes through
`text` or `attribute`.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from html import escape
from typing import Final

from ..wording.numbers import percent

STYLE: Final = """
:root { color-scheme: light dark; --ink: #1b1f24; --dim: #59636e; --paper: #fff; --line: #d1d9e0;
  --bad: #b42318; --good: #1a7f37; --accent: #0969da; }
@media (prefers-color-scheme: dark) { :root { --ink: #e6edf3; --dim: #9198a1; --paper: #0d1117;
  --line: #3d444d; --bad: #ff7b72; --good: #3fb950; --accent: #4493f8; } }
* { box-sizing: border-box; }
body { margin: 0 auto; padding: 1rem; max-width: 52rem; background: var(--paper); color: var(--ink);
  font: 16px/1.5 system-ui, sans-serif; overflow-wrap: anywhere; }
h1 { font-size: 1.25rem; margin: 0 0 .25rem; } h2 { font-size: 1rem; margin: 1.75rem 0 .5rem; }
p { margin: .25rem 0; } .dim { color: var(--dim); font-size: .875rem; }
.verdict { border-left: 4px solid var(--accent); padding: .25rem 0 .25rem .75rem; margin: 1rem 0; }
.critical, .worse { color: var(--bad); } .better, .good { color: var(--good); }
.verdict.critical { border-color: var(--bad); color: inherit; } .name { font-weight: 600; }
ul { margin: .25rem 0; padding-left: 1.25rem; }
.scroll { overflow-x: auto; } table { border-collapse: collapse; width: 100%; font-size: .9rem; }
th, td { text-align: right; padding: .3rem .5rem; border-bottom: 1px solid var(--line);
  font-variant-numeric: tabular-nums; overflow-wrap: normal; }
td.number { white-space: nowrap; } th:first-child, td:first-child { text-align: left; }
svg { display: block; width: 100%; height: auto; } svg text { fill: var(--dim); font-size: 16px; }
pre { white-space: pre-wrap; font-size: .8rem; }
"""

WIDE: Final = 640
"""Units of a drawing; it is scaled to the page."""
HIGH: Final = 160
LEFT: Final = 72
BELOW: Final = 22


def text(words: object) -> str:
    """Words as text of a page."""
    return escape(str(words), quote=False)


def attribute(words: object) -> str:
    """Words as a quoted attribute's value."""
    return escape(str(words), quote=True)


def page(title: str, parts: Iterable[str]) -> str:
    """A whole page. Its policy forbids whatever would load or run."""
    policy = "default-src 'none'; style-src 'unsafe-inline'"
    return "\n".join(
        (
            '<!doctype html><html lang="en"><head><meta charset="utf-8">',
            '<meta name="viewport" content="width=device-width, initial-scale=1">',
            f'<meta http-equiv="Content-Security-Policy" content="{policy}">',
            f"<title>{text(title)}</title><style>{STYLE}</style></head><body>",
            *parts,
            "</body></html>\n",
        )
    )


def heading(words: str) -> str:
    """Of a section."""
    return f"<h2>{text(words)}</h2>"


def paragraph(words: str, kind: str = "") -> str:
    """A sentence or two; `kind`: a class of the style sheet."""
    return f'<p class="{attribute(kind)}">{text(words)}</p>' if kind else f"<p>{text(words)}</p>"


def listed(rows: Iterable[str]) -> str:
    """A list; nothing where it is empty."""
    items = "".join(f"<li>{text(row)}</li>" for row in rows)
    return f"<ul>{items}</ul>" if items else ""


@dataclass(frozen=True, slots=True)
class Cell:
    """Of a table. `kind`: a class of the style sheet."""

    words: str
    kind: str = ""


def table(head: Sequence[str], rows: Iterable[Sequence[Cell]]) -> str:
    """A table that scrolls where a phone is too narrow."""
    titles = "".join(f"<th>{text(one)}</th>" for one in head)
    body = "".join(
        "<tr>" + "".join(_cell(cell) for cell in row) + "</tr>" for row in rows
    )  # fmt: skip
    return f'<div class="scroll"><table><tr>{titles}</tr>{body}</table></div>'


def _cell(cell: Cell) -> str:
    kind = f' class="{attribute(cell.kind)}"' if cell.kind else ""
    return f"<td{kind}>{text(cell.words)}</td>"


@dataclass(frozen=True, slots=True)
class Part:
    """Of a bar: `share` of the whole, 0 to 1; any CSS colour."""

    name: str
    share: float
    colour: str


def bar(parts: Sequence[Part], label: str) -> str:
    """One bar cut into parts, with a legend below it."""
    x, drawn = 0.0, []
    for part in parts:
        wide = max(0.0, part.share) * WIDE
        drawn.append(
            f'<rect x="{x:.1f}" y="0" width="{wide:.1f}" height="28" fill="{part.colour}">'
            f"<title>{text(part.name)} {text(percent(part.share))}</title></rect>"
        )
        x += wide
    legend = " &nbsp; ".join(
        f'<span style="white-space:nowrap"><span style="color:{part.colour}">&#9632;</span> '
        f"{text(part.name)} {text(percent(part.share))}</span>"
        for part in parts
    )
    return (
        f'<svg viewBox="0 0 {WIDE} 28" role="img" aria-label="{attribute(label)}">{"".join(drawn)}'
        f'</svg><p class="dim">{legend}</p>'
    )


@dataclass(frozen=True, slots=True)
class Line:
    """A series of a chart: (x, low, middle, high)."""

    points: Sequence[tuple[float, float, float, float]]
    colour: str


def chart(
    lines: Sequence[Line],
    label: str,
    x_words: tuple[str, str],
    y_words: str,
    bottom: bool = True,
) -> str:
    """Lines over time with the range around each, from 0 up; "" where there is nothing to draw.
    With `bottom` False the line below is not 0. Of the highest points `height_of` leaves out the
    few that would flatten all others."""
    points = [point for line in lines for point in line.points]
    if len(points) < 2:
        return ""
    first, last = min(p[0] for p in points), max(p[0] for p in points)
    top = height_of(lines)
    floor = HIGH - BELOW

    def x_of(value: float) -> float:
        return LEFT + (value - first) / (last - first or 1) * (WIDE - LEFT - 4)

    def y_of(value: float) -> float:
        return floor - min(1.0, value / top) * (floor - 10)

    drawn = []
    for line in lines:
        upper = [f"{x_of(x):.1f},{y_of(high):.1f}" for x, _, _, high in line.points]
        lower = [f"{x_of(x):.1f},{y_of(low):.1f}" for x, low, _, _ in reversed(line.points)]
        middle = " ".join(f"{x_of(x):.1f},{y_of(y):.1f}" for x, _, y, _ in line.points)
        band = " ".join(upper + lower)
        drawn.append(f'<polygon points="{band}" fill="{line.colour}" opacity="0.2"/>')
        drawn.append(
            f'<polyline points="{middle}" fill="none" stroke="{line.colour}" stroke-width="1.5"/>'
        )
    return (
        f'<svg viewBox="0 0 {WIDE} {HIGH}" role="img" aria-label="{attribute(label)}">'
        f'<line x1="{LEFT}" x2="{WIDE}" y1="{floor}" y2="{floor}" stroke="currentColor" '
        f'opacity="0.3"/>{"".join(drawn)}'
        f'<text x="{LEFT - 6}" y="18" text-anchor="end">{text(y_words)}</text>'
        f'<text x="{LEFT - 6}" y="{floor}" text-anchor="end">{"0" if bottom else ""}</text>'
        f'<text x="{LEFT}" y="{HIGH - 6}">{text(x_words[0])}</text>'
        f'<text x="{WIDE - 4}" y="{HIGH - 6}" text-anchor="end">{text(x_words[1])}</text></svg>'
    )


def height_of(lines: Sequence[Line]) -> float:
    """What the top of a chart stands for: the highest point; or, where that is twice as high as
    nearly all others, a bit more than those."""
    highs = sorted(point[3] for line in lines for point in line.points)
    if not highs:
        return 1.0
    usual = highs[min(len(highs) - 1, len(highs) * 97 // 100)]
    return (highs[-1] if highs[-1] <= 2 * usual else 1.2 * usual) or 1.0


def thinned(
    values: Sequence[tuple[float, float]], columns: int = 160
) -> list[tuple[float, float, float, float]]:
    """(x, y) in order of x as at most so many (x, lowest, mean, highest): what `Line` draws."""
    out = []
    count = len(values)
    for column in range(min(columns, count)):
        part = values[column * count // min(columns, count) :
                      (column + 1) * count // min(columns, count)]  # fmt: skip
        ys = [y for _, y in part]
        out.append((part[0][0], min(ys), sum(ys) / len(ys), max(ys)))
    return out
