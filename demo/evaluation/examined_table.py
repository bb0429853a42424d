"""The tables of examined runs: what the bars ask for and what was measured; by device and half."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import pairwise
from statistics import median
from typing import Final

from evaluation.examined import Examined
from evaluation.figures import percentile_90
from generated.switches import NET_GRAPH, PADDED, STEP_GRAPH
from generated.turns import noise_of

COVERED: Final = (0.85, 0.95)
"""Of the truths, those within the interval of their forecast."""
WELL_ADVISED: Final = 0.80
"""Of the best single gain, what the first advice must give."""
BINS: Final = (0.0, 0.5, 0.6, 0.7, 0.8, 0.9, 1.001)
"""Of confidence."""
BOTH: Final = "both halves"
LOOK_STEP_S: Final = 0.05
"""A monitor judges once a second: of shorter steps more than 20 are over before it looks."""
SLOW: Final = ", where steps take 50 ms and more"
UNEXPLAINED: Final = "unexplained"


@dataclass(frozen=True)
class Bar:
    """One line of the table."""

    what: str
    asks: str
    shows: str
    passes: bool | None
    """None where nothing was measured."""


def tables(results: Sequence[Examined]) -> str:
    """All of them, by device and half, and of both. Runs of the report are counted, not listed."""
    groups: dict[tuple[str, str, str], list[Examined]] = {}
    for each in sorted(results, key=lambda each: (len(each.name), each.name)):
        for half in (each.half, BOTH):
            groups.setdefault((each.gpu or "no GPU", each.mode, half), []).append(each)
    parts = []
    for (where, mode, half), own in sorted(groups.items()):
        if half == BOTH and len({each.half for each in own}) == 1:
            continue
        counts = ", ".join(
            f"{sum(each.label == label for each in own)} {label}"
            for label in ("positive", "negative", "between", "unclear")
        )
        parts.append(f"### {where}, {mode}, {half}: {len(own)} runs ({counts})")
        parts.append(_markdown(("", "bar", "measured", ""), [_cells(bar) for bar in bars(own)]))
        parts.append(_markdown(("confidence", "verdicts", "right"), reliability(own)))
        if half == "development":
            parts.append("\n".join(row_of(each) for each in own))
    return "\n\n".join(parts) if parts else "no results"


def row_of(result: Examined) -> str:
    """One run in a line; of one that is kept for the report only that it was run."""
    if result.half == "report":
        return f"{result.name:>12} {result.device}  examined in {result.seconds:.0f} s"
    ranked = sorted(result.gains, key=lambda each: -each.gain)
    gains = " ".join(f"{each.name} {each.gain:.2f}" for each in ranked[:3])
    family = result.about.get("spec", {}).get("family", "")
    reported = f"{result.verdict}/{result.sub}" if result.sub else result.verdict
    sure = f"{result.confidence:.2f}" if result.confidence is not None else "-"
    verdict = {"positive": "right" if result.right else "WRONG", "negative": "ok"}.get(
        result.label, result.label
    )
    verdict = "FALSE BOUND" if result.false_bound else verdict
    forecast = f" {result.forecast:.2f}x" if result.forecast else ""
    step_ms = 1_000 * result.about.get("speed", {}).get("step_s", 0.0)
    return (
        f"{result.name:>12} {result.device} {family:11} {step_ms:6.1f} ms  "
        f"{'+'.join(result.causes) or '-':24} {verdict:11} said {reported}{forecast} ({sure})  "
        f"truth {gains}  [{result.seconds:.0f} s, {result.recording_bytes // 1024} KiB]"
    )


def bars(results: Sequence[Examined]) -> list[Bar]:
    """What the bars ask for."""
    positives = [each for each in results if each.label == "positive"]
    negatives = [each for each in results if each.label == "negative"]
    return [
        _part("top verdict right, of positives", [each.right for each in positives], 0.95),
        _part("false bound, of negatives", [each.false_bound for each in negatives], 0.02, True),
        _part("no verdict at the end, of all", [not each.settled for each in results], 0.0, True),
        _noise(results),
        _unexplained(results),
        _covered(positives),
        _errors(positives),
        _at_least(positives),
        _calibrated(results),
        _below_half(results),
        _reached("steps", [e.first_right_steps for e in positives], 20, 100),
        _reached("steps", [e.first_right_steps for e in positives if _is_slow(e)], 20, 100, SLOW),
        _reached("seconds", [e.first_right_s for e in positives], 10, 10),
        _part(
            "first advice gives 80 % of the best gain",
            [_well_advised(each) for each in positives],
            0.90,
        ),
    ]


def _part(what: str, hits: Sequence[bool], bar: float, at_most: bool = False) -> Bar:
    asks = f"{'at most' if at_most else 'at least'} {bar:.0%}"
    if not hits:
        return Bar(what, asks, "n/a", None)
    part = sum(hits) / len(hits)
    shows = f"{sum(hits)} of {len(hits)} ({part:.0%})"
    return Bar(what, asks, shows, part <= bar if at_most else part >= bar)


def _noise(results: Iterable[Examined]) -> Bar:
    """Below it a gain is none: of turns of the run as it is."""
    turns = [each.about["turns"] for each in results if "turns" in each.about]
    noise = [noise_of([(name, rate) for name, rate in each]) for each in turns]
    what = "noise of a turn (median, 90th percentile)"
    if not noise:
        return Bar(what, "", "n/a", None)
    return Bar(what, "", f"{median(noise):.1%}, {percentile_90(noise) or 0:.1%}", None)


def _unexplained(results: Iterable[Examined]) -> Bar:
    idle = [100 * each.ledger[UNEXPLAINED] for each in results if UNEXPLAINED in each.ledger]
    what, asks = "unexplained idle, points (median, most)", "3, 10"
    if not idle:
        return Bar(what, asks, "n/a", None)
    shows = f"{median(idle):.1f}, {max(idle):.1f} of {len(idle)}"
    return Bar(what, asks, shows, median(idle) <= 3 and max(idle) <= 10)


def forecast_truth(result: Examined) -> float | None:
    """What the first advice, or else the best change that fits the verdict, really gives. An advice
    of graphs of the net, or else of the whole step, is forecast for the first."""
    if result.forecast is None or not result.right:
        return None
    of_net = [each.gain for each in result.gains if each.name in (NET_GRAPH, PADDED)]
    if result.advised == STEP_GRAPH and of_net:
        return of_net[0]
    own = [each.gain for each in result.gains if result.verdict in each.kinds]
    return result.advised_gain or max(own, default=None)


def _covered(positives: Iterable[Examined]) -> Bar:
    inside = []
    for each in positives:
        truth = forecast_truth(each)
        if truth is not None and each.forecast_low is not None:
            high = each.forecast_high if each.forecast_high is not None else float("inf")
            inside.append(each.forecast_low <= truth <= high)
    what, asks = "truth within the forecast's interval", "85 % to 95 %"
    if not inside:
        return Bar(what, asks, "n/a", None)
    part = sum(inside) / len(inside)
    shows = f"{sum(inside)} of {len(inside)} ({part:.0%})"
    return Bar(what, asks, shows, COVERED[0] <= part <= COVERED[1])


def _errors(positives: Iterable[Examined]) -> Bar:
    errors = []
    for each in positives:
        truth = forecast_truth(each)
        if truth is not None and each.forecast is not None and not _is_at_least(each):
            errors.append(abs(each.forecast - truth) / truth)
    what = 'error of forecasts other than "at least" (median, 90th percentile)'
    asks = "10 %, 30 %"
    if not errors:
        return Bar(what, asks, "n/a", None)
    half, most = median(errors), percentile_90(errors) or 0.0
    shows = f"{half:.0%}, {most:.0%} of {len(errors)}"
    return Bar(what, asks, shows, half <= 0.10 and most <= 0.30)


def _is_at_least(result: Examined) -> bool:
    """The remedy is another algorithm: a lower end, and nothing in the middle."""
    return result.forecast_high is None


def _at_least(positives: Iterable[Examined]) -> Bar:
    """Such forecasts are no estimates: whether they hold, and how far below the truth they are."""
    parts = []
    for each in positives:
        truth = forecast_truth(each)
        if truth is not None and each.forecast is not None and _is_at_least(each):
            parts.append(each.forecast / truth)
    what = 'forecasts of "at least" that hold, and their median part of the truth'
    if not parts:
        return Bar(what, "", "none", None)
    held = sum(part <= 1.0 + 1e-9 for part in parts)
    return Bar(what, "", f"{held} of {len(parts)}, {median(parts):.0%}", None)


def is_right(result: Examined) -> bool | None:
    """Whether the verdict is, with anything to fix or without; None where that is not known."""
    if result.label == "positive":
        return result.right
    return not result.false_bound if result.label == "negative" else None


def reliability(results: Sequence[Examined]) -> list[tuple[str, ...]]:
    """How often what was reported with a confidence was right."""
    rows: list[tuple[str, ...]] = []
    for low, high in pairwise(BINS):
        hits = [
            is_right(each)
            for each in results
            if each.confidence is not None and low <= each.confidence < high and each.settled
        ]
        known = [hit for hit in hits if hit is not None]
        if known:
            part = f"{sum(known)} ({sum(known) / len(known):.0%})"
            rows.append((f"{low:.1f} to {min(high, 1):.1f}", str(len(known)), part))
    return rows


def _calibrated(results: Sequence[Examined]) -> Bar:
    sure = [each for each in results if each.confidence is not None and each.confidence >= 0.9]
    known = [hit for hit in map(is_right, sure) if hit is not None]
    return _part("right, of what is said at 0.9 and more", known, 0.90)


def _below_half(results: Iterable[Examined]) -> Bar:
    unsure = [
        each.confidence < 0.5 for each in results if each.confidence is not None and each.settled
    ]
    return _part("headlines below 0.5", unsure, 0.0, True)


def _is_slow(result: Examined) -> bool:
    return float(result.about.get("speed", {}).get("step_s", 0.0)) >= LOOK_STEP_S


def _reached(
    unit: str, found: Sequence[float | None], half: float, most: float, of: str = ""
) -> Bar:
    what = f"{unit} to the first right verdict (median, most){of}"
    asks = f"{half:g}, {most:g}"
    if not found:
        return Bar(what, asks, "n/a", None)
    never = sum(each is None for each in found)
    known = sorted(each for each in found if each is not None)
    if not known:
        return Bar(what, asks, f"never, for {never}", False)
    middle = median([*known, *[float("inf")] * never])
    shows = f"{middle:.0f}, {'never for ' + str(never) if never else f'{known[-1]:.0f}'}"
    return Bar(what, asks, shows, middle <= half and not never and known[-1] <= most)


def _well_advised(result: Examined) -> bool:
    best = max(each.gain for each in result.gains)
    return result.advised_gain is not None and result.advised_gain >= WELL_ADVISED * best


def _cells(bar: Bar) -> tuple[str, ...]:
    return bar.what, bar.asks, bar.shows, {True: "PASS", False: "FAIL", None: ""}[bar.passes]


def _markdown(head: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    lines = [head, ["---"] * len(head), *rows]
    return "\n".join("| " + " | ".join(line) + " |" for line in lines)
