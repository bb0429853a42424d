"""Products with rows of which one number is 1 and the others are 0, made anew in each step: what a
table looked up by index gives without them."""

from typing import Final

from .needless import BLANK, Needless, sum_of
from .operation import NOWHERE, Operation, Step, Work
from .operators import MATRIX_PRODUCTS

SCATTERS: Final = frozenset({"scatter", "scatter_"})
KEEPS: Final = frozenset({"_to_copy", "clone", "copy_"})
"""What is copied has the same numbers."""
FEWEST: Final = 16
"""Numbers in a row: a product with fewer costs nothing."""


def one_hot(step: Step) -> Needless | None:
    """The products and their backward, and, where nothing else reads such rows, what makes them."""
    blank: dict[int, Operation] = {}
    hot: dict[int, tuple[Operation, ...]] = {}
    """What has made the rows in a storage."""
    products: list[Operation] = []
    made_for: dict[int, Operation] = {}
    others = set[int]()
    """Operations that make rows which something else reads, by identity."""
    for one in step.operations:
        if one.work is Work.VIEW or one.in_backward:
            continue
        if one.name in BLANK and one.makes:
            blank[one.makes[0].storage] = one
            continue
        source = blank.get(one.reads[0].storage) if _puts_ones(one) else None
        if source is not None:
            hot[one.makes[0].storage] = source, one
            continue
        for storage in {each.storage for each in one.reads} & hot.keys():
            if one.name in KEEPS and one.makes:
                hot[one.makes[0].storage] = *hot[storage], one
            elif one.name in MATRIX_PRODUCTS:
                products.append(one)
                made_for |= {id(each): each for each in hot[storage]}
            else:
                others |= {id(each) for each in hot[storage]}
    nodes = {one.node for one in products} - {NOWHERE}
    back = [one for one in step.operations if one.of_node in nodes and one.work is not Work.VIEW]
    makers = [one for key, one in made_for.items() if key not in others]
    return sum_of((*makers, *products, *back)) if products else None


def _puts_ones(one: Operation) -> bool:
    """It puts a number, and no tensor, at one place in each row of many."""
    if one.name not in SCATTERS or len(one.reads) != len(("rows", "index")):
        return False
    rows, index = one.reads
    if not (one.makes and rows.is_strided and index.is_strided):
        return False
    sizes = zip(rows.view[1], index.view[1], strict=False)
    wide = [(row, at) for row, at in sizes if row != at]
    return len(wide) == 1 and wide[0][0] >= FEWEST and wide[0][1] == 1
