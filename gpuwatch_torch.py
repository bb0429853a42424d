"""Where the command `gpuwatch` begins: by the distribution's name, which no folder of a user has.

A `gpuwatch.py` on PYTHONPATH would hide the package from a script that imports it by its name.
"""

import os
import signal
import sys
from importlib.machinery import SourceFileLoader
from types import ModuleType


def main() -> int:
    """Run the command; returns its exit status."""
    home = os.path.join(os.path.dirname(os.path.abspath(__file__)), "gpuwatch")
    names = ModuleType("gpuwatch_putting_in")
    file = os.path.join(home, "probe", "boot", "putting_in.py")
    try:
        SourceFileLoader(names.__name__, file).exec_module(names)
        status: int = names.import_ours("tui.cli.main", home).main()
    except KeyboardInterrupt:  # while it was imported: afterwards the command takes it
        return 128 + signal.SIGINT
    return status


if __name__ == "__main__":
    sys.exit(main())
