"""The scope against known steps: `python -m tests.gpu.scope_loads [MS …]`, half a minute each.

A process of its own waits for the first 60 % of a step and multiplies matrices for the rest. This
one samples it, folds the samples on its steps, and compares. It also says how long a poll takes and
how far apart the readings are: both rest on how the device refreshes its counters.
"""

import json
import statistics
import sys
from collections.abc import Iterator, Sequence
from time import monotonic, perf_counter_ns, sleep
from typing import Any, Final

from gpuwatch.tui.model.observations import ActivitySeen
from gpuwatch.tui.session.gpu import GpuStore
from gpuwatch.tui.session.step_profile import folded
from gpuwatch.tui.sources.nvml import NvmlSource
from tests.measuring.child import Child, children
from tests.measuring.claims import HEADER, Claim, broken

STEPS_MS: Final = (130.0, 170.0, 310.0)
RUN_S: Final = 27.0
BAR_POINTS: Final = 20.0
"""Root mean square over the parts of the profile; a sample's time is right to 10 ms."""


def claims(steps_ms: Sequence[float] = STEPS_MS) -> Iterator[Claim]:
    """One row a step length."""
    started = [("-m", "tests.gpu.scope_loads", "--load", str(ms)) for ms in steps_ms]
    with children(started) as loads:
        for ms, child in zip(steps_ms, loads, strict=True):
            try:
                yield _row(ms, child)
            except Exception as error:
                yield broken("scope", f"{ms:.0f} ms", error)
            child.kill()


def _row(ms: float, child: Child) -> Claim:
    child.send()
    book, intervals_ms, polls_ms = sampled(child.pid)
    reported = child.answer(30.0)
    scope = folded(book.readings(), reported["edges_ns"], "gpm 100 ms")
    last = sorted(polls_ms)[int(0.99 * len(polls_ms))] if polls_ms else 0.0
    measured = (
        f"readings every {statistics.median(intervals_ms):.0f} ms "
        f"({min(intervals_ms):.0f} to {max(intervals_ms):.0f}), a poll that reads takes "
        f"{statistics.median(polls_ms):.1f} ms (99%: {last:.1f})"
    )
    figures: dict[str, Any] = {"intervals_ms": intervals_ms, "polls_ms": polls_ms, **reported}
    if scope is None:
        return Claim("scope", f"{ms:.0f} ms", f"none; {measured}", "a profile", False, figures)
    parts = len(scope.mean)
    mean = [value or 0.0 for value in scope.mean]
    busy = max(mean)
    truth = [busy * min(1.0, max(0.0, (i + 1) - reported["idle"] * parts)) for i in range(parts)]
    off = statistics.fmean((a - b) ** 2 for a, b in zip(mean, truth, strict=True)) ** 0.5
    profile = " ".join(f"{value:.0f}" for value in mean)
    text = f"off by {off:.0f}: {profile} (idle for {reported['idle']:.0%}); {measured}"
    bar = f"{BAR_POINTS:.0f} points"
    return Claim("scope", f"{ms:.0f} ms", text, bar, off <= BAR_POINTS, figures)


def sampled(pid: int) -> tuple[GpuStore, list[float], list[float]]:
    """What our source reports of a process while it runs, the readings' lengths, and how long the
    polls took that read something."""
    source, book = NvmlSource(pid), GpuStore()
    intervals_ms: list[float] = []
    polls_ms: list[float] = []
    source.open()
    until_s = monotonic() + RUN_S - 1
    while monotonic() < until_s:
        begin_ns = perf_counter_ns()
        for seen in source.poll(begin_ns):
            if isinstance(seen, ActivitySeen):
                book.seen(seen)
                polls_ms.append((perf_counter_ns() - begin_ns) / 1e6)
                intervals_ms.append(seen.gpus[0].interval_ns / 1e6)
        sleep(source.interval_ns / 1e9)
    source.close()
    return book, intervals_ms, polls_ms


def load(step_ms: float) -> None:
    """Steps of about this length; then when each began, and what part of it was idle."""
    import torch

    large = torch.randn(4096, 4096, device="cuda", dtype=torch.bfloat16)
    out = torch.empty_like(large)
    for _ in range(20):
        torch.mm(large, large, out=out)
    torch.cuda.synchronize()
    print("ready", flush=True)
    sys.stdin.readline()
    edges_ns = [perf_counter_ns()]
    idle: list[float] = []
    while edges_ns[-1] - edges_ns[0] < RUN_S * 1e9:
        begin_ns = edges_ns[-1]
        sleep(0.6 * step_ms / 1e3)
        works_ns = perf_counter_ns()
        while perf_counter_ns() - begin_ns < step_ms * 1e6:
            for _ in range(4):
                torch.mm(large, large, out=out)
            torch.cuda.synchronize()
        edges_ns.append(perf_counter_ns())
        idle.append((works_ns - begin_ns) / (edges_ns[-1] - begin_ns))
    print(json.dumps({"edges_ns": edges_ns, "idle": statistics.fmean(idle)}), flush=True)


if __name__ == "__main__":
    if sys.argv[1:2] == ["--load"]:
        load(float(sys.argv[2]))
    else:
        print(HEADER)
        for claim in claims([float(ms) for ms in sys.argv[1:]] or STEPS_MS):
            print(claim.line(), flush=True)
