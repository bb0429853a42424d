"""The probe: `import probe; probe.install()` at the top of a training script, and nothing else.

It tells a monitor (`gpuwatch attach PID`) where the steps of this process spend their time. It
never raises into the loop, never waits for anybody, and is a no-op with `GPUWATCH=0`.
"""

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from probe.api import install, phase, step, uninstall, wrap

__all__ = ["install", "phase", "step", "uninstall", "wrap"]


def __getattr__(name: str) -> Any:
    """The public functions, loaded when the first of them is used: a monitor that imports
    `probe.wire` needs none of what a training process does."""
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from probe import api

    globals()[name] = value = getattr(api, name)
    return value
