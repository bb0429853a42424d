"""`python -m tests.gpu.deep OUT [pairs] [scenarios] [leaks] [NAME...] [--seconds S]`: the deep look
on a GPU.

pairs: steps before and after a window (`tests.gpu.deep_pairs`), in S seconds (110), best on two
GPUs and a host without other work. scenarios: demo/'s profiled with the live verdict beside, and
the same trace read by hand. leaks: the lines of tests/leaks. Everything goes into OUT/deep.tar:
results.json, the reports, and the windows, trimmed, for tests. On an H200 a scenario takes ten
seconds, leaks forty.
"""

import argparse
import gzip
import json
import signal
import sys
import tarfile
import time
import traceback
from collections.abc import Callable
from pathlib import Path
from typing import Any, Final, NoReturn

import msgspec

from gpuwatch.tui.cli.profile import Patience, profiled
from gpuwatch.tui.cli.target import has_probe, watch_live
from gpuwatch.tui.discovery.targets import own_page
from gpuwatch.tui.formats.memory_report import memory_json, memory_report_lines
from gpuwatch.tui.formats.profile_report import profile_json, profile_lines
from gpuwatch.tui.sources.deep_look import DeepLookLink
from gpuwatch.tui.trace.file import file_of
from gpuwatch.tui.trace.leaks import device_lines, growing, host_lines, worker_lines
from gpuwatch.tui.trace.profile import Profile, Recorded, Window
from tests.gpu.by_hand import by_hand
from tests.gpu.deep_pairs import pairs
from tests.gpu.scripts import ROOT, line_of, send, started

LIMIT_S: Final = 400.0
PATIENCE: Final = Patience(verdict_s=8.0, after_s=1.5, most_after_s=5.0)
"""Shorter than the command's own: there are six minutes for all of it."""
SCENARIOS: Final[tuple[tuple[str, tuple[str, ...], str], ...]] = (
    ("loader_serial", (), "input"),
    ("hidden_wait", (), "compute"),
    ("sync_items", (), "sync"),
    ("item_each_step", (), "compute"),
    ("launch_layers", (), "launch"),
    ("launch_lstmcell", (), "launch"),
    ("optimizer_per_parameter", (), "optimizer"),
    ("precision_fp32", (), "compute"),
    ("pointwise_unfused", (), "memory-bandwidth"),
    ("copies_pageable", (), "h2d"),
    ("copies_pinned_fp32", (), "h2d"),
    ("host_metrics", (), "host"),
    ("gpt_bf16", (), "compute"),
    ("data_and_launch", (), "launch"),
    ("launch_layers", ("--without-cause",), "launch"),  # between its two graphs
)
LEAKS: Final = ("losses", "graph", "cache", "hook", "holes", "worker")
SETTLED_STEPS: Final = 30
PARTS: Final = ("pairs", "scenarios", "leaks")


def until_probed(pid: int) -> None:
    """Wait for its page."""
    for _ in range(600):
        if has_probe(pid):
            return
        time.sleep(0.1)
    raise RuntimeError("no probe was seen")


def profile_of(pid: int) -> tuple[Any, Any]:
    """As `gpuwatch profile` does."""
    until_probed(pid)
    provider = watch_live(pid, stacks=True)
    try:
        provider.start()
        report, looked = profiled(provider, pid, 3, 15.0, True, PATIENCE)
    finally:
        provider.close()
    return report, looked.window


# Scenarios.


def scenarios(
    out: Path, results: dict[str, Any], over: Callable[[], bool], only: list[str]
) -> None:
    """Each in turn; those that are named, where some are. `compiled` imports meanwhile."""
    compiled = [sys.executable, "-m", "tests.gpu.deep_loop", "100", "compiled"]
    commands = [
        (
            f"{name}{'-without' if more else ''}",
            [sys.executable, f"demo/scenarios/{name}.py", "--wait", *more],
            truth,
        )
        for name, more, truth in SCENARIOS
        if not only or f"{name}{'-without' if more else ''}" in only
    ]
    with started(compiled, out / "compiled.log") as waiting:
        for at, (name, command, truth) in enumerate(commands):
            if over():
                print("out of time before", name, flush=True)
                break
            with started(command, out / f"{name}.log") as process:
                send(process)
                while "first step done" not in line_of(process):
                    pass
                judge(name, truth, process.pid, out, results)
            if at == len(commands) - 1 and (not only or "compiled" in only):
                line_of(waiting)
                send(waiting)
                judge("compiled", "launch", waiting.pid, out, results)


