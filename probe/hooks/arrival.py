"""Run something once a module has been imported: now if it is there, else when the user does it.

The probe never imports torch by itself, and `install()` may stand above `import torch`.
"""

import sys
from collections.abc import Callable, Sequence
from importlib.machinery import ModuleSpec
from types import ModuleType
from typing import Any


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
        """What the finders behind this one find, the loader's `exec_module` followed by what waits;
        None for all others."""
        if name not in self._waiting:
            return None
        spec = self._found_behind(name, path, target)
        loader: Any = None if spec is None else spec.loader
        # A class stands for a loader that all modules of its kind share.
        if spec is None or isinstance(loader, type) or not hasattr(loader, "exec_module"):
            return spec
        execute = loader.exec_module
        shadowed = getattr(loader, "__dict__", {}).get("exec_module")

        def exec_module(module: ModuleType) -> None:
            # An instance attribute shadows the method once and is gone afterwards, so the module
            # keeps the loader it would have had (inspect and importlib.resources look at it).
            # Another of our kind may have shadowed it before: another copy of gpuwatch, say.
            if shadowed is None:
                del loader.exec_module
            else:
                loader.exec_module = shadowed
            execute(module)
            # It is complete, also for another finder that one of these asks.
            spec._initializing = False  # type: ignore[attr-defined]
            for then in self._waiting.pop(name, []):
                then()
            if not self._waiting:
                self.withdraw()

        try:
            loader.exec_module = exec_module
        except AttributeError:
            pass  # it takes no attributes: what waits goes on to wait
        return spec

    def _found_behind(
        self, name: str, path: Sequence[str] | None, target: ModuleType | None
    ) -> ModuleSpec | None:
        """By the finders that would have been asked if this one were not there: one of the user's
        own may lie among them."""
        finders = list(sys.meta_path)
        behind = finders.index(self) + 1 if self in finders else 0
        for finder in finders[behind:]:
            find_spec = getattr(finder, "find_spec", None)
            spec: ModuleSpec | None = None if find_spec is None else find_spec(name, path, target)
            if spec is not None:
                return spec
        return None


def _is_complete(module: ModuleType | None) -> bool:
    spec = getattr(module, "__spec__", None)
    return module is not None and not getattr(spec, "_initializing", False)
