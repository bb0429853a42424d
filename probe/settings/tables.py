"""An embedding's table whose rows are looked up alone, as a backward's graph shows it.

Its dense gradient and its update touch every row, whatever few a step has used. The graph tells
how many those may be: the node of the lookup knows the shape of what it made, and leads to the
table. Neither reads a saved tensor, for whom the program may have hooks.
"""

from typing import Any, Final

from .autocast import name_of, nodes_below

MOST_NODES: Final = 2_000
"""A table is at the far end of the graph. Once for an optimizer: 0.05 ms in a net of 12 layers, 0.3
in one of 100, 2.6 for so many nodes (two cores, torch 2.13)."""
TABLE_SHARE: Final = 0.5
"""Part of an optimizer's bytes from which a parameter may be such a table: of less, leaving it out
gives back less than a fused update does."""
TABLE: Final = ("table_rows", "table_bytes", "table_lookups")
"""As `messages.Settings` has them."""
LOOKUPS: Final = ("EmbeddingBackward", "EmbeddingBagBackward")


def tall(parameters: Any, total_bytes: int) -> Any:
    """Of an optimizer's parameters the one that may be such a table: it has two dimensions, more
    rows than columns and most of the bytes. None without one."""
    for one in parameters:
        is_tall = one.ndim == 2 and one.shape[0] > one.shape[1]
        if is_tall and one.numel() * one.element_size() >= TABLE_SHARE * total_bytes:
            return one
    return None


def table_of(root: Any, table: Any) -> dict[str, Any] | None:
    """How a table is used below a node of the graph: its `table_rows`, `table_bytes` and
    `table_lookups` (None where this torch does not record it, and of bags). None where it is used
    otherwise as well, as by the last layer that shares it, or makes sparse gradients already."""
    lookups: list[int | None] = []
    for node, leaves in nodes_below(root, MOST_NODES):
        if any(leaf.variable is table for leaf in leaves):
            if not name_of(node).startswith(LOOKUPS) or _is_sparse(node):
                return None
            lookups.append(_looked_up(node))
    if not lookups:
        return None
    return {
        "table_rows": int(table.shape[0]),
        "table_bytes": table.numel() * table.element_size(),
        "table_lookups": None if None in lookups else sum(one or 0 for one in lookups),
    }


def _is_sparse(node: Any) -> bool:
    return bool(getattr(node, "_saved_sparse", False))


def _looked_up(node: Any) -> int | None:
    metadata = getattr(node, "_input_metadata", None)
    if not metadata or "Bag" in name_of(node):
        return None
    rows = 1
    for size in metadata[0].shape[:-1]:
        rows *= int(size)
    return rows
