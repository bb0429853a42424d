"""A profiler's window as lines of text and as one JSON object."""

from dataclasses import dataclass
from typing import Any, Final

import msgspec

from ..trace.against import LEAST, Comparison, Unslowed, unslowed
from ..trace.host import HostProfile
from ..trace.pace import Pace
from ..trace.profile import PatternPart, Profile
from ..verdict.findings import Verdict
from ..verdict.format import ms, percent, times
from ..wording.words import word_of
from .report_layout import head, labelled

NAMES: Final = {
    "launch": "launch",
    "input": "input",
    "copies": "copies",
    "sync": "sync",
    "communication": "communication",
    "host": "Python",
    "allocator": "allocator",
}
ABOUT: Final = {
    "launch": "GPU idle between kernels, which the host launches too slowly",
    "input": "GPU idle while the training thread waits for a batch",
    "copies": "copies to the GPU, and waiting for them",
    "sync": "GPU idle after a call that waits for it",
    "communication": "collectives that no kernel hides",
    "host": "GPU idle while Python launches nothing",
    "allocator": "GPU idle while memory is allocated or freed",
}
MANY_WAITS: Final = 50
"""Streams' waits for each other, a step: 0.1 ms in their calls (an H200: two of 0.8 us each)."""
LEAST_SHARE: Final = 0.005
KERNEL_ROWS: Final = 10
GAP_ROWS: Final = 5
NAME_CELLS: Final = 44


@dataclass(frozen=True, slots=True)
class DeepReport:
    """All that one window came to."""

    script: str
    pid: int
    profile: Profile | HostProfile
    verdict: Verdict
    comparison: Comparison | None
    """None without a device."""
    pace: Pace | None
    pause_ns: int
    torn_down: bool
    live_ns: float | None = None
    """Of a step before the window."""
    trace: str = ""
    """The file; "" where none was asked for."""
    trace_bytes: int = 0
    no_operators: str = ""
    """Why kernels have no operators, shapes or lines; "" where they have, or none were wanted."""


def profile_costs(steps: int, operators: bool) -> list[str]:
    """What a window costs, before it is opened. Measured on an H200 (docs/deep_look.md)."""
    named = "two or more with operators and " if operators else ""
    return [
        f"gpuwatch: profiling {steps} steps, behind {named}one that is left out.",
        "Launching takes up to twice as long meanwhile, and pauses 0.1 to 1.3 s in all.",
        "About 1.5 KB of trace a kernel, 200 MB at the most. Then the profiler is taken out again.",
    ]


def profile_lines(report: DeepReport, width: int) -> list[str]:
    """The report, in lines of at most `width` columns."""
    profile = report.profile
    if isinstance(profile, HostProfile):
        return _host_lines(report, profile, width)
    lines = _head(report, profile.steps, profile.device, width)
    freed = unslowed(profile, report.live_ns)
    computes = _share(profile.compute_ns_a_step, profile.step_ns)
    if freed is not None:
        computes += f"   {percent(freed.compute)} without the profiler"
    lines += labelled("compute", [computes], width)
    for part in profile.patterns:
        if part.share >= LEAST_SHARE:
            lines += labelled(NAMES[part.pattern][:8], [_pattern(part, freed)], width)
    if profile.device_ns_a_step / profile.step_ns >= LEAST_SHARE:
        rest = f"{_share(profile.device_ns_a_step, profile.step_ns)}   between queued kernels"
        lines += labelled("other", [rest], width)
    lines += ["", *_verdict(report, width), ""]
    lines += _kernels(profile, width)
    lines += _gaps(profile, width)
    lines += labelled("hints", _hints(profile), width)
    return lines + _after(report, width)


def _head(report: DeepReport, steps: int, device: str, width: int) -> list[str]:
    """What was profiled, and how long its steps took."""
    about = (f"profile of {report.script}", f"pid {report.pid}", f"{steps} steps", device)
    return [
        *head(about, width),
        *labelled("step", [_step(report, report.profile)], width),
    ]


def _step(report: DeepReport, profile: Profile | HostProfile) -> str:
    text = ms(profile.step_ns)
    if report.live_ns is not None:
        slower = profile.step_ns / report.live_ns
        text += f" under the profiler, {ms(report.live_ns)} before it ({times(slower)})"
    return text


def _share(ns: float, step_ns: float) -> str:
    return f"{ms(ns):>7} {percent(ns / step_ns):>4}"


def _pattern(part: PatternPart, freed: Unslowed | None) -> str:
    text = f"{_share(part.ns_a_step, part.ns_a_step / part.share)}   "
    if freed is not None and part.share >= LEAST:
        text += f"at most {percent(freed.most[part.pattern])} without the profiler · "
    text += ABOUT[part.pattern]
    if part.about:
        text += f": {part.about}"
    if part.lines:
        text += f" · {part.lines[0][0]}"
    return text


def _verdict(report: DeepReport, width: int) -> list[str]:
    comparison = report.comparison
    if comparison is None:
        return []
    words = f"{comparison.says}: {comparison.text}"
    name = word_of(report.verdict.finding)
    return labelled("verdict", [f"{name}, which the trace {words}"], width)


