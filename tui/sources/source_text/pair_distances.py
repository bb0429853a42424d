"""Distances that are summed of all differences between two sets, by the text of their function."""

import ast

from ...verdict.broadcast_distances import of_all_differences
from .places import Function, Place, nodes_outside
from .syntax_trees import once_of_each
from .value_flow import DEFINITIONS


def sums_pairs(place: Place) -> bool:
    """At the line of a frame."""
    return any(place.line in lines for lines in _lines_of_distances(place.scope))


@once_of_each
def _lines_of_distances(scope: Function | ast.Module) -> list[range]:
    """What functions within it do is their own."""
    every = nodes_outside(scope, DEFINITIONS)
    simple = [one for one in every if isinstance(one, ast.stmt) and not hasattr(one, "body")]
    found = of_all_differences(simple)
    return [range(one.lineno, (one.end_lineno or one.lineno) + 1) for one in found]
