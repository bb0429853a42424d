"""Waits for torch in every Python below `gpuwatch run`, and puts the probe in when it comes.

`sitecustomize.py` loads it by its name, `gpuwatch_arming`, while its directory is on `sys.path`. A
Python that never imports torch (a resource tracker, a shell script's helper) is left with one entry
in `sys.meta_path`, and has imported nothing for it: `collections` alone would take as long as half
of its start. Whatever goes wrong is reported on one line, and the program goes on.
"""

import os
import sys

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence
    from importlib.machinery import ModuleSpec
    from types import ModuleType

_HERE = os.path.dirname(__file__)
_PACKAGE = os.path.dirname(_HERE)


class TorchFinder:
    """Finds nothing, until somebody looks for torch."""

    def __init__(self) -> None:
        self._failed = False

    def find_spec(
        self, name: str, path: "Sequence[str] | None", target: "ModuleType | None" = None
    ) -> "ModuleSpec | None":
        """Leave the place to a finder that waits until torch is executed."""
        if name != "torch" or self._failed:
            return None
        try:
            finder = _load("hooks", "arrival").ArrivalFinder()
            sys.meta_path[sys.meta_path.index(self)] = finder  # others may lie on either side
            finder.when_imported("torch", _put_in)
            spec: ModuleSpec | None = finder.find_spec(name, path, target)
        except Exception as error:
            if self not in sys.meta_path:
                raise  # of a finder of the user's own
            self._failed = True  # and stays: who walks the list now would miss the next one
            _report(f"{type(error).__name__}: {error}")
            return None
        return spec


def _put_in() -> None:
    try:
        why_not = _load("boot", "putting_in").put_in(_PACKAGE)
    except Exception as error:
        if _load("circuit_breaker").is_users(error):
            raise
        why_not = f"{type(error).__name__}: {error}"
    if why_not is not None:
        _report(why_not)


def _load(*path: str) -> "ModuleType":
    """A module of the probe by its file: none of our directories stays on `sys.path`."""
    from importlib.machinery import SourceFileLoader
    from types import ModuleType

    name = "gpuwatch_" + path[-1]
    module = ModuleType(name)
    SourceFileLoader(name, os.path.join(_PACKAGE, *path) + ".py").exec_module(module)
    return module


def _report(why_not: str) -> None:
    if sys.stderr is not None:
        try:
            sys.stderr.write(f"gpuwatch: no probe in process {os.getpid()}: {why_not}\n")
        except (OSError, ValueError):
            pass  # it is closed or its disk is full
