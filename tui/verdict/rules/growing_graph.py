"""The backward takes longer with every step: it goes through graphs of earlier steps as well."""

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from operator import attrgetter
from typing import Final

from ...steps import Step
from ..code_places import main_places
from ..findings import Evidence, Finding
from ..forecast.interval import at_least
from ..format import ms, percent
from ..pauses import warm_recent
from ..place_names import place_name
from ..scoring import cause
from ..statistics import mann_kendall, theil_sen, without_rows
from ..step_time import spent
from ..thresholds.hysteresis import CONTRIBUTOR
from ..window import StepWindow

BLOCKS: Final = 10
"""Parts of the recent steps, of which a median each."""
LEAST_ROWS: Final = 50
"""Five steps a block."""
SURE: Final = 3.0
"""z of Mann-Kendall: of 45 pairs of blocks at most five are out of order, one in 700 by chance."""
TIMES_THE_FORWARD: Final = 4.0
"""A backward takes one to three times its forward: where batches grow, both do, and the backward by
no more than that of what the forward grows by. A part beyond belongs to no forward of this step."""
GOES_ON: Final = 0.5
"""The second half of the blocks grows by at least this part of what the first does: a cache that
fills, or cores that warm up, level off."""
_FORWARD_NS: Final = attrgetter("forward_ns")
_BACKWARD_NS: Final = attrgetter("backward_ns")
_KEEPS: Final = re.compile(r"\b(retain_graph|create_graph)\b(?!\s*=\s*False)")
"""Without one of these PyTorch frees what a backward used, and refuses to go through it again."""
_CALL_OF_BACKWARD: Final = re.compile(r"\bbackward\(.*\)")


@dataclass(frozen=True, slots=True)
class Growth:
    """Of the backward, over the recent steps."""

    first_ns: float
    last_ns: float
    """Medians of a step in the first block and in the last."""
    a_hundred_ns: float
    """By so much it grows in a hundred steps (Theil and Sen)."""
    steps: int


def growth_of(rows: Sequence[Step]) -> Growth | None:
    """None where it does not grow, or no more than the forward explains."""
    if len(rows) < LEAST_ROWS:
        return None
    size = len(rows) // BLOCKS
    blocks = [rows[len(rows) - size * k : len(rows) - size * (k - 1)] for k in range(BLOCKS, 0, -1)]
    backwards = [_median(block, _BACKWARD_NS) for block in blocks]
    if mann_kendall(backwards) < SURE:
        return None  # nearly always; what follows costs as much again
    numbers = [block[-1].number for block in blocks]
    slope, half = theil_sen(numbers, backwards), BLOCKS // 2
    if slope is None or slope.low <= 0:
        return None
    before_ns, after_ns = (_median(blocks[at], _FORWARD_NS) for at in (0, -1))
    grown, forward = backwards[-1] - backwards[0], max(0.0, after_ns - before_ns)
    later = backwards[-1] - backwards[half]
    goes_on = later >= GOES_ON * (backwards[half] - backwards[0])
    if not goes_on or grown < TIMES_THE_FORWARD * forward:
        return None
    return Growth(backwards[0], backwards[-1], 100 * slope.middle, numbers[-1] - numbers[0])


def _median(rows: Sequence[Step], length: Callable[[Step], int]) -> float:
    each = sorted([length(row) / max(1, row.count) for row in rows])
    return float(each[len(each) // 2])


def growing_graph(window: StepWindow) -> Finding | None:
    """On a CPU, where the host's clock is the backward's own. What it has grown by since the first
    of the recent steps is lost by now, and more with every step. Gradients that decay to denormal
    numbers make a backward longer as well: where its call is read, it must keep the graph."""
    if window.gpu_present or _frees_graph(window):
        return None
    found, total = growth_of(warm_recent(window)), spent(window.steps)
    if found is None or total.wall_ns <= 0:
        return None
    step_ns = total.wall_ns / max(1, total.steps)
    backward_ns = sum(row.backward_ns for row in window.steps) / max(1, total.steps)
    share = without_rows(max(0.0, backward_ns - found.first_ns) / step_ns)
    if share.mean < CONTRIBUTOR:
        return None
    text = f"the backward has grown from {ms(found.first_ns)} to {ms(found.last_ns)} "
    text += f"in {found.steps:,} steps, and the forward has not"
    evidence = [Evidence(text, "hook", found.last_ns / 1e6, "ms")]
    advice = "detach() what is carried from one step to the next (a state, a running sum): its "
    advice += "graph leads through all steps before"
    lines = [place for place in main_places(window) if _KEEPS.search(place.line)]
    if lines:
        kept = "retain_graph=True" if "retain_graph" in lines[0].line else "create_graph=True"
        where = lines[0].caller or place_name(lines[0])
        evidence.append(Evidence(f"{kept} at {where}", "py-spy"))
        advice += f"; then {kept} is not needed: {where}"
    headline = f"the backward takes {ms(found.a_hundred_ns)} longer with every 100 steps: "
    headline += f"{percent(share.mean)} of each step by now"
    finding = cause("compute", "growing-graph", share, headline, tuple(evidence), (advice,))
    return replace(finding, forecast=at_least(finding.speedup or 1.0))


def _frees_graph(window: StepWindow) -> bool:
    """Lines that call the backward are known, and none keeps what it goes through."""
    lines = [place.line for place in main_places(window) if place.phase == "backward"]
    calls = [line for line in lines if _CALL_OF_BACKWARD.search(line)]
    return bool(calls) and not any(map(_KEEPS.search, lines))
