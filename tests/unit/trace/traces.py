"""Traces as kineto writes them, of steps whose truth is known. All times in us of one clock."""

import json
from typing import Any, Final

from gpuwatch.probe.wire import marks
from gpuwatch.tui.trace.profile import Frame, Recorded, Window

BASE_NS: Final = 1_790_000_000_000_000_000
"""Unix time at which the trace's clock begins…"""
PERF_NS: Final = 5_000_000_000
"""…and the host's clock at that moment."""
LAUNCH_US: Final = 5.0


class Steps:
    """A host and a device: what the host does takes its time, what it launches is queued."""

    def __init__(self) -> None:
        self.events: list[dict[str, Any]] = []
        self.now_us = 0.0
        self.free_us = 0.0
        """When the device has done what is queued."""
        self.ends_us: list[float] = []
        self.marks: list[tuple[float, int]] = []
        self.looks: list[tuple[float, int]] = []
        self.places: list[tuple[Frame, ...]] = []
        self._correlation = 0

    def python(self, us: float) -> None:
        """The host computes."""
        self.now_us += us

    def fetch(self, us: float) -> None:
        """It waits for a batch."""
        self.marks.append((self.now_us, marks.FETCH_ENTER))
        self.now_us += us
        self.marks.append((self.now_us, marks.FETCH_LEAVE))

    def operator(self, us: float, name: str) -> None:
        """An operator of PyTorch's on the host."""
        self._event("cpu_op", name, self.now_us, us, {})
        self.now_us += us

    def launch(self, us: float, name: str = "gemm_bf16", call: str = "cudaLaunchKernel") -> None:
        """A kernel that takes so long on the device."""
        start_us = max(self.free_us, self.now_us + LAUNCH_US)
        self._asked(call, LAUNCH_US)
        self._worked("kernel", name, start_us, us, {})

    def upload(self, us: float, pageable: bool, size: int = 1_000_000) -> None:
        """A copy to the device. From pageable memory the host waits for it."""
        start_us = max(self.free_us, self.now_us + LAUNCH_US)
        kind = "Pageable" if pageable else "Pinned"
        held = start_us + us - self.now_us if pageable else LAUNCH_US
        self._asked("cudaMemcpyAsync", held)
        name = f"Memcpy HtoD ({kind} -> Device)"
        self._worked("gpu_memcpy", name, start_us, us, {"bytes": size})

    def synchronize(self, name: str = "cudaStreamSynchronize") -> None:
        """The host waits until all that is queued is done."""
        self._asked(name, max(1.0, self.free_us - self.now_us), correlated=False)

    def look(self, file: str, line: int, at_us: float) -> None:
        """The training thread was seen there."""
        self.places.append((("step", file, line),))
        self.looks.append((at_us, len(self.places) - 1))

    def collective(self, name: str, begin_us: float, end_us: float) -> None:
        """A kernel of NCCL on a queue of its own, for which all that comes later waits."""
        self._asked("cudaLaunchKernelExC", LAUNCH_US)
        self._worked("kernel", name, begin_us, end_us - begin_us, {}, stream=20)

    def end(self) -> None:
        """A step ends on the host."""
        self.ends_us.append(self.now_us)

    def window(self, operators: "Steps | None" = None) -> Window:
        """All of it, as the probe hands it on."""
        if operators is not None:
            looked = operators.window()
            named = operators.recorded()
            return Window(self.recorded(), named, looked.looks, looked.places)
        return Window(
            self.recorded(),
            None,
            tuple((perf_ns(at), index) for at, index in self.looks),
            tuple(self.places),
        )

    def recorded(self) -> Recorded:
        """The recording alone."""
        trace = {
            "baseTimeNanoseconds": BASE_NS,
            "deviceProperties": [{"id": 0, "name": "NVIDIA H200"}],
            "traceEvents": self.events,
        }
        return Recorded(
            json.dumps(trace).encode(),
            tuple(map(perf_ns, self.ends_us)),
            tuple((perf_ns(at), kind) for at, kind in self.marks),
            (PERF_NS, BASE_NS),
        )

    def _asked(self, name: str, us: float, correlated: bool = True) -> None:
        self._correlation += 1
        args = {"correlation": self._correlation} if correlated else {}
        self._event("cuda_runtime", name, self.now_us, us, args)
        self.now_us += us

    def _worked(
        self, cat: str, name: str, start_us: float, us: float, args: Any, stream: int = 7
    ) -> None:
        more = {"correlation": self._correlation, "stream": stream, "device": 0}
        self._event(cat, name, start_us, us, {**args, **more})
        self.free_us = start_us + us

    def _event(self, cat: str, name: str, ts: float, dur: float, args: Any) -> None:
        self.events.append(
            {"ph": "X", "cat": cat, "name": name, "ts": ts, "dur": dur, "tid": 1, "args": args}
        )


def perf_ns(us: float) -> int:
    """On the host's clock."""
    return PERF_NS + round(us * 1_000)
