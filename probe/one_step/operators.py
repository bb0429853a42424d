"""What PyTorch's operators do, by their names, tags and schemas."""

import sys
from typing import Any, Final, NamedTuple

from ..dispatch_modes import operator_name
from .operation import Work

_REDUCTIONS: Final = """
    sum mean amax amin max min prod var std var_mean std_mean norm linalg_vector_norm logsumexp
    softmax _softmax _log_softmax _softmax_backward_data _log_softmax_backward_data cumsum any all
    argmax argmin"""
_COPIES: Final = """
    clone copy_ _to_copy cat stack index_select gather index embedding repeat repeat_interleave
    constant_pad_nd tril triu roll flip slice_backward select_backward masked_fill where"""
FUSIBLE: Final = frozenset((_REDUCTIONS + _COPIES).split())
"""Those that carry no tag for it."""
MATRIX_PRODUCTS: Final = frozenset(("mm", "addmm", "bmm", "baddbmm"))


STATEFUL: Final = ("batch_norm",)
"""In names of operators that change what they read, and do not say so in their schema."""


class Operator(NamedTuple):
    """One overload."""

    name: str
    overload: str
    """With it, "aten.sum.dim_IntList"."""
    plain: str
    """As nodes of a graph are named after it, in small letters."""
    work: Work
    is_random: bool
    """Or may be: one of the program's own says nothing of it, and some change what they read."""
    written: tuple[int, ...]
    """Its arguments that it changes: by their position…"""
    written_by_name: tuple[str, ...]
    """…and those that have none."""


def operator_of(func: Any) -> Operator:
    """What a dispatched function does."""
    tags: Any = sys.modules["torch"].Tag
    name = operator_name(func)
    is_random = tags.nondeterministic_seeded in func.tags or func.namespace != "aten"
    is_random = is_random or any(part in name for part in STATEFUL)
    fusible = tags.pointwise in func.tags or not FUSIBLE.isdisjoint((name, name.rstrip("_")))
    changed = [
        (at, one)
        for at, one in enumerate(func._schema.arguments)
        if one.alias_info is not None and one.alias_info.is_write
    ]
    return Operator(
        name,
        str(func),
        name.replace("_", ""),
        Work.FUSIBLE if fusible and not is_random else Work.PRODUCT,
        is_random,
        tuple(at for at, one in changed if not one.kwarg_only),
        tuple(one.name for _, one in changed if one.kwarg_only),
    )
