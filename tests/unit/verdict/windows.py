"""Hand-made runs and windows: what a session would have seen."""

import dataclasses
from collections.abc import Callable, Iterable, Sequence
from itertools import pairwise
from typing import Any

from gpuwatch.tui.messages import Loader
from gpuwatch.tui.session.judge import EARLY_NS
from gpuwatch.tui.steps import Step
from gpuwatch.tui.verdict.engine import Engine
from gpuwatch.tui.verdict.findings import Verdict
from gpuwatch.tui.verdict.stack_samples import FrameShare, Stacks
from gpuwatch.tui.verdict.window import HostUse, MemoryPoint, OpenStep, StepWindow, WorkerUse
from gpuwatch.tui.verdict.window_selection import choose_window, warm_after

MS = 1_000_000
S = 1_000_000_000
MIB = 1024 * 1024
GIB = 1024 * MIB

PartsOf = Callable[[int], dict[str, Any]]
"""The parts of step number n: `data_ms=…`, `forward_ms=…`, and fields of Step as they are."""

_PHASES = (
    *("data", "startup", "forward", "backward", "optimizer", "other"),
    *("evaluation", "checkpoint", "compile"),
)


def step(number: int, start_ns: int, **parts: Any) -> Step:
    """A step whose `*_ms` parts follow each other; other fields as they are."""
    ns = {name: round(parts.pop(f"{name}_ms", 0.0) * MS) for name in _PHASES}
    phases = {name: round(ms * MS) for name, ms in parts.pop("phases_ms", {}).items()}
    unknown_ns = round(parts.pop("unknown_ms", 0.0) * MS)
    count = parts.get("count", 1)
    fields: dict[str, Any] = {
        "count": 1,
        "fetches": count,
        "backwards": count,
        "optimizer_steps": count,
        "samples": None,
        "ready": None,
        "data_max_ns": ns["data"],
        "inference": False,
        **parts,
    }
    wall_ns = sum(ns.values()) + sum(phases.values()) + unknown_ns
    return Step(
        number=number,
        start_ns=start_ns,
        end_ns=start_ns + wall_ns,
        phases=phases,
        **{f"{name}_ns": ns[name] for name in _PHASES},
        **fields,
    )


def run(count: int, parts_of: PartsOf) -> list[Step]:
    """`count` steps, one after the other, from number 1 at 1 s."""
    made: list[Step] = []
    at_ns, number = S, 0
    for index in range(1, count + 1):
        parts = parts_of(index)
        number += parts.get("count", 1)
        made.append(step(number, at_ns, **parts))
        at_ns = made[-1].end_ns
    return made


def even(rows: int, /, **parts: Any) -> list[Step]:
    """Equal steps."""
    return run(rows, lambda _: dict(parts))


def loader(workers: int | None = 1, **fields: Any) -> Loader:
    """The training loader."""
    given: dict[str, Any] = {
        "key": 1,
        "kind": "_MultiProcessingDataLoaderIter" if workers else "_SingleProcessDataLoaderIter",
        "num_workers": workers,
        "prefetch_factor": 2 if workers else None,
        "pin_memory": False,
        "persistent_workers": False,
        "batch_size": 12,
        "batches": 1_000,
        "worker_pids": tuple(range(100, 100 + (workers or 0))),
        "dataset": "PhotographFiles",
        **fields,
    }
    return Loader(**given)


def stacks(
    main: Sequence[tuple[float, str, str | None] | tuple[float, str, str | None, str]] = (),
    workers: Sequence[tuple[float, str, str | None] | tuple[float, str, str | None, str]] = (),
    idle: float | None = None,
) -> Stacks:
    """Samples: (share, frame, caller), 200 of each role that has any."""
    return Stacks(
        main_samples=200,
        main=tuple(FrameShare(*place) for place in main),
        worker_samples=200 if workers or idle is not None else 0,
        workers=tuple(FrameShare(*place) for place in workers),
        worker_idle_share=idle,
    )


