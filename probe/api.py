"""The public API, and the one global there is: the installed probe."""

import os
import sys
import warnings
from collections.abc import Iterable
from contextlib import ContextDecorator
from threading import get_ident
from types import TracebackType
from typing import TYPE_CHECKING, Any, Final, TypeVar

from .circuit_breaker import encodable, is_users
from .first_number import numerics_of
from .installed import Installed
from .notes import number_of
from .recorder import Recorder
from .wire.marks import PHASE_ENTER, PHASE_LEAVE, STEP

if TYPE_CHECKING:
    from .wrapped import Wrapped

LONGEST_NAME: Final = 200
"""Characters of a phase's name."""

T = TypeVar("T")

_installed: Installed | None = None
_calls: list[object] = []
"""Of `install()`, without those that were undone: the first of them installs."""


def install() -> None:
    """Watch this process. Twice is once; `GPUWATCH=0` in the environment makes it a no-op.

    May stand above `import torch`: the hooks are put in when torch arrives.
    """
    global _installed
    if os.environ.get("GPUWATCH") == "0":
        return
    _watch_forks()
    mine = object()
    _calls.append(mine)
    if _calls[0] is mine:
        try:
            _installed = Installed()
        except BaseException:
            _calls.remove(mine)  # it was interrupted: the next call installs
            raise


def uninstall() -> tuple[str, ...]:
    """Undo `install()`, once for each time it was called: the last one puts the very objects back.

    Returns the names of what somebody has patched over since, which were left as they are (our part
    of them then does nothing).
    """
    global _installed
    if _installed is None:
        return ()
    _calls.pop()
    if _calls:
        return ()
    installed, _installed = _installed, None
    return installed.uninstall()


def wrap(iterable: Iterable[T]) -> "Wrapped[T]":
    """Time the fetches of an iterable that is no DataLoader: DALI, Ray Data, a generator.

    Each `next` on it counts as the step's wait for data. Keeps length and attributes.
    """
    from .wrapped import Wrapped

    return Wrapped(iterable, _recorder)


def step() -> None:
    """A step of training ends here. Only for loops whose steps cannot be seen from the hooks: once
    called, nothing else ends a step."""
    recorder = _recorder()
    if recorder is not None and recorder.on:
        recorder.mark(STEP)


def log(**figures: Any) -> None:
    """Note numbers of the open step, `probe.log(loss=loss)`: Python's or tensors of one element. A
    tensor on a device is copied when that comes to it; nothing waits."""
    recorder = _recorder()
    if recorder is None or not recorder.on or get_ident() != recorder.owner:
        return
    try:
        numerics = numerics_of(recorder)
        for name, figure in figures.items():
            numerics.log(encodable(name[:LONGEST_NAME]), figure)
    except Exception as error:
        recorder.trip(error)


def units(**counts: float) -> None:
    """How many tokens or samples this call stands for, `probe.units(tokens=batch.numel())`; they
    are added up. `flops` are the run's own count for a step, which is then not counted. Numbers of
    Python's or NumPy's, or tensors of one element on the host; anything else is passed over."""
    recorder = _recorder()
    if recorder is None or not recorder.on or get_ident() != recorder.owner:
        return
    try:
        now_ns = recorder.now_ns()
        for name, count in counts.items():
            number = number_of(count)
            if number is not None:
                recorder.notes.count(now_ns, encodable(name[:LONGEST_NAME]), number)
    except Exception as error:
        recorder.trip(error)


class phase(ContextDecorator):
    """Name a part of the step: `with probe.phase("augment"): …`, or as a decorator.

    Its time is taken out of the phase it lies in. Around a fetch, a backward or an optimizer step
    it names nothing, since those have names; nor does it within what torch.compile compiles.
    "evaluation", "validation" and "checkpoint" are known.
    """

    def __init__(self, name: str) -> None:
        self._name = encodable(str(name)[:LONGEST_NAME])

    def _recreate_cm(self) -> "phase":
        """In each call of a function that it decorates: dynamo enters none that was made before."""
        return phase(self._name)

    def __enter__(self) -> "phase":
        recorder = _recorder()
        if recorder is not None and recorder.on:
            recorder.mark(PHASE_ENTER, self._name, sight=recorder.name)
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        recorder = _recorder()
        if recorder is not None and recorder.on:
            recorder.mark(PHASE_LEAVE, self._name, sight=recorder.name)


def _recorder() -> Recorder | None:
    """None also where dynamo traces the caller: a mark would break its graph, and in a `with` leave
    the whole function to Python. What is compiled has no marks."""
    installed = _installed  # once: another thread may uninstall it
    if installed is None or installed.recorder.is_traced():
        return None
    return installed.recorder


def _watch_forks() -> None:
    """Once in a process: a fork handler cannot be taken back, so it asks what is installed."""
    global _forks_watched
    if not _forks_watched:
        os.register_at_fork(before=_about_to_fork, after_in_child=_forked)
        _forks_watched = True


_forks_watched = False


class _Once:
    """Matches the warning once, as the pattern of a filter, and takes the filter away again."""

    filters: list[Any] = []  # noqa: RUF012
    """Where it was put."""

    def match(self, text: str) -> bool:
        if not (text.startswith("This process (pid=") and ") is multi-threaded" in text):
            return False
        self.withdraw()
        return True

    def withdraw(self) -> None:
        self.filters[:] = [one for one in self.filters if one[1] is not self]


_once = _Once()


def _about_to_fork() -> None:
    """Python 3.12 and newer warn of a fork beside other threads, after all our handlers. Where ours
    is the only other, there would be no warning without us, and there is none."""
    try:
        if _installed is not None and sys.version_info >= (3, 12) and _is_only_other_thread():
            _once.withdraw()
            _once.filters = warnings.filters  # type: ignore[assignment]
            _once.filters.insert(0, ("ignore", _once, DeprecationWarning, None, 0))
    except Exception as error:
        if is_users(error):
            raise  # Python shows it: nothing that is raised before a fork ends it
        # Else only Python's own warning is shown.


def _is_only_other_thread() -> bool:
    tasks = os.listdir("/proc/self/task")
    if len(tasks) != 2:
        return False
    with open(f"/proc/self/task/{max(tasks, key=int)}/comm") as comm:
        return comm.read() == "gpuwatch\n"


def _forked() -> None:
    _once.withdraw()
    if _installed is not None:
        _installed.after_fork_in_child()
    else:
        _calls.clear()  # the thread that was installing it is not here
