"""A training thread with a device, a profiler that writes files, and a publisher, all made up."""

import os
import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from gpuwatch.probe import clock
from gpuwatch.probe.deep import profiler as module
from gpuwatch.probe.deep.profiler import TEARDOWN, Profiler
from gpuwatch.probe.encoding import AskProfile
from gpuwatch.probe.recorder import Recorder
from gpuwatch.probe.wire import marks

MS = 1_000_000
STEP = (marks.FETCH_ENTER, marks.FETCH_LEAVE, marks.BACKWARD_ENTER, marks.OPTIMIZER_LEAVE)


class Results:
    def __init__(self, run: "Run") -> None:
        self.run = run

    def save(self, path: str) -> None:
        self.run.teardown_at_stop.append(os.environ.get(TEARDOWN))
        sampled = self.run.begun[-1]["use_cpu"] and len(self.run.begun) == 1
        line = b'{"ph": "X", "cat": "cpu_op"}\n'
        text = line * self.run.operators if sampled else b"x" * self.run.trace_bytes
        Path(path).write_bytes(text)


class Run:
    """A training thread with a device, a profiler that writes files, and a publisher."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, folder: Path) -> None:
        self.ns = 10**12
        self.trace_bytes = 1_000
        self.operators = 100
        """In the sample, which lasts for three steps."""
        self.begun: list[dict[str, Any]] = []
        self.teardown_at_stop: list[str | None] = []
        self.capturing = self.profiling = False
        self.cuda_version = "13.0"
        self.fails = ""
        self.has_device = True
        cuda = SimpleNamespace(
            is_available=lambda: self.has_device,
            is_initialized=lambda: True,
            is_current_stream_capturing=lambda: self.capturing,
            synchronize=lambda: None,
        )
        for name, found in {
            "torch": SimpleNamespace(
                version=SimpleNamespace(cuda=self.cuda_version),
                _C=SimpleNamespace(
                    _profiler=SimpleNamespace(_ExperimentalConfig=lambda trace_only: None)
                ),
            ),
            "torch.cuda": cuda,
            "torch.autograd": SimpleNamespace(_profiler_enabled=lambda: self.profiling),
            "torch.autograd.profiler": SimpleNamespace(
                profile=self._profile, _disable_profiler=lambda: Results(self)
            ),
        }.items():
            monkeypatch.setitem(sys.modules, name, found)
        monkeypatch.setattr(clock, "now_ns", lambda: self.ns)
        monkeypatch.setattr(module, "LEAST_FREE_BYTES", 0)
        monkeypatch.setattr(module, "LOOKED_NS", 0)
        self.folder = folder
        self.recorder = Recorder(lambda _: True, self._trip, lambda: self.ns)
        for _ in range(3):
            self.step()
        self.window = Profiler(self.recorder, str(folder / "7-8"))

    def _trip(self, error: Exception) -> None:
        raise error

    def _profile(self, **options: Any) -> Any:
        if self.fails:
            raise RuntimeError(self.fails)
        return Entered(self, options)

    def step(self) -> None:
        for kind in STEP:
            self.ns += 5 * MS
            self.recorder.mark(kind)

    def ask(
        self,
        steps: int = 3,
        operators: bool = True,
        most_ns: int = 10**10,
        group: str = "",
        number: int = 0,
    ) -> Any:
        asked = AskProfile(steps, most_ns, operators, "key", group, number)
        return self.window.ask(b"a", asked, self.ns)

    def files(self) -> list[str]:
        return sorted(path.name for path in self.folder.iterdir())


class Entered:
    def __init__(self, run: Run, options: dict[str, Any]) -> None:
        run.begun.append(options)

        self.run = run
        self.kineto_results: Results | None = None

    def __enter__(self) -> None:
        return None

    def __exit__(self, *_: object) -> None:
        self.kineto_results = Results(self.run)
