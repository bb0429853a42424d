"""What to do about an optimizer that takes long, by how this run's is set up."""

from collections.abc import Collection
from typing import Final

from tui.verdict import policy
from tui.verdict.places import function_of, main_places
from tui.verdict.window import Window

_FUSED: Final = ("Adam", "AdamW", "SGD", "Adagrad")
"""Those of torch.optim that have a fused form."""
_FOREACH: Final = (
    *("Adadelta", "Adafactor", "Adamax", "ASGD", "NAdam", "RAdam", "RMSprop", "Rprop"),
)
"""The others that can update their tensors in groups."""


def for_this_optimizer(window: Window) -> tuple[str, ...]:
    """One kernel for all tensors; fewer rows, where few tensors are most of it; fewer steps. Where
    nobody knows how it is set up, what is one word to write comes first."""
    settings, together = window.settings, updated_together(window)
    rarely = "accumulate gradients over several batches: fewer optimizer steps"
    rows = "a large embedding: sparse=True with SparseAdam updates only the rows that were used"
    first = (together,) if together else ()
    if settings is None:
        return (*first, rarely, rows)
    tensors, held = settings.parameters or 0, settings.parameter_bytes or 0
    large = 0 < tensors <= policy.FEW_TENSORS and held >= policy.LARGE_TENSOR * tensors
    if settings.fused:
        first = ("an 8-bit or a sharded optimizer moves fewer bytes",)
        return (rows, rarely, *first) if large else (rarely, rows, *first)
    return (rows, rarely, *first) if large else (*first, rarely, rows)


def updated_together(window: Window) -> str | None:
    """ "AdamW(..., fused=True): …", as its class and settings allow; None where it is so by now, or
    its class has no such form."""
    settings = window.settings
    if settings is None:
        return _as_seen({function_of(place.frame) for place in main_places(window)})
    name = settings.optimizer
    grouped = settings.foreach is not False and window.gpu_present  # there it is the default
    if settings.fused or (name in _FOREACH and grouped):
        return None
    if name is not None and name not in (*_FUSED, *_FOREACH):
        return None
    how = "foreach=True" if name in _FOREACH else "fused=True"
    tensors = f"its {settings.parameters or 0} tensors"
    return f"{name or 'the optimizer'}(..., {how}): {tensors} are updated together"


def _as_seen(functions: Collection[str]) -> str | None:
    """By the functions in which the main thread was found: torch names them after the form."""
    if any(name.startswith("_fused_") for name in functions):
        return None
    if any(name.startswith("_multi_tensor_") for name in functions):
        return "fused=True: one kernel updates all tensors"
    return "fused=True, or foreach=True: the tensors are updated together"