def judge(name: str, truth: str, pid: int, out: Path, results: dict[str, Any]) -> None:
    """Profile it, read its trace by hand, keep both."""
    began = time.monotonic()
    try:
        report, window = profile_of(pid)
    except Exception as error:
        results.setdefault("scenarios", {})[name] = {"failed": str(error)}
        print(name, "FAILED", str(error).replace("\n", " / "), flush=True)
        traceback.print_exc()
        return
    times = window.times
    hand = by_hand(times.data, list(times.ends_ns), list(times.marks), times.anchor)
    profile = report.profile
    found: dict[str, Any] = {
        "truth": truth,
        "verdict": report.verdict.finding.kind,
        "confidence": report.verdict.confidence,
        "comparison": msgspec.to_builtins(report.comparison),
        "report": json.loads(profile_json(report)),
        "by_hand": hand,
        "bytes": [len(times.data), len(window.operators.data) if window.operators else 0],
        "seconds": time.monotonic() - began,
    }
    off: dict[str, float] = {}
    if isinstance(profile, Profile) and hand is not None:
        off = differences(profile, hand)
        found["off_points"] = off
    results.setdefault("scenarios", {})[name] = found
    (out / f"{name}.txt").write_text("\n".join(profile_lines(report, 120)))
    keep(window, out / f"{name}.window.json.gz")
    if name == "launch_layers":
        (out / "merged.json.gz").write_bytes(gzip.compress(file_of(window)))
    worst = max((abs(one) for one in off.values()), default=float("nan"))
    parts = (
        {}
        if not isinstance(profile, Profile)
        else {one.pattern: round(one.share, 3) for one in profile.patterns[:4]}
    )
    compared = report.comparison
    print(
        f"{name}: true {truth}, live {found['verdict']}, trace {compared and compared.kind} "
        f"({compared and compared.says}), worst {worst:.2f} points, {parts}, "
        f"{found['seconds']:.0f} s",
        flush=True,
    )


def differences(profile: Profile, hand: dict[str, float]) -> dict[str, float]:
    """Per cent of the step between the program's reading and that by hand."""
    idle = sum(one.ns_a_step for one in profile.patterns if one.pattern != "communication")
    shares = {one.pattern: one.ns_a_step for one in profile.patterns}
    step = hand["step_ms"]
    mine = {
        "step_ms": profile.step_ns,
        "compute_ms": profile.compute_ns_a_step,
        "collectives_ms": shares.get("communication", 0.0),
        "input_ms": shares.get("input", 0.0),
        "idle_ms": idle + profile.device_ns_a_step - 1e6 * (hand["uploads_ms"] + hand["copies_ms"]),
    }
    return {name: round(100 * (ns / 1e6 - hand[name]) / step, 3) for name, ns in mine.items()}


def keep(window: Window, path: Path) -> None:
    """The window with what the reader uses of its traces, for a test: less than 300 KB, or not."""
    small = msgspec.json.encode(
        {
            "times": trimmed(window.times, 0, 3),
            "operators": None if window.operators is None else trimmed(window.operators, -2, -1),
            "looks": window.looks,
            "places": window.places,
        }
    )
    packed = gzip.compress(small, 9)
    if len(packed) <= 300_000:
        path.write_bytes(packed)
    else:
        print(f"{path.name}: {len(packed):,} bytes are too many to keep", flush=True)


KEPT: Final = (
    "correlation", "stream", "device", "bytes", "External id", "Input Dims", "Input type",
)  # fmt: skip
CATEGORIES: Final = (
    "kernel", "gpu_memcpy", "gpu_memset", "cuda_runtime", "cuda_driver", "cpu_op",
    "user_annotation",
)  # fmt: skip


