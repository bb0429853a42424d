"""A question to NVML that not every device supports."""

from typing import Any


def answer(nvml: Any, call: Any, *arguments: Any) -> Any:
    """What a device answers, or None where it does not support the question."""
    try:
        return call(*arguments)
    except nvml.NVMLError:
        return None
