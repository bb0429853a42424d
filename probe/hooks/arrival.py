"""Run something once a module has been imported: now if it is there, else when the user does it.

The probe never imports torch by itself, and `install()` may stand above `import torch`.
"""

import sys
from collections.abc import Callable, Sequence
from importlib.machinery import ModuleSpec, PathFinder
from types import ModuleType


class ArrivalFinder:
    """A meta-path finder that finds nothing itself: it waits for some modules to be executed."""

    def __init__(self) -> None:
        self._waiting: dict[str, list[Callable[[], None]]] = {}

    def when_imported(self, module: str, then: Callable[[], None]) -> None:
        """Call `then` after `module` is executed, or at once if it has been."""
        if _is_complete(sys.modules.get(module)):
            then()
            return
        self._waiting.setdefault(module, []).append(then)
        if self not in sys.meta_path:
            sys.meta_path.insert(0, self)

    def withdraw(self) -> None:
        """Wait for nothing any more."""
        self._waiting.clear()
        if self in sys.meta_path:
            sys.meta_path.remove(self)

    def find_spec(
        self, name: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        """The real spec, its loader's `exec_module` followed by what waits; None for all others."""
        if name not in self._waiting:
            return None
        spec = PathFinder.find_spec(name, path, target)
        if spec is None or spec.loader is None:
            return None
        loader = spec.loader
        execute = loader.exec_module

        def exec_module(module: ModuleType) -> None:
            # An instance attribute shadows the method once and is gone afterwards, so the module
            # keeps the loader it would have had (inspect and importlib.resources look at it).
            del loader.exec_module
            execute(module)
            # It is complete, also for another finder that one of these asks.
            spec._initializing = False  # type: ignore[attr-defined]
            for then in self._waiting.pop(name, []):
                then()
            if not self._waiting:
                self.withdraw()

        loader.exec_module = exec_module  # type: ignore[method-assign]
        return spec


def _is_complete(module: ModuleType | None) -> bool:
    spec = getattr(module, "__spec__", None)
    return module is not None and not getattr(spec, "_initializing", False)
