"""A comparison as text and as JSON."""

from collections.abc import Mapping, Sequence
from math import isfinite
from typing import Any, Final

from ..formats.report_layout import labelled, wrapped
from ..wording import numbers
from ..wording.words import abstains, account, name_of, word_of
from .comparison import Comparison, Condition, Row, Side
from .figures import Unit
from .intervals import LASTS_S, RUN_TO_RUN

SCHEMA: Final = 1
"""Of the JSON: within a version fields are only added."""
NAME: Final = 24
VALUE: Final = 10
UNRESOLVED: Final = 1.0
"""An interval as wide as the figure itself, which holds no change and half of it as well."""
UNSTEADY: Final = 0.5
"""An interval that reaches further from no change, as part of the figure, says hardly anything."""
OF_RUNS: Final = 87
"""Pairs of equal runs behind RUN_TO_RUN."""


def text_lines(
    comparison: Comparison, failed: Mapping[Condition, bool | None], width: int
) -> list[str]:
    """The whole comparison, in lines of at most `width` columns but for the table's."""
    a, b = comparison.a, comparison.b
    lines = [
        *labelled("A", [side_words(a)], width),
        *labelled("B", [side_words(b)], width),
        "",
        *wrapped("", headline(comparison), width),
        "",
    ]
    for row in comparison.rows:
        cells = value_words(row)
        lines.append(
            f"  {row.figure.name:{NAME}}{cells[0]:>{VALUE}} → {cells[1]:>{VALUE}}   "
            f"{change_words(row):30}{found_words(row)}".rstrip()
        )
    lines += ["", *labelled("verdict", [f"A: {verdict_words(a)}", f"B: {verdict_words(b)}"], width)]
    lines += ["", *wrapped("", basis_words(comparison), width)]
    for condition, holds in failed.items():
        lines += wrapped("", condition_words(comparison, condition, holds), width)
    return lines


def headline(comparison: Comparison) -> str:
    """ "B is slower: a step takes 44.2 ms instead of 42.1 ms, +5.0% (+4.1 to +5.9%).". By samples a
    second where steps of one side hold more of them."""
    row = comparison.head
    if row is None:
        return "Too few steps to compare: at least 5 after warming up on both sides."
    before, after = value_words(row)
    what, takes, behind = "the step time", "a step takes ", ""
    if comparison.is_resized:
        before, after = (words.replace(" /s", " samples/s") for words in (before, after))
        what, takes, behind = "samples a second", "", f" {size_words(comparison)}."
    if row.found == "no change found":
        low, high = row.change.relative_interval or (0.0, 0.0)
        most = max(abs(low), abs(high))
        if most > UNSTEADY:
            return (
                f"The runs are too unsteady to tell {what} apart: {before} and {after}. "
                f"Longer recordings do, or several a side.{behind}"
            )
        return (
            f"No change found in {what}: {before} and {after}. "
            f"A change of more than {100 * most:.1f}% would have shown.{behind}"
        )
    word = "faster" if row.found == "better" else "slower"
    return f"B is {word}: {takes}{after} instead of {before}, {change_words(row)}.{behind}"


def size_words(comparison: Comparison) -> str:
    """ "A step holds 64 samples instead of 16"."""
    before, after = comparison.a.samples_step or 0.0, comparison.b.samples_step or 0.0
    return f"A step holds {after:,.4g} samples instead of {before:,.4g}"


def condition_words(comparison: Comparison, condition: Condition, holds: bool | None) -> str:
    """ "--fail-if step_ms>+5%: holds"."""
    words = "not measured" if holds is None else "holds" if holds else "does not hold"
    text = f"--fail-if {condition.text}: {words}"
    if comparison.is_resized and condition.of_change and condition.key.endswith("_ms"):
        text += f". {size_words(comparison)}: samples_s tells which side is faster"
    return text


def side_words(side: Side) -> str:
    """ "a.gpuwatch · train.py on gpu-3 · NVIDIA H200 · 1,204 steps, 40 left out (warming up)"."""
    run = side.runs[-1].run
    parts = [side.name, f"{run.header.script or '?'} on {run.header.host}"]
    if run.gpus:
        parts.append(", ".join(dict.fromkeys(run.gpus)))
    if run.header.torch:
        parts.append(f"torch {run.header.torch}")
    if len(side.runs) > 1:
        parts.append(f"{len(side.runs)} runs")
    parts.append(f"{numbers.count(side.steps)} steps")
    if side.left_out:
        parts.append(f"{numbers.count(side.left_out)} before them left out (warming up)")
    if early := next((one.run.ends_early for one in side.runs if one.run.ends_early), None):
        parts.append(early)
    return " · ".join(parts)


