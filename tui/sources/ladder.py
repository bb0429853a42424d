"""The best source of activity that a device has: GPM, NVML's samples, NVML's utilization."""

from typing import Any, Final

from tui.observations import Activity
from tui.sources.gpm import GpmReader
from tui.sources.utilization import SamplesReader, UtilizationReader

Reader = GpmReader | SamplesReader | UtilizationReader
NO_GPM: Final = (
    "needs Hopper or newer; NVML's utilization stands in, ~1 s average: blind to how much of it is "
    "at work, and to steps under ~2 s"
)
STALE: Final = "the device does not refresh its counters"


class Ladder:
    """One device. A rung that fails is left for good, and why is kept."""

    def __init__(self, nvml: Any, device: Any, index: int) -> None:
        self._nvml = nvml
        self._device = device
        self._index = index
        self._rungs: list[type[Reader]] = [GpmReader, SamplesReader, UtilizationReader]
        self._why = ""
        if not GpmReader.supported(nvml, device):
            self._rungs.pop(0)
            self._why = NO_GPM
        self._reader: Reader = self._rungs[0](nvml, device, index)

    @property
    def why(self) -> str:
        """Why there is no GPM; "" while there is."""
        stale = isinstance(self._reader, GpmReader) and self._reader.is_stale
        return STALE if stale else self._why

    @property
    def due_ns(self) -> int:
        """When to read next."""
        return self._reader.due_ns

    def read(self, now_ns: int) -> Activity | None:
        """What the device did since the last reading; None when nothing new is known."""
        while self._rungs:
            try:
                return self._reader.read(now_ns)
            except self._nvml.NVMLError as error:
                self._step_down(error)
        return None

    def close(self) -> None:
        """Let go of what the device's reader holds."""
        try:
            self._reader.close()
        except self._nvml.NVMLError:
            pass  # a device that has fallen off the bus takes its samples with it

    def _step_down(self, error: Exception) -> None:
        self.close()
        if self._rungs.pop(0) is GpmReader:
            self._why = f"the counters cannot be read ({error}); utilization stands in"
        if self._rungs:
            self._reader = self._rungs[0](self._nvml, self._device, self._index)
