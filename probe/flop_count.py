"""Counts the FLOPs of one step, on request: a dispatch mode on the training thread, from the end of
one optimizer's step to the end of the next.

Dense products and convolutions by torch's own formulas (`torch.utils.flop_counter`), attention as
four products' worth backward for two forward: what the model needs, as MFU has it (PaLM, appendix
B), without the scores that a fused kernel works out again. A causal mask counts in full, an
activation that is checkpointed twice; all else counts nothing. The step takes some times as long as
others. Nothing is decomposed, so the same kernels run and the losses stay; where a gradient would
be computed in another way below a mode, nothing is counted.
"""

import sys
from typing import Any, Final

from .circuit_breaker import is_users
from .dispatch_modes import (
    OTHERS,
    ModeOn,
    compiles,
    holds_compiled,
    innermost_mode,
    is_captured,
    is_in_backward,
    operator_name,
)
from .recorder import Recorder
from .wire.marks import BACKWARD_LEAVE, FETCH_ENTER, OPTIMIZER_LEAVE, STEP

ATTENTION: Final = "_scaled_dot_product_"
"""How the fused kernels begin, forward and backward: flash, efficient, cuDNN, the CPU's."""
MOST_NS: Final = 60_000_000_000
"""Of the step that is counted: a loop may have ended meanwhile."""
GIVEN: Final = "the program gives them, probe.units(flops=...)"
PATIENCE: Final = 64
"""Marks that may end a step until one does: accumulation has backwards without an optimizer's."""


class FlopCount:
    """One count. The recorder calls `at` behind each mark until it is done."""

    def __init__(self, recorder: Recorder) -> None:
        self._recorder = recorder
        self._on: ModeOn | None = None
        self._kind = 0
        """Of the mark that began the step."""
        self._backwards = self._fetches = 0

    def at(self, kind: int) -> None:
        """Behind a mark of this kind."""
        if self._on is not None:
            if not self._on.is_mine:
                return
            if kind == self._kind and not is_in_backward():
                self._end(self._on)
            elif self._recorder.now_ns() > self._on.until_ns:
                self._cut()
            return
        if kind in (OPTIMIZER_LEAVE, STEP) and not is_in_backward():
            self._begin(kind)
        elif kind == BACKWARD_LEAVE and not is_in_backward():
            self._backwards += 1
            if self._backwards > PATIENCE:  # nobody steps: each backward is a step
                self._begin(kind)
        elif kind == FETCH_ENTER and not self._backwards:
            self._fetches += 1
            if self._fetches > PATIENCE:
                self._refuse("no optimizer's step and no backward was seen")

    def _begin(self, kind: int) -> None:
        given = self._recorder.notes.is_counted("flops")
        why_not = GIVEN if given else _why_not()
        if why_not:
            self._refuse(why_not)
            return
        self._kind = kind
        self._on = ModeOn(_counting(), self._cut, self._recorder.now_ns() + MOST_NS)

    def _end(self, counter: ModeOn) -> None:
        recorder, mode = self._recorder, counter.mode
        if not counter.is_innermost:
            if innermost_mode() is not None:
                return  # a mode of the user's lies on ours: at the end of a later step
            self._refuse("another took our counter away")
            counter.lost()
            return
        counter.off()
        if mode.why_not:
            self._refuse(mode.why_not)
            return
        recorder.count_with(None)
        now_ns = recorder.now_ns()
        recorder.notes.add(now_ns, "flops", "convolutions", float(mode.convolved))
        recorder.notes.add(now_ns, "flops", "counted", float(mode.flops))

    def _cut(self) -> bool:
        """Off before the step's end. False: it cannot be taken off now."""
        if self._on is None or not self._on.can_go:
            return False
        why = self._on.mode.why_not or "the step did not end"
        self._on.off()
        self._refuse(why)
        return True

    def _refuse(self, why: str) -> None:
        self._recorder.count_with(None)
        self._recorder.notes.add(self._recorder.now_ns(), "refused", "flops", 0.0, why)


def _why_not() -> str:
    """Why the FLOPs of this run cannot be counted; "" where they can."""
    torch: Any = sys.modules["torch"]
    if torch._C._len_torch_dispatch_stack():
        return "a dispatch mode of the program's is on"
    if is_captured():
        return "a CUDA graph is being captured"
    if compiles() or holds_compiled():
        return "the program compiles: give them, probe.units(flops=...)"
    return ""


def _attention(args: Any, backward: bool) -> int:
    """Two products forward, four backward, of batch, heads, both lengths and both widths."""
    query, key, value = (one.shape for one in args[1 if backward else 0 :][:3])
    lead = 1
    for size in query[:-1]:
        lead *= int(size)
    forward = 2 * lead * int(key[-2]) * (int(query[-1]) + int(value[-1]))
    return 2 * forward if backward else forward


def _counting() -> Any:
    from torch.utils._python_dispatch import TorchDispatchMode
    from torch.utils.flop_counter import flop_registry

    class Counting(TorchDispatchMode):
        flops = 0
        convolved = 0
        """Those of convolutions, which may run in another type."""
        why_not = ""
        calls_others = False

        def __torch_dispatch__(
            self, func: Any, types: Any, args: Any = (), kwargs: Any = None
        ) -> Any:
            kwargs = kwargs or {}
            out = func(*args, **kwargs)
            try:
                self._add(func, args, kwargs, out)
            except Exception as error:  # a formula has no idea of such a tensor; the run goes on
                if is_users(error):
                    raise
                self.why_not = f"{func}: {type(error).__name__}: {str(error)[:200]}"
            return out

        def _add(self, func: Any, args: Any, kwargs: Any, out: Any) -> None:
            packet, name = getattr(func, "_overloadpacket", None), operator_name(func)
            self.calls_others = self.calls_others or name in OTHERS
            if name.startswith(ATTENTION):
                self.flops += _attention(args, "backward" in name)
            elif (formula := flop_registry.get(packet)) is not None:
                flops = formula(*args, **kwargs, out_val=out)
                self.flops += flops
                self.convolved += flops * ("convolution" in name)

    made: Any = Counting
    return made()
