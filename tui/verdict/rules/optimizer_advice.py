"""What to do about an optimizer that takes long, by how this run's is set up."""

from typing import Final

from tui.verdict import policy
from tui.verdict.window import Window

_FUSED: Final = ("Adam", "AdamW", "SGD", "Adagrad")
"""Those of torch.optim that have a fused form."""


def for_this_optimizer(window: Window, one_by_one: bool) -> tuple[str, ...]:
    """One kernel for all tensors; fewer rows, where few tensors are most of it; fewer steps.

    `one_by_one`: samples saw it update its tensors one after the other.
    """
    settings = window.settings
    rarely = "accumulate gradients over several batches: fewer optimizer steps"
    rows = "a large embedding: sparse=True with SparseAdam updates only the rows that were used"
    if settings is None:
        together = "fused=True, or foreach=True: the tensors are updated together"
        first = one_by_one and window.gpu_present
        return (together, rows, rarely) if first else (rows, rarely, together)
    if settings.fused:
        return (rarely, rows, "an 8-bit or a sharded optimizer moves fewer bytes")
    name, tensors = settings.optimizer or "the optimizer", settings.parameters or 0
    how = "fused=True" if settings.optimizer in _FUSED else "foreach=True"
    together = f"{name}(..., {how}): its {tensors} tensors are updated together"
    held = settings.parameter_bytes or 0
    large = 0 < tensors <= policy.FEW_TENSORS and held >= policy.LARGE_TENSOR * tensors
    return (rows, rarely, together) if large else (together, rarely, rows)
