"""Embeddings' tables whose rows are looked up alone, as a backward's graph shows it.

Their dense gradients and their update touch every row, whatever few a step has used. The graph
tells how many those may be: the node of the lookup knows the shape of what it made, and leads to
the tables. Neither reads a saved tensor, for whom the program may have hooks.
"""

from typing import Any, Final

from .autocast import name_of, nodes_below

MOST_NODES: Final = 8_000
"""A table is at the far end of the graph. Once for an optimizer: 0.05 ms in a net of 12 layers, 0.3
in one of 100, 10 for so many nodes (two cores, torch 2.13), whose forward and backward take 100."""
TABLE_SHARE: Final = 0.5
"""Part of an optimizer's bytes from which tables matter: of less, leaving them out gives back less
than a fused update does."""
PART_OF_IT: Final = 0.1
"""Part of those bytes from which one parameter may be one of them: of users and of items each has
a table."""
TABLE: Final = ("table_rows", "table_bytes", "table_lookups")
"""As `settings.Settings` has them."""
LOOKUPS: Final = ("EmbeddingBackward", "EmbeddingBagBackward")


def tall(parameters: Any, total_bytes: int) -> list[Any]:
    """Of an optimizer's parameters those that may be such tables: they have two dimensions, more
    rows than columns and together most of the bytes."""
    found = [
        one
        for one in parameters
        if one.ndim == 2
        and one.shape[0] > one.shape[1]
        and _bytes_of(one) >= PART_OF_IT * total_bytes
    ]
    return found if sum(map(_bytes_of, found)) >= TABLE_SHARE * total_bytes else []


def tables_of(root: Any, tables: list[Any], total_bytes: int) -> dict[str, Any] | None:
    """How tables are used below a node of the graph: their `table_rows`, `table_bytes` and
    `table_lookups`, summed (None where this torch does not record it, and of bags). Without one
    that is used otherwise as well, as by the last layer that shares it, or that makes sparse
    gradients already; None where what is left is not most of the bytes."""
    lookups: dict[int, list[int | None]] = {id(table): [] for table in tables}
    for node, leaves in nodes_below(root, MOST_NODES):
        for key in {id(leaf.variable) for leaf in leaves} & lookups.keys():
            if not name_of(node).startswith(LOOKUPS) or _is_sparse(node):
                del lookups[key]
            else:
                lookups[key].append(_looked_up(node))
    kept = [table for table in tables if lookups.get(id(table))]
    held = sum(map(_bytes_of, kept))
    if not kept or held < TABLE_SHARE * total_bytes:
        return None
    every = [one for table in kept for one in lookups[id(table)]]
    return {
        "table_rows": sum(int(table.shape[0]) for table in kept),
        "table_bytes": held,
        "table_lookups": None if None in every else sum(one or 0 for one in every),
    }


def _bytes_of(table: Any) -> int:
    return int(table.numel() * table.element_size())


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
