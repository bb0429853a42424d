"""Section `standstill`: a job that hangs, made on purpose, and what `gpuwatch attach --json` says.

The bar: named within 10 s of the stall, with the collective, the ranks in it, those that are not,
and each one's line. The lines of `--json` that name it first, and the last ones, are kept.
"""

import json
import os
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from time import monotonic, perf_counter_ns, sleep
from typing import Any, Final

from tests.gpu.ranks.jobs import Ranks, jobs
from tests.gpu.ranks.standing import CASES
from tests.measuring.child import ROOT, ChildError, python_path
from tests.measuring.claims import Claim, broken

WATCH_S: Final = 60.0
NAMED_S: Final = 10.0
SETTLE_S: Final = 12.0
"""Until what is reported then holds: stacks come after the name."""
BAR: Final = f"named within {NAMED_S:.0f} s"


class Attached(threading.Thread):
    """A monitor's lines, each with the moment it came."""

    def __init__(self, pid: int) -> None:
        super().__init__(daemon=True)
        self.lines: list[tuple[int, dict[str, Any]]] = []
        self._process = subprocess.Popen(
            [sys.executable, "-m", "gpuwatch", "attach", str(pid), "--json"],
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            text=True,
            cwd=ROOT,
            env={**os.environ, "PYTHONPATH": python_path()},
        )

    def run(self) -> None:
        """Until it ends."""
        assert self._process.stdout is not None
        for line in self._process.stdout:
            self.lines.append((perf_counter_ns(), json.loads(line)))

    def stop(self) -> None:
        """Interrupt it."""
        self._process.kill()
        self._process.wait()
        self.join(5)

    def named(self) -> tuple[int, dict[str, Any]] | None:
        """The first line that says that ranks stand."""
        for at_ns, line in list(self.lines):
            verdict = line["verdict"]
            if (verdict["kind"], verdict["sub"]) == ("stalled", "ranks"):
                return at_ns, line
        return None


def claims(out: Path) -> Iterator[Claim]:
    """A row a case; all run at once."""
    with (
        jobs([("-m", "tests.gpu.ranks.standing", case) for case in CASES]) as started,
        ExitStack() as stack,
    ):
        for job in started:
            for child in job.children:
                child.ready()
        attached = []
        for job in started:
            one = Attached(job.pids[0])
            stack.callback(one.stop)
            one.start()
            attached.append(one)
        end_s = monotonic() + WATCH_S
        while not all(one.lines for one in attached) and monotonic() < end_s:
            sleep(0.1)
        for job in started:
            job.send("go")
        for case, job, one in zip(CASES, started, attached, strict=True):
            try:
                yield _row(case, job, one, out)
            except ChildError as error:
                yield broken("standstill", case, error)


def _row(case: str, job: Ranks, monitor: Attached, out: Path) -> Claim:
    stands_ns = int(job.children[-1].answer(WATCH_S)["stands_ns"])
    limit_s = monotonic() + WATCH_S / 2
    while (named := monitor.named()) is None and monotonic() < limit_s:
        sleep(0.1)
    settled_ns = stands_ns + int((NAMED_S + SETTLE_S) * 1e9)
    while perf_counter_ns() < settled_ns:
        sleep(0.1)
    last = monitor.lines[-1][1]
    out.mkdir(parents=True, exist_ok=True)
    first = named[1] if named else None
    kept = {"first": _short(first), "last": _short(last)}
    (out / f"{case}.json").write_text(json.dumps(kept, indent=1))
    if named is None:
        shown = last["verdict"]["headline"]
        return Claim("standstill", case, f"not named; last: {shown}", BAR, False, kept)
    took_s = (named[0] - stands_ns) / 1e9
    evidence = " | ".join(one["text"] for one in last["verdict"]["evidence"][:4])
    measured = f"after {took_s:.1f} s: {last['verdict']['headline']} [{evidence}]"
    return Claim("standstill", case, measured, BAR, took_s <= NAMED_S, kept)


def _short(line: dict[str, Any] | None) -> dict[str, Any] | None:
    """What it says of the job."""
    if line is None:
        return None
    return {name: line.get(name) for name in ("verdict", "job", "ranks")}
