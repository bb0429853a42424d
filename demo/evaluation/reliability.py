"""Whether verdicts are right as often as they say: what was reported at each level of confidence.

What the engine's constants rest on is one half of the scenarios, chosen by a hash of their names;
the other half shows whether they hold.
"""

from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path
from statistics import mean
from typing import Final, Literal

from evaluation.catalogue import GROWTH, scenarios
from evaluation.judging import among_several, truth_of
from evaluation.recording import signals_in, verdicts_on
from evaluation.result import MEASURED, RECORDING, measured_in
from evaluation.verdict_track import UNSETTLED, kind_is_right

Half = Literal["develop", "report"]
LEVELS: Final = (0.0, 0.5, 0.6, 0.7, 0.8, 0.9)
"""Where the levels of confidence begin."""


@dataclass(frozen=True)
class Claim:
    """One verdict of a run."""

    run: str
    half: Half
    probe: bool
    confidence: float
    right: bool


@dataclass(frozen=True)
class Level:
    """All that was reported at one level."""

    begins: float
    runs: int
    looks: int
    claims: float
    right: float
    """Parts, 0 to 1; each run counts as one, however often it was looked at."""


def half_of(scenario: str) -> Half:
    """By its name alone: nobody chose."""
    return "report" if sha256(scenario.encode()).digest()[0] % 2 else "develop"


def claims_in(folder: Path) -> list[Claim]:
    """All verdicts on the recordings below a folder, of which the truth is known. Memory must grow
    before anybody can see it: runs whose truth is that have no place here."""
    known = {scenario.name: scenario for scenario in scenarios()}
    found: list[Claim] = []
    for path in sorted(folder.glob(f"*/{MEASURED}")):
        measured = measured_in(path.parent)
        scenario = known[measured.scenario]
        if scenario.kind == GROWTH:
            continue
        recording = path.parent / RECORDING
        intended = scenario.expected(gpu=signals_in(recording).gpu is not None)
        right = among_several(intended, truth_of(scenario, intended, measured))
        found += [
            Claim(
                path.parent.name,
                half_of(scenario.name),
                measured.probe,
                look.confidence or 0.0,
                kind_is_right(look, right),
            )
            for look in verdicts_on(recording)
            if look.kind not in UNSETTLED
        ]
    return found


def levels_of(claims: Iterable[Claim]) -> list[Level]:
    """Those at which anything was reported, the lowest first."""
    by_level: dict[float, dict[str, list[Claim]]] = defaultdict(lambda: defaultdict(list))
    for one in claims:
        begins = max(level for level in LEVELS if one.confidence >= level)
        by_level[begins][one.run].append(one)
    return [
        Level(
            begins=begins,
            runs=len(runs),
            looks=sum(map(len, runs.values())),
            claims=mean(mean(one.confidence for one in looks) for looks in runs.values()),
            right=mean(mean(one.right for one in looks) for looks in runs.values()),
        )
        for begins, runs in sorted(by_level.items())
    ]


def reliability_table(claims: Sequence[Claim]) -> str:
    """A row for each level, with and without the probe, of either half."""
    rows = [
        "| | said | runs | verdicts | mean said | right |",
        "| --- | --- | --- | --- | --- | --- |",
    ]
    for probe in (True, False):
        for half in ("develop", "report"):
            chosen = [one for one in claims if one.probe is probe and one.half == half]
            name = f"{'with' if probe else 'without'} the probe, {half}"
            rows += [
                f"| {name} | {level.begins:.0%} and more | {level.runs} | {level.looks} | "
                f"{level.claims:.0%} | {level.right:.0%} |"
                for level in levels_of(chosen)
            ]
    return "\n".join(rows)
