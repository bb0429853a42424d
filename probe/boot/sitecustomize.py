"""Imported by `site` in every Python below `gpuwatch run`: arms it once it has imported torch.

A Python that never does (a resource tracker, a shell script's helper) is left with one entry in
`sys.meta_path`, and has imported nothing for it: `collections` alone would take as long as half of
its start. Whatever goes wrong is said on one line, and the program goes on.
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

    def find_spec(
        self, name: str, path: "Sequence[str] | None", target: "ModuleType | None" = None
    ) -> "ModuleSpec | None":
        """Leave the place to a finder that waits until torch is executed."""
        if name != "torch":
            return None
        try:
            sys.meta_path.remove(self)
            finder = _load("hooks", "arrival").ArrivalFinder()
            finder.when_imported("torch", _put_in)
            spec: ModuleSpec | None = finder.find_spec(name, path, target)
        except Exception as error:
            _say(f"{type(error).__name__}: {error}")
            return None
        return spec


def _put_in() -> None:
    try:
        why_not = _load("boot", "putting_in").put_in(_PACKAGE)
    except Exception as error:
        why_not = f"{type(error).__name__}: {error}"
    if why_not is not None:
        _say(why_not)


def _load(*path: str) -> "ModuleType":
    """A module of the probe by its file: none of our directories stays on `sys.path`."""
    from importlib.machinery import SourceFileLoader
    from types import ModuleType

    name = "gpuwatch_" + path[-1]
    module = ModuleType(name)
    SourceFileLoader(name, os.path.join(_PACKAGE, *path) + ".py").exec_module(module)
    return module


def _say(why_not: str) -> None:
    if sys.stderr is not None:
        try:
            sys.stderr.write(f"gpuwatch: no probe in process {os.getpid()}: {why_not}\n")
        except (OSError, ValueError):
            pass  # it is closed or its disk is full


sys.path[:] = [entry for entry in sys.path if entry != _HERE]
sys.path_importer_cache.pop(_HERE, None)
if sys.version_info >= (3, 10) and os.environ.get("GPUWATCH") != "0":
    sys.meta_path.insert(0, TorchFinder())
# The one that ours has hidden; where there is none, the ImportError that `site` would have met.
del sys.modules["sitecustomize"]
import sitecustomize  # type: ignore[import-not-found]  # noqa: E402, F401
