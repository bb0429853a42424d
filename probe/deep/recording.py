"""One recording by kineto: begun, ended and written on the training thread."""

import os
import sys
from collections.abc import Callable
from threading import get_ident
from typing import Any

from .. import clock
from ..switched import Switched
from .looks import Looks

LEFT = "the loop went no further"
OVER = "a sample's time is over"
OTHERS = "a profiler of the program's own began"


class Recording:
    """One recording by kineto, begun on the training thread."""

    def __init__(
        self,
        path: str,
        on_device: bool,
        operators: bool,
        looks: Looks | None,
        most_ns: int,
        cut: Callable[[str], None],
        shapes: bool = True,
        is_sample: bool = False,
    ) -> None:
        """`cut` is called where it was ended before its time, with the reason. A sample's file is
        written then as well."""
        self.path = path
        self._cut = cut
        self._is_sample = is_sample
        self.has_operators = operators
        self.ends_ns: list[int] = []
        """Of steps: its own beginning is the first."""
        self.issued: list[dict[str, int]] = []
        """By process group, how many collectives it had issued at each of these ends."""
        self.marks: list[tuple[int, int]] = []
        """(perf_counter_ns, kind) of all marks in it."""
        self.pause_ns = 0
        """What beginning and ending took on the training thread."""
        self.looks = looks
        self.bytes = 0
        self.switched_off_ns = 0
        """When it recorded no more."""
        began_ns = clock.now_ns()
        profiler: Any = sys.modules["torch.autograd.profiler"]
        self._on_device = on_device
        self._profile = profiler.profile(
            use_device="cuda" if on_device else None,
            use_cpu=operators,
            use_kineto=True,
            record_shapes=operators and shapes,
            experimental_config=_trace_only(),
        )
        self.switched = Switched(self._leave, began_ns + most_ns, self._leave_in_child)
        self._profile.__enter__()
        self._standing_back = _stand_back(self._give_way)
        if looks is not None:
            looks.start()
        self.anchor = _anchor()
        self.began_ns = clock.now_ns()
        self.pause_ns += self.began_ns - began_ns
        self.end_step(self.began_ns)

    def end_step(self, now_ns: int) -> None:
        """A step has ended."""
        self.ends_ns.append(now_ns)
        self.issued.append(collectives_issued())

    def stop(self) -> None:
        """End it and write the file."""
        began_ns = clock.now_ns()
        if self.looks is not None:
            self.looks.stop()
        results = self._disable()
        results.save(self.path)
        os.chmod(self.path, 0o600)
        self.bytes = os.stat(self.path).st_size
        self.pause_ns += clock.now_ns() - began_ns

    def abandon(self) -> None:
        """End it for nothing."""
        if self.looks is not None:
            self.looks.stop()
        if self._profile is not None:
            self._disable()

    def described(self) -> dict[str, Any]:
        """What the monitor needs to read the file: a part of the answer."""
        return {
            "file": os.path.basename(self.path),
            "bytes": self.bytes,
            "ends_ns": self.ends_ns,
            "issued": self.issued,
            "marks": self.marks,
            "anchor": self.anchor,
            "pause_ns": self.pause_ns,
        }

    def _leave(self) -> None:
        if self._profile is None:
            return  # the thread that asked for this one is ending it just now
        if self._is_sample and clock.now_ns() > self.switched.until_ns:
            self.stop()
            self._cut(OVER)
        else:
            self.abandon()
            self._cut(LEFT)

    def _give_way(self) -> bool:
        """Whether it was on, on this thread. PyTorch would put the program's own profiler over
        ours, and crash as the second of them ends."""
        if self._profile is None or self.switched.ident != get_ident():
            return False
        self.abandon()
        self._cut(OTHERS)
        return True

    def _leave_in_child(self) -> None:
        """A fork's child has no CUPTI: with a device only the callbacks of operators go."""
        if self._on_device:
            sys.modules["torch._C"]._autograd._clear_callbacks()
        else:
            self._disable()

    def _disable(self) -> Any:
        """As `__exit__` does, which in older versions makes Python's objects of all events."""
        profiler: Any = sys.modules["torch.autograd.profiler"]
        self.switched_off_ns = clock.now_ns()
        self._standing_back()
        profile, self._profile = self._profile, None
        disable = getattr(profiler, "_disable_profiler", None)
        if disable is None:
            profile.__exit__(None, None, None)
            self.switched.done()
            return profile.kineto_results
        if self._on_device:
            sys.modules["torch.cuda"].synchronize()
        results = disable()
        self.switched.done()
        if (stopped := getattr(profiler, "_run_on_profiler_stop", None)) is not None:
            stopped()
        return results


def collectives_issued() -> dict[str, int]:
    """By the name of each process group that this rank is in: a number that its backend keeps,
    which reads no event of the device. Empty without a group, and where a backend keeps none."""
    distributed: Any = sys.modules.get("torch.distributed.distributed_c10d")
    world = getattr(distributed, "_world", None)
    found: dict[str, int] = {}
    if world is None:
        return found
    for group, name in list(world.pg_names.items()):
        try:
            found[str(name)] = int(group._get_sequence_number_for_group())
        except (AttributeError, RuntimeError):
            continue
    return found


def operators_in(path: str) -> int:
    """How many a recording's file has."""
    with open(path, "rb") as file:
        return sum(line.count(b'"cat": "cpu_op"') for line in file)


def _stand_back(give_way: Callable[[], bool]) -> Callable[[], None]:
    """Have ours end as the program's own profiler begins. Returns what takes that away again."""
    profiler: Any = sys.modules["torch.autograd.profiler"]
    prepare = getattr(profiler, "_prepare_profiler", None)
    enable = getattr(profiler, "_enable_profiler", None)
    if prepare is None or enable is None:
        return lambda: None

    def prepares(*args: Any, **kwargs: Any) -> Any:
        give_way()
        return prepare(*args, **kwargs)

    def enables(*args: Any, **kwargs: Any) -> Any:
        if give_way():
            prepare(*args, **kwargs)  # ours has taken the place of what was prepared
        return enable(*args, **kwargs)

    profiler._prepare_profiler, profiler._enable_profiler = prepares, enables

    def away() -> None:
        if profiler._prepare_profiler is prepares:
            profiler._prepare_profiler = prepare
        if profiler._enable_profiler is enables:
            profiler._enable_profiler = enable

    return away


def _trace_only() -> Any:
    """No Python objects of events, where this torch (2.13) can leave them out: 32 ms and not 83 ms
    to stop. None: its default."""
    torch: Any = sys.modules["torch"]
    try:
        return torch._C._profiler._ExperimentalConfig(trace_only=True)
    except (AttributeError, TypeError):
        return None


def _anchor() -> tuple[int, int]:
    """The same moment as perf_counter_ns and as time_ns: of several readings the closest."""
    best: tuple[int, int, int] | None = None
    for _ in range(5):
        before_ns = clock.now_ns()
        unix_ns = clock.unix_ns()
        after_ns = clock.now_ns()
        if best is None or after_ns - before_ns < best[0]:
            best = after_ns - before_ns, (before_ns + after_ns) // 2, unix_ns
    assert best is not None
    return best[1], best[2]