def verdict_words(side: Side) -> str:
    """ "INPUT-BOUND: …headline"; with the time by verdict."""
    finding = side.last.verdict.finding
    words = f"{word_of(finding)}: {finding.headline}"
    whole = "" if abstains(finding) else account(side.last.summary)
    return f"{words} ({whole})" if whole else words


def basis_words(comparison: Comparison) -> str:
    """What the intervals hold, and what they cannot."""
    text = (
        f"{comparison.confidence:.0%} intervals by batch means of the steps; "
        "the rows below the first taken together."
    )
    if not comparison.is_one_pair:
        return f"{text} What differs from run to run is measured by the runs of each side."
    return (
        f"{text} They hold noise that lasts up to {LASTS_S:.0f} s; longer runs make them narrower. "
        "One run a side says nothing of what differs from run to run: "
        f"{RUN_TO_RUN:.1%} is taken for it, the median of {OF_RUNS} pairs of equal runs on an "
        "H200. Loops that the host bounds differ by more, and so do runs of which one alone has a "
        "neighbour; folders of several recordings measure it."
    )


def value_words(row: Row) -> tuple[str, str]:
    """Both values with their unit."""
    unit = row.figure.unit
    return value_text(row.change.before, unit), value_text(row.change.after, unit)


def value_text(value: float, unit: Unit) -> str:
    """ "42.1 ms", "4.1 GiB", "1,240 /s"."""
    if unit == "ms":
        return numbers.milliseconds(value)
    if unit == "bytes":
        return numbers.size(round(value))
    if unit == "%":
        return f"{value:.0f}%"
    return f"{numbers.digits(value)} {'/s' if unit == 'per s' else unit}"


def change_words(row: Row) -> str:
    """ "+5.0% (+4.1 to +5.9%)", "+5.0% (not resolved)"; in the unit of the figure where the first
    value is small beside the change, or of percentages in points."""
    moved = row.change
    interval, relative = moved.relative_interval, moved.relative
    if row.figure.unit == "%":
        points = moved.after - moved.before
        return f"{points:+.1f} points ({moved.low:+.1f} to {moved.high:+.1f})"
    if interval is None or relative is None or relative > 10 or not isfinite(interval[1]):
        return f"{value_text(moved.after - moved.before, row.figure.unit)} more"
    low, high = interval
    if row.found == "no change found" and high - low > UNRESOLVED:
        return f"{relative:+.1%} (not resolved)"
    return f"{relative:+.1%} ({max(-100.0, 100 * low):+.1f} to {100 * high:+.1f}%)"


def found_words(row: Row) -> str:
    """ "slower", "more", "" where no change was found."""
    return "" if row.found == "no change found" else row.found


def as_json(comparison: Comparison, failed: Mapping[Condition, bool | None]) -> dict[str, Any]:
    """By the contract of docs/compare.md: the rows that are shown."""
    return {
        "schema": SCHEMA,
        "confidence": comparison.confidence,
        "run_to_run": RUN_TO_RUN if comparison.is_one_pair else None,
        "a": _side(comparison.a),
        "b": _side(comparison.b),
        "figures": {row.figure.key: _row(row) for row in comparison.rows},
        "judged_by": None if comparison.head is None else comparison.head.figure.key,
        "fail_if": [{"condition": one.text, "holds": holds} for one, holds in failed.items()],
    }


def _side(side: Side) -> dict[str, Any]:
    run, finding = side.runs[-1].run, side.last.verdict.finding
    return {
        "name": side.name,
        "runs": len(side.runs),
        "script": run.header.script,
        "host": run.header.host,
        "torch": run.header.torch,
        "gpus": list(run.gpus),
        "steps": side.steps,
        "samples_step": None if side.samples_step is None else _number(side.samples_step),
        "left_out": side.left_out,
        "verdict": name_of(finding.kind, finding.sub),
        "headline": finding.headline,
        "time_by_verdict": _by_verdict(side),
    }


def _by_verdict(side: Side) -> Sequence[dict[str, Any]]:
    return [
        {"verdict": name_of(one.kind, one.sub), "share": round(one.share_of_time, 4)}
        for one in side.last.summary
    ]


def _row(row: Row) -> dict[str, Any]:
    moved = row.change
    interval = moved.relative_interval
    return {
        "unit": row.figure.unit,
        "a": _number(moved.before),
        "b": _number(moved.after),
        "difference": [_number(moved.low), _number(moved.high)],
        "change": None if moved.relative is None else _number(moved.relative),
        "change_interval": None if interval is None else [*map(_number, interval)],
        "found": row.found,
    }


def _number(value: float) -> float | None:
    return float(f"{value:.6g}") if isfinite(value) else None
