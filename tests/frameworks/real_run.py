"""A script under a real framework, watched to its end: what the probe reported, and the truth."""

import json
import os
import socket
import subprocess
import time
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, replace
from pathlib import Path
from statistics import median

from gpuwatch.tui.steps import Step
from tests.frameworks.cases import Case
from tests.frameworks.listening import Listener
from tests.measuring.child import python_path
from tests.processes.monitored import until

SCRIPTS = Path(__file__).parent / "scripts"
WARM_UP = 2
"""Steps in which a framework imports, compiles and allocates: their phases are not judged."""
LIMIT_S = 150.0
PHASES = (
    "data",
    "startup",
    "forward",
    "backward",
    "optimizer",
    "other",
    "evaluation",
    "checkpoint",
    "compile",
)


@dataclass(frozen=True)
class Seen:
    """One process."""

    reported: list[Step]
    true_steps: int
    """As the framework counts them."""
    waits: list[tuple[str, int, int]]
    """Kind, begin and end, on the clock of `reported`."""
    fault: str | None
    lost_marks: int
    error: str
    """What stood on stderr."""

    @property
    def reported_steps(self) -> int:
        """How many the probe has counted."""
        return sum(step.count for step in self.reported)

    def judged(self) -> list[Step]:
        """The steps behind the warm-up; those of a graph's capture hold no wait of ours."""
        return [step for step in self.reported if step.number > WARM_UP and self.true_ms(step)]

    def true_ms(self, step: Step) -> "Counter[str]":
        """The waits that lie in a step, by kind, ms."""
        lie: Counter[str] = Counter()
        for kind, began_ns, ended_ns in self.waits:
            inside_ns = min(ended_ns, step.end_ns) - max(began_ns, step.start_ns)
            if inside_ns > 0:
                lie[kind] += inside_ns / 1e6  # type: ignore[assignment]
        return lie


def off_by(case: Case, seen: Seen) -> dict[str, float]:
    """By phase, how far the report is from the waits that lie there: 0.1 is 10 % too much. The
    median of the steps, since on a busy machine some hold more than their waits.

    What no wait of ours explains is held against the whole step.
    """
    errors: dict[str, list[float]] = {}
    for step in seen.judged():
        reported = {phase: getattr(step, f"{phase}_ns") / 1e6 for phase in PHASES}
        true = seen.true_ms(step)
        intended: Counter[str] = Counter()
        for kind, ms in true.items():
            intended[case.into.get(kind, kind)] += ms
        for phase, ms in intended.items():
            errors.setdefault(phase, []).append(reported[phase] / ms - 1)
        strange = sum(ms for phase, ms in reported.items() if phase not in intended)
        errors.setdefault("not ours", []).append(strange / true.total())
    return {phase: median(values) for phase, values in errors.items()}


def watch(python: str, case: Case, folder: Path) -> list[Seen]:
    """Run a case with that interpreter, once or as so many ranks, and listen to each of them."""
    ranks, elsewhere = case.ranks, case.elsewhere
    os.mkfifo(folder / "seen")
    started = [
        subprocess.Popen(
            [python, str(SCRIPTS / case.script), *case.arguments],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
            text=True,
            env={**_environment(folder), "KNOWN_STEPS": str(case.steps), **extra},
        )
        for extra in _ranks(ranks)
    ]
    try:
        pids = [_worker(folder)] if elsewhere else [process.pid for process in started]
        listeners = [Listener(pid) for pid in pids]
        for listener in listeners:
            listener.start()
        if elsewhere:
            _release(folder, pids[0], listeners[0])
        errors = [process.communicate(timeout=LIMIT_S)[1] for process in started]
        for listener in listeners:
            if elsewhere:
                listener.leave()
            listener.join(timeout=LIMIT_S)
    finally:
        for process in started:
            process.kill()
            process.wait()
    assert [process.returncode for process in started] == [0] * ranks, "\n".join(errors)
    every = [_seen(folder, *each) for each in zip(pids, listeners, errors, strict=True)]
    if case.first_waits:
        waits = [wait for wait in every[0].waits if wait[0] == "data"]
        every[1:] = [replace(one, waits=one.waits + waits) for one in every[1:]]
    return every


def _environment(folder: Path) -> dict[str, str]:
    return {
        **os.environ,
        "PYTHONPATH": python_path(),
        "KNOWN_FOLDER": str(folder),
        "OMP_NUM_THREADS": "1",
        "HF_HUB_OFFLINE": "1",
        "HF_HOME": str(folder),
        "TOKENIZERS_PARALLELISM": "false",
    }


def _ranks(count: int) -> Iterable[dict[str, str]]:
    if count == 1:
        return [{}]
    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        port = one.getsockname()[1]
    shared = {
        "MASTER_ADDR": "127.0.0.1",
        "MASTER_PORT": str(port),
        "WORLD_SIZE": str(count),
        "LOCAL_WORLD_SIZE": str(count),
    }
    return [{**shared, "RANK": str(rank), "LOCAL_RANK": str(rank)} for rank in range(count)]


def _worker(folder: Path) -> int:
    return int(_found(folder, "*.pid").stem)


def _found(folder: Path, pattern: str) -> Path:
    """The one file of that name, once it is there."""
    end_s = time.monotonic() + LIMIT_S
    while not (found := list(folder.glob(pattern))):
        assert time.monotonic() < end_s, f"no {pattern}"
        time.sleep(0.05)
    return found[0]


def _release(folder: Path, pid: int, listener: Listener) -> None:
    """Let a worker go that has trained, once all is reported, or its probe has ended."""
    _found(folder, f"{pid}.json")
    listener.quiet.clear()
    until(lambda: listener.quiet.is_set() or not listener.is_alive())
    (folder / "seen").write_text("")


def _seen(folder: Path, pid: int, listener: Listener, error: str) -> Seen:
    truth = json.loads((folder / f"{pid}.json").read_text())
    waits = [tuple(one) for one in truth["waits"]]
    return Seen(listener.steps, truth["steps"], waits, listener.fault, listener.lost_marks, error)
