"""A comparison as a page of HTML."""

from collections.abc import Mapping
from typing import Final

from ..formats import html
from ..wording import numbers
from .comparison import Comparison, Condition, Side
from .faces import (
    basis_words,
    change_words,
    condition_words,
    headline,
    side_words,
    value_words,
    verdict_words,
)

COLOURS: Final = ("#0969da", "#bf6a02")
"""Of A and B, on white and on black."""


def page(comparison: Comparison, failed: Mapping[Condition, bool | None]) -> str:
    """The whole page."""
    head = comparison.head
    kind = "critical" if head is not None and head.found == "worse" else ""
    rows = [
        (
            html.Cell(row.figure.name),
            *(html.Cell(words, "number") for words in value_words(row)),
            html.Cell(change_words(row), row.found if row.found in ("worse", "better") else ""),
            html.Cell(row.found),
        )
        for row in comparison.rows
    ]
    return html.page(
        f"gpuwatch: {comparison.a.name} and {comparison.b.name}",
        (
            "<h1>gpuwatch compare</h1>",
            html.paragraph(f"A: {side_words(comparison.a)}", "dim"),
            html.paragraph(f"B: {side_words(comparison.b)}", "dim"),
            f'<div class="verdict {kind}">{html.paragraph(headline(comparison), "name")}</div>',
            html.table(("", "A", "B", "change", ""), rows),
            html.heading("Step time"),
            _chart(comparison),
            html.heading("Verdict"),
            html.paragraph(f"A: {verdict_words(comparison.a)}"),
            html.paragraph(f"B: {verdict_words(comparison.b)}"),
            *(
                html.paragraph(condition_words(comparison, condition, holds))
                for condition, holds in failed.items()
            ),
            html.paragraph(basis_words(comparison), "dim"),
        ),
    )


def _chart(comparison: Comparison) -> str:
    sides = (comparison.a, comparison.b)
    lines = [html.Line(_steps(side), colour) for side, colour in zip(sides, COLOURS, strict=True)]
    drawn = html.chart(
        lines,
        "step time of A and B",
        ("settled", "end of each"),
        numbers.milliseconds(html.height_of(lines)),
    )
    legend = (
        f'<p class="dim"><span style="color:{COLOURS[0]}">&#9632;</span> A '
        f'<span style="color:{COLOURS[1]}">&#9632;</span> B, mean and range, each run over its own '
        "length</p>"
    )
    return drawn + legend


def _steps(side: Side) -> list[tuple[float, float, float, float]]:
    steps = side.runs[-1].steps
    last = max(1, len(steps) - 1)
    return html.thinned(
        [
            (at / last, (step.end_ns - step.start_ns) / 1e6 / step.count)
            for at, step in enumerate(steps)
        ]
    )
