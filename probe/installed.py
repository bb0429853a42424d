"""The one installed probe: hooks, arming, forks, and leaving without a trace."""

import atexit
import os
import sys
from collections.abc import Callable, Sequence
from importlib import import_module
from itertools import pairwise
from typing import Any, Final

from .circuit_breaker import CircuitBreaker, encodable
from .hooks import Detach, backward, checkpoint, clipping, dataloader, optimizer, workers
from .hooks.arrival import ArrivalFinder
from .publish import Armed
from .recorder import Recorder
from .wire import marks, page

HOOKS: Final[tuple[Any, ...]] = (
    dataloader, backward, optimizer, checkpoint, clipping, workers,
)  # fmt: skip
LATE_HOOKS: Final = {
    "tracing": "torch._dynamo.trace_rules",
    "compilation": "torch._dynamo.callback",
    "dispatched": "accelerate.data_loader",
    "parallel": "torch.nn.parallel.distributed",
}
"""Of `hooks`, those that are loaded when the module comes that they hook, by its import."""

LAB: Final = "GPUWATCH_LAB"
"""Set by `gpuwatch lab` alone."""

PROGRAMS: Final = frozenset(
    {"torchrun", "accelerate", "accelerate-launch", "deepspeed", "fabric", "lightning"}
)
"""Console scripts, by name."""
MODULES: Final = frozenset(
    {
        "torch.distributed.run",
        "torch.distributed.launch",
        "accelerate.commands.accelerate_cli",
        "accelerate.commands.launch",
        "deepspeed.launcher.launch",
        "deepspeed.launcher.runner",
        "lightning.fabric.cli",
        "torch._inductor.compile_worker",
    }
)
"""What `python -m` starts."""
VALUED: Final = frozenset({"-X", "-W"})
"""Python's options whose value is a word of its own."""
LONGEST_TYPE: Final = 100
SCRIPTS: Final = ("torch/_inductor/compile_worker/__main__.py", "deepspeed/launcher/launch.py")
"""Ends of the paths of what is started as a file."""


class Installed:
    """Hooks on torch, and what they feed. At most one lives in a process."""

    def __init__(self) -> None:
        self._breaker = CircuitBreaker(self._tripped)
        self.recorder = Recorder(self._arm, self._breaker.trip)
        self._armed: Armed | None = None
        self._detach: list[Detach] = []
        self._finalizer: Any = None
        self._finder = ArrivalFinder()
        try:
            self._begin()
        except BaseException:  # of the program's: an interrupt, a watchdog
            self.uninstall()
            raise

    def _begin(self) -> None:
        atexit.register(self._leave)
        # Before there is a hook: another thread may be training, and its backward arms as well.
        with self._breaker:
            if not (_is_being_spawned() or is_launcher(sys.orig_argv)):
                self.recorder.armed = self._arm(marks.BACKWARD_ENTER)
        for hook in HOOKS:
            self._finder.when_imported(hook.MODULE, self._attacher(hook.attach))
        if wanted := os.environ.get(LAB):
            with self._breaker:
                from .lab import attacher

                self._finder.when_imported("torch", attacher(self.recorder, wanted))
        for name, module in LATE_HOOKS.items():
            self._finder.when_imported(module, self._attacher(_late(name)))

    def uninstall(self) -> tuple[str, ...]:
        """Put everything back; returns what somebody has patched over and had to be left."""
        self.recorder.stop()
        self._finder.withdraw()
        left: tuple[str, ...] = ()
        for detach in self._detach:
            with self._breaker:
                left += detach()
        self._detach.clear()
        atexit.unregister(self._leave)
        if self._finalizer is not None:
            self._finalizer.cancel()
        self._end("uninstalled", page.STATE_UNINSTALLED)
        return left

    def after_fork_in_child(self) -> None:
        """No publisher here, and the page is the parent's: dormant until this child trains."""
        armed, self._armed = self._armed, None
        with self._breaker:
            _never_free(armed, *self.recorder.forget())
        if armed is not None:
            with self._breaker:
                armed.abandon()

    def _attacher(self, attach: Callable[[Recorder], Detach]) -> Callable[[], None]:
        def attach_now() -> None:
            with self._breaker:
                self._detach.append(attach(self.recorder))

        return attach_now

    def _arm(self, kind: int) -> bool:
        """Whether this process is one to watch; if so, give it a page and a publisher.

        A DataLoader worker never is. Other children become so with their first backward: a spawned
        rank, a notebook's forked launcher.
        """
        if _is_loader_worker():
            self.recorder.stop()
            return False
        if kind != marks.BACKWARD_ENTER:
            return False
        if self._armed is None:  # else an interrupt came behind it
            armed = Armed(self.recorder, self._breaker)
            armed.start()
            self._armed = armed
        self._leave_with_multiprocessing()
        return True

    def _leave_with_multiprocessing(self) -> None:
        """A process that multiprocessing has forked never comes to its exit handlers."""
        util = sys.modules.get("multiprocessing.util")
        if util is not None and sys.modules["multiprocessing.process"].parent_process() is not None:
            self._finalizer = util.Finalize(None, self._leave, exitpriority=0)

    def _tripped(self) -> None:
        self.recorder.stop()
        if self._armed is not None:
            self._armed.report_fault()

    def _leave(self) -> None:
        """At the interpreter's end; a fork that runs our exit handler has nothing to end."""
        self.recorder.stop()
        self._end(_why_it_ends(), page.STATE_ENDED)

    def _end(self, reason: str, state: int) -> None:
        armed, self._armed = self._armed, None
        if armed is not None and armed.pid == os.getpid():
            with self._breaker:
                armed.end(reason, state)


