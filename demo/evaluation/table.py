"""The tables, in Markdown: bars, scenarios, confusion, reliability; with a GPU and without."""

from collections.abc import Iterable, Sequence
from typing import Final

from evaluation.bars import BARS, BARS_WITHOUT_PROBE, OURS_ALONE, Figure
from evaluation.figures import Scored, brier, confusion, negatives, positives, reliability, scored
from evaluation.result import OURS, Result
from evaluation.score import Score

TOOLS: Final = (OURS, "host-wait share", "nvidia-smi", "TraceML")
PASSES: Final = {True: "PASS", False: "FAIL", None: ""}


def tables(results: Sequence[Result]) -> str:
    """All of them. Machines with a GPU and machines without are different examinations, and so are
    runs with the probe and without."""
    parts = []
    examined = {(result.gpu or "", result.probe) for result in results}
    for machine, probe in sorted(examined, reverse=True):
        own = [each for each in results if ((each.gpu or ""), each.probe) == (machine, probe)]
        where = (machine or "No GPU") + ("" if probe else ", without the probe")
        held = bars(own) if probe else bars_without_probe(own)
        parts += [f"### {where}: {_counts(own)}", held, every_scenario(own)]
        parts += [apart(own), confusions(own), confidences(own)]
    return "\n\n".join(filter(None, parts)) if parts else "no results"


def bars(results: Sequence[Result]) -> str:
    """What the evaluation asks for, and the same columns for the baselines."""
    others = [tool for tool in TOOLS[1:] if scored(results, tool)]
    rows = []
    for bar in BARS:
        ours = bar.measure(scored(results, OURS))
        theirs = [bar.measure(scored(results, tool)).text for tool in others]
        rows.append([bar.what, bar.asks, ours.text, _pass(bar.asks, ours), *theirs])
    for bar in OURS_ALONE:
        ours = bar.measure(scored(results, OURS))
        rows.append([bar.what, bar.asks, ours.text, _pass(bar.asks, ours), *("" for _ in others)])
    return markdown(["", "bar", OURS, "", *others], rows)


def bars_without_probe(results: Sequence[Result]) -> str:
    """What is asked of a run that only NVML and py-spy see."""
    rows = []
    for bar in BARS_WITHOUT_PROBE:
        ours = bar.measure(scored(results, OURS))
        rows.append([bar.what, bar.asks, ours.text, _pass(bar.asks, ours)])
    return markdown(["", "bar", OURS, ""], rows)


def every_scenario(results: Sequence[Result]) -> str:
    """A row each: truth, verdict, times, forecast."""
    rows = [_row(result, score) for result, score in scored(results, OURS)]
    head = "scenario|truth|gain|verdict||steps|s|changes|forecast|host-wait share|nvidia-smi|cost"
    return markdown(head.split("|"), rows)


def apart(results: Sequence[Result]) -> str:
    """Scenarios that count for nothing, since what was measured is not what was intended."""
    doubtful = [result for result in results if not result.truth.agrees]
    if not doubtful:
        return ""
    names = (f"{result.name} ({result.truth.label}, {_gain(result)})" for result in doubtful)
    return f"Not counted, truth measured and truth meant differ: {', '.join(names)}."


def confusions(results: Sequence[Result]) -> str:
    """Truth in rows, verdicts in columns."""
    rows = scored(results, OURS)
    counts = confusion([*positives(rows), *negatives(rows)])
    true = sorted({pair[0] for pair in counts})
    reported = sorted({pair[1] for pair in counts})
    cells = [[kind, *(str(counts.get((kind, each), "")) for each in reported)] for kind in true]
    return markdown(["truth \\ verdict", *reported], cells) if cells else ""


def confidences(results: Sequence[Result]) -> str:
    """Whether 90 % sure is right in 9 of 10."""
    rows = [row for row in scored(results, OURS) if row[0].truth.agrees]
    score = brier(rows)
    if score is None:
        return ""
    cells = [
        [
            f"{each.low:.1f} to {each.high:.1f}",
            str(each.verdicts),
            f"{each.confidence:.2f}",
            f"{each.right:.2f}",
        ]
        for each in reliability(rows)
    ]
    return f"Brier score {score:.3f}\n\n" + markdown(
        ["confidence", "verdicts", "mean", "right"], cells
    )


def markdown(head: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """A table."""
    lines = [head, ["---"] * len(head), *rows]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


def _row(result: Result, score: Score) -> list[str]:
    right = "right" if score.right else "WRONG"
    if score.right and score.sub_right is False:
        right = "sub wrong"
    forecast = f"{score.forecast:.2f} ({score.forecast_is})" if score.forecast else ""
    return [
        result.name + (" **N**" if result.negative else ""),
        _name(result.kinds[0], result.sub),
        _gain(result),
        _name(score.kind, score.sub),
        right,
        _steps(result, score),
        "" if score.first_right_s is None else f"{score.first_right_s:.1f}",
        str(score.changes),
        forecast,
        *(_other(result, tool) for tool in TOOLS[1:3]),
        "" if result.cost is None else f"{100 * result.cost:+.1f} %",
    ]


def _steps(result: Result, score: Score) -> str:
    if score.first_right_steps is None:
        return "never"
    return str(score.first_right_steps) if result.probe else ""


def _other(result: Result, tool: str) -> str:
    score = result.tools.get(tool)
    if score is None:
        return ""
    return f"{score.kind}{f' {score.forecast:.2f}' if score.forecast else ''}"


def _gain(result: Result) -> str:
    truth = result.truth
    if truth.by_construction:
        return "by construction"
    if truth.gains:
        return ", ".join(f"{kind} {gain:.2f}" for kind, gain in truth.gains.items())
    return f"{truth.gain:.2f} ({truth.low:.2f} to {truth.high:.2f})"


def _name(kind: str, sub: str | None) -> str:
    return f"{kind}/{sub}" if sub else kind


def _pass(asks: str, figure: Figure) -> str:
    return PASSES[figure.passes] if asks else ""


def _counts(results: Sequence[Result]) -> str:
    rows: list[Scored] = scored(results, OURS)
    reported = f"{len(positives(rows))} positives and {len(negatives(rows))} negatives count"
    minutes = sum(result.seconds for result in results) / 60
    others = [result.others_cores for result in results if result.others_cores is not None]
    busy = f"; other processes used up to {max(others):.1f} of its cores" if others else ""
    return f"{len(results)} runs in {minutes:.0f} min, {reported}{busy}"