def worker_use(count: int, cpu: float, disk: float = 0.0, read: float = 0.0) -> WorkerUse:
    """Workers that use `cpu` percent of a core each."""
    return WorkerUse(count, cpu, disk, read)


HOST_USE = tuple(one.name for one in dataclasses.fields(HostUse))


def window(seen: Iterable[Step], /, **fields: Any) -> StepWindow:
    """What a session hands over after these steps, oldest first, from the very first. Fields of
    `HostUse` may be given by their names."""
    rows = tuple(seen)
    # Who has chosen already says so: a run of a thousand looks need not choose each window twice.
    chosen = None if "steps" in fields and "warmup_left" in fields else choose_window(rows)
    given: dict[str, Any] = {
        "now_ns": rows[-1].end_ns if rows else S,
        "steps": chosen.steps if chosen else (),
        "steps_seen": rows[-1].number if rows else 0,
        "warmup_left": chosen.warmup_left if chosen else 0,
        "all_recent": rows[-500:],
        "compiled": tuple(row for row in rows if row.compile_ns),
        "loaders": (loader(),),
        "cores": 2.0,
        "machine_cpu_percent": None,
        "host": HostUse(**{name: fields.pop(name) for name in HOST_USE if name in fields}),
        "workers": None,
        "stacks": None,
        "memory": (),
        "worker_memory": (),
        "memory_limit_bytes": None,
        "open_step": None,
        "gpu_present": False,
        "ended": False,
        "missing": (),
        "warm_step": warm_after(rows),
        **fields,
    }
    return StepWindow(**given)


def waiting(workers: int, wait_ms: float, /, **fields: Any) -> StepWindow:
    """A step of 14 ms beside its wait for a loader of so many workers."""
    rows = even(60, data_ms=wait_ms, forward_ms=6, backward_ms=7, optimizer_ms=1)
    return window(rows, **{"loaders": (loader(workers),), **fields})


def open_step(phase: str, age_s: float, **fields: Any) -> OpenStep:
    """What the training thread does now."""
    given: dict[str, Any] = {
        "step_age_s": age_s,
        "evaluating": phase == "evaluation",
        "frame": None,
        **fields,
    }
    return OpenStep(phase=phase, age_s=age_s, **given)


def memory(bytes_of: Callable[[int], float], seconds: int, steps_s: float) -> list[MemoryPoint]:
    """A point a second, the first after the warm-up."""
    return [
        MemoryPoint(
            20 + int(second * steps_s), second * S, int(bytes_of(20 + int(second * steps_s)))
        )
        for second in range(seconds)
    ]


def watch(steps: Sequence[Step], every_ns: int = S, **fields: Any) -> list[tuple[int, Verdict]]:
    """Look at a run as a session does, once a second, before the first verdict more often: (steps
    seen, verdict) of each look."""
    engine = Engine()
    cut_ns, seen = 0, 0
    verdicts: list[tuple[int, Verdict]] = []
    look_ns = steps[0].start_ns + min(EARLY_NS, every_ns)
    while look_ns <= steps[-1].end_ns:
        while seen < len(steps) and steps[seen].end_ns <= look_ns:
            seen += 1
        rows = steps[max(0, seen - 1_000) : seen]
        chosen = choose_window(rows, cut_ns)
        cut_ns = chosen.cut_ns
        given = {
            "now_ns": look_ns,
            "steps": chosen.steps,
            "warmup_left": chosen.warmup_left,
            **fields,
        }
        verdict = engine.judge(window(rows, **given))
        verdicts.append((seen, verdict))
        early = verdict.finding.kind == "warming-up" and seen > 0
        look_ns += min(EARLY_NS, every_ns) if early else every_ns
    return verdicts


def kinds(verdicts: Iterable[tuple[int, Verdict]]) -> list[str]:
    """The kind of each look."""
    return [verdict.finding.kind for _, verdict in verdicts]


def flips(names: Sequence[str]) -> int:
    """How often the verdict became another one, after the first."""
    settled = [name for name in names if name != "warming-up"]
    return sum(after != before for before, after in pairwise(settled))
