"""What a GPU is and stays, asked once: its highest clock alone takes the driver a millisecond."""

from dataclasses import dataclass
from typing import Any

from tui.sources.nvml_answer import answer


@dataclass(frozen=True, slots=True)
class Nameplate:
    """Of one device."""

    uuid: str
    name: str
    max_sm_clock_mhz: int | None
    """None where the device does not tell."""


def nameplate_of(nvml: Any, device: Any) -> Nameplate:
    """Ask a device who it is."""
    return Nameplate(
        uuid=text_of(nvml.nvmlDeviceGetUUID(device)),
        name=text_of(nvml.nvmlDeviceGetName(device)),
        max_sm_clock_mhz=answer(nvml, nvml.nvmlDeviceGetMaxClockInfo, device, nvml.NVML_CLOCK_SM),
    )


def text_of(value: str | bytes) -> str:
    """Older libraries tell bytes."""
    return value.decode() if isinstance(value, bytes) else value
