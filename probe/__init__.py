"""The probe: `import probe; probe.install()` at the top of a training script, and nothing else.

It reports to a monitor (`gpuwatch attach PID`) where the steps of this process spend their time. It
never raises into the loop, never waits for anybody, and is a no-op with `GPUWATCH=0`.
"""

import sys
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from .api import install, log, phase, step, uninstall, units, wrap

__all__ = ["install", "log", "phase", "step", "uninstall", "units", "wrap"]

if __name__ == "probe":
    # The alias: one probe in a process, by whichever name, even where `gpuwatch` is the user's.
    import os
    from importlib.machinery import SourceFileLoader
    from types import ModuleType

    home = os.path.join(os.path.dirname(os.path.dirname(os.path.abspath(__file__))), "gpuwatch")
    names = ModuleType("gpuwatch_putting_in")
    file = os.path.join(home, "probe", "boot", "putting_in.py")
    SourceFileLoader(names.__name__, file).exec_module(names)
    sys.modules["probe"] = names.import_ours("probe", home)


def __getattr__(name: str) -> Any:
    """The public functions, loaded when the first of them is used: a monitor that imports
    `wire` needs none of what a training process does."""
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from . import api

    globals()[name] = value = getattr(api, name)
    return value
