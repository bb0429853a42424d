"""The verdicts of a line of `--json`: the target's, and the job's."""

import math
from typing import Any

from ..model.snapshot import JobVerdict
from ..verdict.findings import Evidence, Finding, Forecast, MissingSignal, Note, Verdict
from ..verdict.forecast.interval import forecast_of
from ..verdict.job.facts import ExchangeFacts
from ..verdict.job.late import LateRank
from ..verdict.job.standing import Pending

Record = dict[str, Any]


def job_record(seen: JobVerdict | None) -> Record | None:
    """All ranks as one."""
    if seen is None:
        return None
    job, finding, exchange = seen.job, seen.finding, seen.job.exchange
    return {
        "world_size": job.world_size,
        "late_rank": None if seen.late is None else seen.late.rank.rank,
        "late_node": seen.late.node[0] if seen.late and seen.late.node else None,
        "lateness": _lateness(seen.late),
        "collectives": None if exchange is None else _exchange(exchange),
        "standing": None if job.pending is None else _standing(job.pending),
        "verdict": {
            "kind": finding.kind,
            "sub": finding.sub,
            "severity": finding.severity,
            "share": number(finding.share),
            **_forecast(forecast_of(finding)),
            "headline": finding.headline,
            "evidence": [_evidence(evidence) for evidence in finding.evidence],
            "advice": list(finding.advice),
        },
    }


def _lateness(late: LateRank | None) -> Record | None:
    """Since when, and how often."""
    found = late.lateness if late is not None else None
    if found is None:
        return None
    return {
        "since_step": found.since_step,
        "known_before": found.known_before,
        "age_s": number(found.age_s),
        "first_step": found.first_step,
        "of_steps": number(found.of_steps),
        "every": found.every,
    }


def _exchange(exchange: ExchangeFacts) -> Record:
    steps = max(1, len(exchange.steps))
    transfer = exchange.transfer
    return {
        "steps": len(exchange.steps),
        "per_step": number(sum(one.collectives for one in exchange.steps) / steps),
        "bytes_per_step": number(sum(one.bytes for one in exchange.steps) / steps),
        "transfer_share": None if transfer is None else number(transfer.mean),
        "ranks": [
            {
                "rank": rank,
                "waiting_share": number(exchange.waiting(rank).mean),
                "late_share": number(exchange.late(rank).mean),
            }
            for rank in exchange.ranks
        ],
    }


def _standing(pending: Pending) -> Record:
    return {
        "collective": pending.name or None,
        "number": pending.number,
        "bytes": pending.bytes,
        "inside": list(pending.inside),
        "outside": list(pending.outside),
        "ranks": [
            {
                "rank": one.rank,
                "collective": one.name or None,
                "bytes": one.bytes,
                "frames": list(one.way),
                "silent": one.silent,
            }
            for one in pending.ranks
        ],
    }


def verdict_record(verdict: Verdict, missing: tuple[MissingSignal, ...]) -> Record:
    """The verdict as `--json` has it. `missing`: the monitor's, behind its own."""
    finding = verdict.finding
    return {
        "kind": finding.kind,
        "sub": finding.sub,
        "severity": finding.severity,
        "confidence": number(verdict.confidence),
        "since_step": verdict.since_step,
        "share": number(finding.share),
        "share_low": number(finding.share_low),
        "share_high": number(finding.share_high),
        **_forecast(forecast_of(finding)),
        "headline": finding.headline,
        "evidence": [_evidence(evidence) for evidence in finding.evidence],
        "advice": list(finding.advice),
        "contributors": [_contributor(other) for other in verdict.contributors],
        "either": list(verdict.either),
        "missing": [one.text for one in dict.fromkeys(verdict.missing + missing)],
        "notes": [_note(note) for note in verdict.notes],
    }


def _evidence(evidence: Evidence) -> Record:
    return {
        "text": evidence.text,
        "source": evidence.source,
        "value": number(evidence.value),
        "unit": evidence.unit,
    }


def _note(note: Note) -> Record:
    return {
        "text": note.text,
        "cost": note.cost,
        "source": note.source,
        "urgent": note.urgent,
        "speedup": number(note.gain),
    }


def _contributor(finding: Finding) -> Record:
    return {
        "kind": finding.kind,
        "sub": finding.sub,
        "severity": finding.severity,
        "share": number(finding.share),
        **_forecast(forecast_of(finding)),
        "headline": finding.headline,
    }


def _forecast(forecast: Forecast | None) -> Record:
    """What the first action gives, with the interval that holds it nine times in ten."""
    if forecast is None:
        return dict.fromkeys(("speedup", "speedup_low", "speedup_high", "speedup_is"))
    return {
        "speedup": number(forecast.speedup),
        "speedup_low": number(forecast.low),
        "speedup_high": number(forecast.high),
        "speedup_is": forecast.kind,
    }


def number(value: float | None) -> float | None:
    """Rounded to six significant digits; None for NaN and infinity."""
    if value is None or not math.isfinite(value):
        return None
    return float(f"{value:.6g}")