def _why_it_ends() -> str:
    """ "exiting", or "raised ValueError" where nobody caught one: Python keeps what it has shown. A
    prompt lives on after it."""
    error = getattr(sys, "last_value", None)
    if error is None or hasattr(sys, "ps1") or "IPython" in sys.modules:
        return "exiting"
    return page.RAISED + encodable(type(error).__name__[:LONGEST_TYPE])


def _never_free(*parents: object) -> None:
    """In a forked child, not even at its end: torch asks the device as pinned memory is freed, CUDA
    answers a forked child with an error, and that in a destructor ends the process."""
    ctypes: Any = sys.modules.get("ctypes")  # torch has imported it; none is imported by a child
    if ctypes is not None:
        for one in parents:
            ctypes.pythonapi.Py_IncRef(ctypes.py_object(one))


def _late(name: str) -> Callable[[Recorder], Detach]:
    def attach(recorder: Recorder) -> Detach:
        hook = import_module(f"{__package__}.hooks.{name}")
        detach: Detach = hook.attach(recorder)
        return detach

    return attach


def _is_being_spawned() -> bool:
    """Whether this is a spawned or forkserver child that re-imports its main module.

    At that moment it does not know yet whether it will be a DataLoader worker. Every process that
    has imported multiprocessing holds `__mp_main__`; in a spawned one the main module is called so.
    """
    multiprocessing = sys.modules.get("multiprocessing.process")
    if multiprocessing is None:
        return False
    inheriting = getattr(multiprocessing.current_process(), "_inheriting", False)
    main_module = sys.modules.get("__main__")
    return inheriting or getattr(main_module, "__name__", "") == "__mp_main__"


def _is_loader_worker() -> bool:
    """By torch's word. Where it says nothing by being a daemon, as many are that train."""
    worker = sys.modules.get("torch.utils.data._utils.worker")
    if worker is not None:
        return worker.get_worker_info() is not None
    multiprocessing = sys.modules.get("multiprocessing.process")
    if multiprocessing is None or "torch.utils.data" not in sys.modules:
        return False
    return bool(multiprocessing.current_process().daemon)


def is_launcher(command: Sequence[str]) -> bool:
    """Whether a process with this command line (`sys.orig_argv`) waits for others to train: it
    starts those who do, or compiles for them."""
    if any(flag.endswith("m") and name in MODULES for flag, name in pairwise(command)):
        return True
    words = (word for flag, word in pairwise(command) if flag not in VALUED)
    script = next((word for word in words if not word.startswith("-")), "")
    return os.path.basename(script) in PROGRAMS or script.endswith(SCRIPTS)
