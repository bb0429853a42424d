"""The profiler's windows on all ranks of a job, as lines of text and as one JSON object."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final

import msgspec

from ..model.snapshot import JobVerdict
from ..trace.against import Comparison
from ..trace.job import CollectiveSum, JobProfile, RankShare
from ..verdict.findings import Finding
from ..verdict.format import ms, percent, size
from ..wording.words import word_of
from .report_layout import head, labelled

COLLECTIVE_ROWS: Final = 10
RANK_ROWS: Final = 16


@dataclass(frozen=True, slots=True)
class JobReport:
    """All that the windows on the ranks came to."""

    script: str
    world_size: int
    pids: tuple[int, ...]
    """Of the ranks, in their order."""
    profile: JobProfile
    verdict: JobVerdict | None
    """As it was before; None where there was none yet."""
    finding: Finding
    """Of the job; else the watched rank's."""
    comparison: Comparison
    pause_ns: int
    """Of the rank that was held up longest."""
    torn_down: bool
    traces: tuple[str, ...] = ()
    """Files, in the order of the ranks; empty where none was asked for."""


def job_profile_costs(steps: int) -> list[str]:
    """What the windows cost, before they are opened."""
    return [
        f"gpuwatch: profiling the same {steps + 1} steps on all ranks here, each up to twice "
        "as long where launching takes its time, and pauses of 0.1 to 1.3 s in all.",
        "About 1.5 KB of trace a kernel and rank. Then the profiler is taken out again.",
    ]


def job_profile_lines(report: JobReport, width: int) -> list[str]:
    """The report, in lines of at most `width` columns."""
    profile = report.profile
    ranks = f"{len(profile.ranks)} of {report.world_size} ranks"
    if len(profile.ranks) == report.world_size:
        ranks = f"{report.world_size} ranks"
    steps = f"{profile.steps} steps on all of them"
    about = (f"profile of {report.script}", ranks, steps, profile.device or "no GPU")
    lines = head(about, width)
    step = f"{ms(profile.step_ns)} under the profiler"
    lines += labelled("step", [step], width)
    lines += labelled(
        "alone", [f"{_part(profile.exposed)}   collectives {_hidden(profile)}"], width
    )
    if profile.transfer is not None and profile.waiting is not None:
        rows = [
            f"{_part(profile.transfer)}   data moves: of each collective its shortest rank",
            f"{_part(profile.waiting)}   a rank waits for later ones, on average",
        ]
        lines += labelled("of that", rows, width)
    name = word_of(report.finding)
    words = f"{name}, which the traces {_outcome_words(report.comparison)}"
    lines += ["", *labelled("verdict", [words], width), ""]
    lines += labelled("ranks", _rank_table(profile), width)
    rows = [_collective(one) for one in profile.collectives[:COLLECTIVE_ROWS]]
    lines += labelled("of these", rows or [f"not compared: {profile.unlike}"], width)
    return [*lines, *labelled("after", _after(report), width)]


def _part(share: float) -> str:
    return f"{percent(share):>4} of each step"


def _hidden(profile: JobProfile) -> str:
    if profile.on_device:
        return "that no kernel hides"
    return "of the backend's threads while PyTorch computes nothing"


def _outcome_words(comparison: Comparison) -> str:
    words = {"confirms": "confirm", "corrects": "correct", "cannot say": "cannot judge"}
    return f"{words[comparison.says]}: {comparison.text}"


def _shown_ranks(profile: JobProfile) -> Sequence[RankShare]:
    """All of a few, else those for which or that are waited most."""
    if len(profile.ranks) <= RANK_ROWS:
        return profile.ranks

    def weight(one: RankShare) -> float:
        return max(one.late_ns or 0.0, one.exposed_ns)

    chosen = sorted(profile.ranks, key=weight, reverse=True)[:RANK_ROWS]
    return sorted(chosen, key=lambda one: one.rank)


def _rank_table(profile: JobProfile) -> list[str]:
    names = ("in all", "alone", "transfer", "waiting", "late by", "last in")
    rows = ["      " + "  ".join(f"{name:>8}" for name in names)]
    for one in _shown_ranks(profile):
        known = (one.collectives_ns, one.exposed_ns, one.transfer_ns, one.waiting_ns, one.late_ns)
        cells = ["-" if ns is None else ms(ns) for ns in known]
        cells.append("-" if one.late_ns is None else f"{percent(one.late_in / profile.steps)}")
        rows.append(f"r{one.rank:<5}" + "  ".join(f"{cell:>8}" for cell in cells))
    return rows


def _collective(one: CollectiveSum) -> str:
    what = " ".join(filter(None, (one.kind or "collective", one.dtype)))
    if one.bytes is not None:
        what += f" of {size(one.bytes)}"
    text = f"{one.a_step:>5.1f}x  {what}: transfer {ms(one.transfer_ns)}"
    if one.bytes and one.transfer_ns:
        text += f" ({one.bytes * one.a_step / one.transfer_ns:.1f} GB/s)"
    return f"{text}, waiting {ms(one.waiting_ns)}, of both alone {ms(one.exposed_ns)} per step"


def _after(report: JobReport) -> list[str]:
    rows = [f"the windows held training up for {ms(report.pause_ns)} in all"]
    if not report.torn_down and report.profile.on_device:
        rows.append(
            "this CUDA cannot let go of its profiler: steps may stay 15 to 20% slower until the "
            "run is started again"
        )
    return rows + [f"{one}: ui.perfetto.dev or chrome://tracing opens it" for one in report.traces]


def job_profile_json(report: JobReport) -> str:
    """One object; times in ns a step, shares from 0 to 1. docs/json.md has the fields."""
    profile = report.profile
    latest = profile.latest
    made: dict[str, Any] = {
        "schema": "gpuwatch-job-profile-1",
        "script": report.script,
        "world_size": report.world_size,
        "pids": list(report.pids),
        "profile": msgspec.to_builtins(profile),
        "exposed": profile.exposed,
        "transfer": profile.transfer,
        "waiting": profile.waiting,
        "late_rank": None if latest is None else latest.rank,
        "late_share": None if latest is None else latest.late,
        "verdict": report.finding.kind,
        "comparison": msgspec.to_builtins(report.comparison),
        "pause_ns": report.pause_ns,
        "torn_down": report.torn_down,
        "traces": list(report.traces),
    }
    return msgspec.json.encode(made).decode()
