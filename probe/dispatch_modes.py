"""PyTorch's dispatch modes, of the thread that asks: where one of ours may go on and off."""

import sys
from collections.abc import Callable, Sequence
from typing import Any, Final

from .all_objects import all_of
from .switched import Switched

NO_TASK: Final = -1
OTHER_GRADIENTS: Final = ("CumprodBackward", "ProdBackward", "MaskedFillBackward1")
"""Nodes whose gradient PyTorch computes in another way while any mode is on (it asks
`isTensorSubclassLike`): with zeros in it, cumprod's took 1.1 s of a step of 58 ms on an H200, and
the others' differ in their last bits. Of the operators in PyTorch's own list for tests no other's
first gradient does."""
OTHERS: Final = frozenset({"cumprod", "cumprod_", "prod", "masked_fill", "masked_fill_"})
"""The operators that make them."""
REENTRANT: Final = "CheckpointFunctionBackward"
"""The older kind of checkpoint, whose graph is made within the backward."""
MOST_NODES: Final = 100_000
"""Of a graph that is looked through, 1 us each."""
ANOTHER: Final = "a gradient is computed in another way while a mode is on"
OURS: Final = "_gpuwatch_on"
"""An attribute of a mode of ours."""


def innermost_mode() -> Any:
    """None without any."""
    torch: Any = sys.modules["torch"]
    count = torch._C._len_torch_dispatch_stack()
    return torch._C._get_dispatch_stack_at(count - 1) if count else None


def operator_name(func: Any) -> str:
    """ "mm" of a dispatched function, whichever overload; its text of what is none."""
    return str(getattr(getattr(func, "_overloadpacket", None), "__name__", func))


def is_in_backward() -> bool:
    """The thread goes through a graph, and will be given back the modes that it had before: one
    that goes off in there is on again then, and one that goes on is lost. True where that cannot be
    told."""
    task: Any = getattr(sys.modules["torch"]._C, "_current_graph_task_id", None)
    return task is None or bool(task() != NO_TASK)


def is_captured() -> bool:
    """A CUDA graph is made of what is launched now."""
    cuda: Any = sys.modules.get("torch.cuda")
    return bool(cuda is not None and cuda.is_initialized() and cuda.is_current_stream_capturing())


def compiles() -> bool:
    """Whether the program compiles anything, or would at its first call: below a dispatch mode
    dynamo leaves a function alone, and from then on for good. `torch._dynamo.reset()` clears what
    is asked here."""
    dynamo: Any = sys.modules.get("torch._dynamo.utils")
    if dynamo is not None and dynamo.counters["stats"].get("unique_graphs"):
        return True
    frames: Any = sys.modules.get("torch._dynamo.eval_frame")
    return any(one is not None for one in getattr(frames, "cached_backends", {}).values())


def holds_compiled() -> bool:
    """Whether there is anything that was to be compiled, but for what `gc.freeze()` hides."""
    frames: Any = sys.modules.get("torch._dynamo.eval_frame")
    kind: Any = getattr(frames, "OptimizeContext", None)
    return kind is not None and bool(all_of((kind,)))


def before_gradients(roots: Any) -> None:
    """A backward from these tensors is about to begin: a mode of ours that would change its
    gradients goes off. Not within a backward, where none can."""
    mode = innermost_mode()
    on = getattr(mode, OURS, None)
    if isinstance(on, ModeOn) and not is_in_backward():
        tensors = roots if isinstance(roots, (list, tuple)) else (roots,)
        if _changes_gradients(tensors, mode.calls_others):
            mode.why_not = ANOTHER
            on.cut()


def _changes_gradients(roots: Sequence[Any], calls_others: bool) -> bool:
    """`calls_others`: one of `OTHERS` was called, maybe within a checkpoint that hides its
    graph."""
    waiting = [node for one in roots if (node := getattr(one, "grad_fn", None)) is not None]
    met = set(waiting)
    while waiting:
        node = waiting.pop()
        name, below = node.name(), [each for each, _ in node.next_functions]
        if name.startswith(OTHER_GRADIENTS) and below[-1:] != [None]:
            return True
        if (calls_others and name == REENTRANT) or len(met) > MOST_NODES:
            return True
        new = set(below) - met - {None}
        met |= new
        waiting += new
    return False


class ModeOn:
    """A mode of ours that is on, from now, on this thread."""

    def __init__(self, mode: Any, cut: Callable[[], object], until_ns: int) -> None:
        """`cut` takes it off where the loop goes no further, or a gradient would be another;
        `until_ns` (perf_counter_ns) is when it has to be off at the latest. The mode has
        `calls_others` and `why_not`."""
        setattr(mode, OURS, self)
        self.mode = mode
        self.cut = cut
        self.until_ns = until_ns
        self._switched = Switched(cut, until_ns, self._leave_in_child)
        mode.__enter__()

    @property
    def is_mine(self) -> bool:
        """As of `Switched`."""
        return self._switched.is_mine

    @property
    def is_innermost(self) -> bool:
        """Else a mode of the user's lies on it, or an operator is taken right now, for which it is
        taken away and put back."""
        return innermost_mode() is self.mode

    @property
    def can_go(self) -> bool:
        """It is the innermost, and the thread in no backward, behind which it would be on again."""
        return self.is_innermost and not is_in_backward()

    def off(self) -> None:
        """Take it off, where it can go."""
        self.mode.__exit__(None, None, None)
        self.lost()

    def lost(self) -> None:
        """Another has taken it off."""
        self._switched.done()

    def _leave_in_child(self) -> None:
        """A loader's worker would run below the mode for good."""
        if self.is_innermost:
            self.mode.__exit__(None, None, None)
