"""Timing events of an accelerator, behind the few calls that the stamper needs.

CUDA (and ROCm, by the same names) goes through torch's C functions: with a cached stream an event
is recorded in 1.8 us, by the public call in 7.5 us (beside an H200). Any other accelerator goes
through `torch.Event` and `torch.accelerator`.
"""

import sys
from typing import Any, Protocol

Event = Any
Stream = Any


class Events(Protocol):
    """What the training thread may ask of its accelerator. Nothing here ever waits for it."""

    def device(self) -> int:
        """Index of the current device."""

    def handle(self, device: int) -> int:
        """Which stream is current there: a number; 0 is one that can never be captured."""

    def stream(self, device: int) -> Stream:
        """The current stream itself."""

    def capturing(self) -> bool:
        """Whether the current stream is being captured into a graph."""

    def side_stream(self, device: int) -> Stream:
        """A stream that no work of the user's is on."""

    def make(self) -> Event:
        """A timing event, created on the device when it is first recorded."""

    def record(self, event: Event, stream: Stream) -> None:
        """Put the event behind what is on the stream."""

    def query(self, event: Event) -> bool:
        """Whether the device has passed the event."""

    def elapsed_ms(self, earlier: Event, later: Event) -> float:
        """Between two events that were passed, in ms; the device answers in float32."""

    def allocator(self, device: int) -> dict[str, Any] | None:
        """The caching allocator's counters, nested; None where there are none."""

    def fraction(self, device: int) -> float | None:
        """Part of the device's memory that it may take; None where that is not known."""


class CudaEvents:
    """CUDA and ROCm. Private names that a torch lacks are replaced by the public ones."""

    def __init__(self, torch: Any) -> None:
        cuda, c = torch.cuda, torch._C
        base = getattr(c, "_CudaEventBase", None) or cuda.Event
        self.device = getattr(c, "_cuda_getDevice", None) or cuda.current_device
        self.handle = getattr(c, "_cuda_getCurrentRawStream", None) or _handle_of(cuda)
        self.stream = cuda.current_stream
        self.capturing = (
            getattr(c, "_cuda_isCurrentStreamCapturing", None) or cuda.is_current_stream_capturing
        )
        self.make = lambda: base(enable_timing=True)
        self.record = base.record
        self.query = base.query
        self.elapsed_ms = base.elapsed_time
        self.allocator = getattr(c, "_cuda_memoryStats", None) or (lambda device: None)
        self.fraction = getattr(c, "_cuda_getMemoryFraction", None) or (lambda device: None)
        self._stream_type = cuda.Stream

    def side_stream(self, device: int) -> Stream:
        """Of high priority: those come from another pool than the streams of most programs."""
        return self._stream_type(device=device, priority=-1)


class AcceleratorEvents:
    """Any accelerator that torch knows, through the generic interface."""

    def __init__(self, torch: Any, kind: str) -> None:
        accelerator = torch.accelerator
        self._kind = kind
        self._torch = torch
        self.device = getattr(accelerator, "current_device_index", None) or (
            accelerator.current_device_idx
        )
        self.stream = accelerator.current_stream
        self.make = lambda: torch.Event(device=kind, enable_timing=True)
        self.record = torch.Event.record
        self.query = torch.Event.query
        self.elapsed_ms = torch.Event.elapsed_time

    def handle(self, device: int) -> int:
        """Never 0: whether a stream may be captured is not known here."""
        return int(self.stream(device).stream_id) + 1

    def capturing(self) -> bool:
        """False where the accelerator has no graphs."""
        asked = getattr(self.stream(self.device()), "is_capturing", None)
        return bool(asked()) if asked is not None else False

    def side_stream(self, device: int) -> Stream:
        """A new stream of that device."""
        return self._torch.Stream(device=f"{self._kind}:{device}")

    def allocator(self, device: int) -> dict[str, Any] | None:
        """Not read: the generic call is a flat dictionary that costs 0.1 ms."""
        return None

    def fraction(self, device: int) -> float | None:
        """Not known to the generic interface."""
        return None


def find_events() -> Events | None:
    """The events of the accelerator that the program has begun to use; None while it has not.

    Initialises nothing, and may be asked from any thread.
    """
    torch = sys.modules.get("torch")
    cuda = sys.modules.get("torch.cuda")
    if torch is None or cuda is None:
        return None
    if _begun(cuda):
        return CudaEvents(torch)
    for kind in ("xpu",):
        if _begun(sys.modules.get(f"torch.{kind}")) and hasattr(torch, "accelerator"):
            return AcceleratorEvents(torch, kind)
    return None


def _begun(module: Any) -> bool:
    asked = getattr(module, "is_initialized", None)
    return asked is not None and bool(asked())


def _handle_of(cuda: Any) -> Any:
    return lambda device: cuda.current_stream(device).cuda_stream