def _kernels(profile: Profile, width: int) -> list[str]:
    rows = [
        f"{ms(one.ns_a_step):>7} {percent(one.ns_a_step / profile.step_ns):>4} "
        f"{one.a_step:>6.0f}x  {one.sort:14} {one.dtype:5} "
        f"{' '.join(filter(None, (one.shape, one.operator or one.name[:NAME_CELLS])))}"
        for one in profile.kernels[:KERNEL_ROWS]
    ]
    return labelled("kernels", rows, width)


def _gaps(profile: Profile, width: int) -> list[str]:
    rows = [
        f"{ms(gap.ns):>7}   {NAMES.get(gap.cause, 'device'):9} "
        f"{gap.line or 'before ' + gap.behind[:NAME_CELLS]}"
        for gap in profile.gaps[:GAP_ROWS]
    ]
    return labelled("gaps", rows, width)


def _hints(profile: Profile) -> list[str]:
    rows = []
    if profile.fp32_products_ns_a_step / profile.step_ns >= 0.01:
        took = _share(profile.fp32_products_ns_a_step, profile.step_ns).strip()
        rows.append(
            f"fp32 products: {took} of each step runs outside of the tensor cores; bf16 autocast, "
            'or torch.set_float32_matmul_precision("high")'
        )
    fusable = profile.fusable
    if fusable.ns_a_step / profile.step_ns >= 0.01 or fusable.kernels_a_step >= 100:
        rows.append(
            f"{fusable.kernels_a_step:.0f} elementwise kernels a step stand in "
            f"{fusable.rows_a_step:.0f} rows of three or more, {ms(fusable.ns_a_step)}: "
            "torch.compile fuses such rows"
        )
    if profile.graph_share >= 0.5:
        text = f"{percent(profile.graph_share)} of the kernels come from CUDA graphs"
        if profile.share_of("launch") + profile.share_of("host") >= LEAST:
            text += (
                "; between two graphs the GPU waits for what the host runs eagerly (the gaps' "
                "lines): loss, gradients, optimizer. A graph of the whole step has no such gaps"
            )
        rows.append(text)
    if profile.stream_waits_a_step >= MANY_WAITS:
        rows.append(
            f"{profile.stream_waits_a_step:.0f} times a step one stream waits for another, by an "
            "event each: so do gradients that were first made on another stream (a graph's "
            "capture, a warm-up) than they are added up on"
        )
    return rows


def _after(report: DeepReport, width: int) -> list[str]:
    rows = []
    if report.pace is not None:
        pace = report.pace
        rows.append(
            f"steps after the window took {pace.ratio:.3f} times those before "
            f"({pace.low:.3f} to {pace.high:.3f})"
        )
    if not report.torn_down and isinstance(report.profile, Profile):
        rows.append(
            "this CUDA cannot let go of its profiler: steps may stay 15 to 20% slower until the "
            "run is started again"
        )
    if report.no_operators:
        rows.append(f"{report.no_operators}: the kernels' operators, shapes and lines are missing")
    rows.append(f"the window held training up for {ms(report.pause_ns)} in all")
    if report.trace:
        size = report.trace_bytes / 1e6
        rows.append(f"{report.trace} ({size:.1f} MB): ui.perfetto.dev or chrome://tracing opens it")
    return labelled("after", rows, width)


def _host_lines(report: DeepReport, profile: HostProfile, width: int) -> list[str]:
    lines = _head(report, profile.steps, "no GPU", width)
    lines += labelled("fetch", [_share(profile.fetch_ns_a_step, profile.step_ns)], width)
    lines += labelled("operators", [_share(profile.operators_ns_a_step, profile.step_ns)], width)
    rest_ns = profile.step_ns - profile.fetch_ns_a_step - profile.operators_ns_a_step
    lines += labelled("rest", [f"{_share(max(0.0, rest_ns), profile.step_ns)}   Python"], width)
    rows = [
        f"{ms(one.ns_a_step):>7} {percent(one.ns_a_step / profile.step_ns):>4} "
        f"{one.a_step:>6.0f}x  {one.name} {one.shape}".rstrip()
        for one in profile.operators[:KERNEL_ROWS]
    ]
    return [*lines, "", *labelled("operators", rows, width), "", *_after(report, width)]


def _unslowed_json(report: DeepReport) -> dict[str, Any] | None:
    """Shares of a step, of patterns the most; None where the profiler did not slow the steps."""
    profile = report.profile
    freed = None if isinstance(profile, HostProfile) else unslowed(profile, report.live_ns)
    if freed is None:
        return None
    return {"compute": freed.compute, **{str(name): share for name, share in freed.most.items()}}


def profile_json(report: DeepReport) -> str:
    """One object; times in ns, shares from 0 to 1. docs/json.md has the fields."""
    profile = report.profile
    pace = report.pace
    made: dict[str, Any] = {
        "schema": "gpuwatch-profile-1",
        "script": report.script,
        "pid": report.pid,
        "on_device": isinstance(profile, Profile),
        "profile": msgspec.to_builtins(profile),
        "verdict": report.verdict.finding.kind,
        "comparison": None if report.comparison is None else msgspec.to_builtins(report.comparison),
        "live_step_ns": report.live_ns,
        "without_profiler": _unslowed_json(report),
        "steps_after_over_before": None
        if pace is None
        else {"ratio": pace.ratio, **msgspec.to_builtins(pace)},
        "pause_ns": report.pause_ns,
        "torn_down": report.torn_down,
        "no_operators": report.no_operators or None,
        "trace": report.trace or None,
        "trace_bytes": report.trace_bytes,
    }
    return msgspec.json.encode(made).decode()