def trimmed(recorded: Recorded, first: int, last: int) -> dict[str, Any]:
    """Of a recording, what the host did between two ends of steps and the device for that."""
    trace = json.loads(recorded.data)
    ends_ns = recorded.ends_ns
    last = min(last, len(ends_ns) - 1)
    shift_us = (trace.get("baseTimeNanoseconds", 0) - recorded.anchor[1] + recorded.anchor[0]) / 1e3
    since_us, until_us = ends_ns[first] / 1e3 - shift_us, ends_ns[last] / 1e3 - shift_us
    asked = {
        one["args"]["correlation"]: since_us <= one["ts"] < until_us
        for one in trace["traceEvents"]
        if one.get("cat") in ("cuda_runtime", "cuda_driver") and "correlation" in one["args"]
    }
    events = []
    for one in trace["traceEvents"]:
        if one.get("ph") == "X" and one.get("cat") in CATEGORIES:
            inside = since_us <= one["ts"] < until_us
            if not asked.get(one.get("args", {}).get("correlation"), inside):
                continue
            args = {key: one["args"][key] for key in KEPT if key in one.get("args", {})}
            kept = {key: one[key] for key in ("ph", "cat", "name", "ts", "dur", "tid")}
            events.append({**kept, "args": args})
    devices = [{"name": one.get("name", "")} for one in trace.get("deviceProperties", [])[:1]]
    return {
        "trace": {
            "baseTimeNanoseconds": trace.get("baseTimeNanoseconds", 0),
            "deviceProperties": devices,
            "traceEvents": events,
        },
        "ends_ns": ends_ns[: last + 1] if last >= 0 else ends_ns,
        "marks": recorded.marks,
        "anchor": recorded.anchor,
    }


# Leaks.


def leaks(out: Path, results: dict[str, Any]) -> None:
    """All scripts, one after the other."""
    for name in LEAKS:
        script = ROOT / "tests" / "leaks" / f"leaking_{name}.py"
        text = script.read_text().splitlines()
        true = [number for number, line in enumerate(text, 1) if line.endswith("# LEAK")]
        try:
            with started([sys.executable, str(script)], out / f"leak-{name}.log") as process:
                until_probed(process.pid)
                opened = own_page(process.pid)
                assert opened is not None
                for _ in range(300):
                    if opened.words().steps >= SETTLED_STEPS:
                        break
                    time.sleep(0.1)
                with DeepLookLink(opened.hello, process.pid) as link:
                    window, snapshot = link.memory(4.0, name == "worker")
                opened.close()
        except Exception as error:
            results.setdefault("leaks", {})[name] = {"failed": str(error)}
            print("leak", name, "FAILED", str(error).replace("\n", " / "), flush=True)
            continue
        rows = worker_lines(window) or growing(device_lines(window)) or host_lines(window)
        first = rows[0].line if rows else ""
        right = any(first.startswith(f"leaking_{name}.py:{number}") for number in true)
        results.setdefault("leaks", {})[name] = {
            "true": true,
            "first": first,
            "right": right,
            "window": json.loads(memory_json(name, process.pid, window, "")),
            "snapshot_bytes": len(snapshot or b""),
        }
        lines = memory_report_lines(name, process.pid, window, "", 120)
        (out / f"leak-{name}.txt").write_text("\n".join(lines))
        if name == "losses" and snapshot is not None and len(snapshot) < 20_000_000:
            (out / "losses.pickle.gz").write_bytes(gzip.compress(snapshot))
        print(
            f"leak {name}: {first!r}, true {true}: {'right' if right else 'WRONG'}, "
            f"cost {window.cost_ns / 1e6:.0f} ms of {window.seconds:.1f} s",
            flush=True,
        )


def _end(*_: object) -> NoReturn:
    sys.exit(143)


def main() -> None:
    """The parts that are named, or all."""
    began = time.monotonic()
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("out", type=Path)
    parser.add_argument("named", nargs="*", help="parts, and scenarios")
    parser.add_argument("--seconds", type=float, default=110.0, help="of the pairs")
    options = parser.parse_args()
    folder, named = options.out, options.named
    only = [name for name in named if name not in PARTS]
    parts = [name for name in named if name not in only] or list(PARTS)
    out = folder / "deep"
    out.mkdir(parents=True, exist_ok=True)
    results: dict[str, Any] = {}

    def over() -> bool:
        return time.monotonic() - began > LIMIT_S - 15

    works: dict[str, Callable[[], None]] = {
        "pairs": lambda: pairs(out, results, options.seconds),
        "scenarios": lambda: scenarios(out, results, over, only),
        "leaks": lambda: leaks(out, results),
    }
    signal.signal(signal.SIGTERM, _end)  # so that what was started ends too, and the tar is written
    try:
        for part in parts:
            try:
                works[part]()
            except Exception:
                traceback.print_exc()
    finally:
        (out / "results.json").write_text(json.dumps(results))
        with tarfile.open(folder / "deep.tar", "w") as tar:
            tar.add(out, arcname="deep")
        for path in out.iterdir():
            path.unlink()
        out.rmdir()
    print(f"{time.monotonic() - began:.0f} s", flush=True)


if __name__ == "__main__":
    main()
