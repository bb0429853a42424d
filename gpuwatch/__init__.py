"""gpuwatch: why is my PyTorch training slow, right now?

`import gpuwatch; gpuwatch.install()` is the same as `import probe; probe.install()`, and a file of
the user's that is called probe.py cannot stand in its way.
"""

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from .probe import install, log, phase, step, uninstall, units, wrap

__all__ = ["install", "log", "phase", "step", "uninstall", "units", "wrap"]


def __getattr__(name: str) -> Any:
    """The probe's public functions, loaded when the first of them is used."""
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from . import probe

    globals()[name] = value = getattr(probe, name)
    return value
