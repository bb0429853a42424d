"""Run something once a module has been imported: now if it is there, else when the user does it.

The probe never imports torch by itself, and `install()` may stand above `import torch`.
"""

import sys
from collections.abc import Callable, Collection, Sequence
from importlib.machinery import ModuleSpec
from threading import get_ident
from time import sleep
from types import CodeType, FrameType, ModuleType
from typing import Any, Final

TRIES: Final = 500
PAUSE_S: Final = 0.001
"""Between them: a thread is in what it walks through for microseconds."""


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

    def withdraw(self, tries: int = TRIES) -> None:
        """Wait for nothing any more. Where other threads import without a pause the entry stays in
        `sys.meta_path`, and finds nothing: who walks the list would miss the finder behind it."""
        self._waiting.clear()
        if self in sys.meta_path:
            when_unused(_import_codes(), lambda: sys.meta_path.remove(self), tries)

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
                self.withdraw(tries=1)  # nobody waits for us within an import

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


def when_unused(
    codes: Collection[CodeType], change: Callable[[], None], tries: int = TRIES
) -> bool:
    """Change what these functions go through, item by item, at a moment when no thread is in one of
    them: `attach --inject` comes and goes on a thread of its own. False where there was no such
    moment, or this very thread is in one, and nothing is changed."""
    for left in range(tries, 0, -1):
        users = _threads_in(codes)
        if not users:
            change()
            return True
        if get_ident() in users or left == 1:
            return False
        sleep(PAUSE_S)
    return False


def _threads_in(codes: Collection[CodeType]) -> list[int]:
    found = []
    for ident, top in sys._current_frames().items():
        frame: FrameType | None = top
        while frame is not None and frame.f_code not in codes:
            frame = frame.f_back
        if frame is not None:
            found.append(ident)
    return found


def _import_codes() -> set[CodeType]:
    """What walks `sys.meta_path` in every import."""
    walks = getattr(sys.modules.get("_frozen_importlib"), "_find_spec", None)
    code = getattr(walks, "__code__", None)
    return set() if code is None else {code}


def _is_complete(module: ModuleType | None) -> bool:
    spec = getattr(module, "__spec__", None)
    return module is not None and not getattr(spec, "_initializing", False)
