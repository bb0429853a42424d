"""A loop over the parts of a batch that could be one call: by the text of the user's functions."""

import ast
import builtins
import re
from collections.abc import Callable, Sequence, Set
from typing import Final

from ...verdict.syntax import name_of
from .places import (
    FUNCTIONS,
    Comprehension,
    Place,
    enclosing,
    heads,
    holds,
    learns,
    nodes_outside,
    sources,
)
from .syntax_trees import once_of_each
from .turns import (
    Parts,
    bound_by,
    carried_by,
    carried_to_next,
    changed_in_place,
    keeps_state,
    made_from,
    names_in,
    read_by,
    read_of_carried,
)
from .updates_elsewhere import may_be_trained_on, trains_by_name
from .value_flow import LOOP_STATEMENTS, name_used, stored

NO_NETS: Final = frozenset((*dir(builtins), *dir(dict), *dir(list)))
"""What is called so in a list beside the net's call, `net(x, [int(one) for one in nodes])`, is not
the net."""
OF_A_NET: Final = frozenset(
    (
        *("parameters", "named_parameters", "buffers", "named_buffers", "state_dict"),
        *("param_groups", "children", "modules", "named_modules"),
    )
)
"""Names of what a net or an optimizer is made of: its parts differ in shape, or in what they do."""
LIKEWISE: Final = re.compile(r"(params|parameters|grads?|gradients|layers|blocks)$")
"""How names of the user's own for such parts end."""
RESIZES: Final = re.compile(r"(interpolate|upsample|resize|pool[123]d)$")
"""Given a size by the part, each turn has tensors of another shape."""
RESETS: Final = re.compile(r"(reset|detach)_(net|hidden|states?|mem)")
"""How functions are named that begin the state of a net anew, which it has then."""
LEVELS: Final = re.compile(r"(features?|feats?|fmaps?|feature_maps|levels?|pyramid|scales|crops)$")
"""How names end of what has another size in each turn: the levels of a pyramid, crops of DINO's."""
FOR_ROOM: Final = re.compile(r"chunk")
"""In names of parts and of what cuts them, as those of NeRFs and video autoencoders are, and beside
`checkpoint(block, part)`: they are made because the memory has no room for all at once."""
STATES: Final = re.compile(r"(cache|states?|mems|past_key_values)$")
"""How names end of what a net keeps for its next call, and changes in place."""
LOADERS: Final = re.compile(r"loaders?$|(^|_)(dls?|batches)$", re.IGNORECASE)
"""How names of what goes over whole batches end…"""
MANY_LOADERS: Final = re.compile(r"loaders$|(^|_)dls$", re.IGNORECASE)
"""…and of what holds several such, `loaders["train"]`."""
SIZES: Final = frozenset(("len", "shape", "size", "numel"))
IN_ORDER: Final = frozenset(("step", "grad"))
"""An environment's, a sampler's or an inner optimizer's step follows the one before, and what is
adapted by gradients of its own is another net in each turn."""


def in_parts(
    way: Sequence[Place],
    one_by_one: "Callable[[ast.AST, Parts, int], bool]",
    in_order: Set[str] = frozenset(),
) -> str:
    """The innermost frame with such a loop; "" once a frame on the way there trains. `in_order`:
    frames that call what keeps a state for its next call."""
    hands_on = False
    for at, place in enumerate(way, 1):
        if not hands_on and place.frame not in in_order:
            for loop in place.around():
                parts = _parts_of(loop, place.line)
                if parts is None or not _may_be_one(loop, parts):
                    continue
                if one_by_one(loop, parts, place.line) and not _is_of_steps(loop, way[:at]):
                    function, _, where = place.frame.partition(" (")
                    return f"{function.partition('.<locals>')[0]} ({where}"
        if isinstance(place.scope, ast.Module) or learns(place.scope):
            return ""
        if may_be_trained_on(way[:at], place.scope):
            return ""
        hands_on = hands_on or keeps_state(place.scope)
    return ""


def resets_a_net(scope: ast.AST) -> bool:
    """It begins its net's state anew, which the calls between hand on: `functional.reset_net(net)`
    of spikingjelly, `utils.reset(net)` of snntorch."""
    calls = (one for one in ast.walk(scope) if isinstance(one, ast.Call))
    return any(
        RESETS.fullmatch(name_of(one.func))
        or (name_of(one.func) == "reset" and any(map(name_of, one.args)))
        for one in calls
    )


def _may_be_one(loop: ast.AST, parts: Parts) -> bool:
    """Its turns need no order and have tensors of one shape, as far as their text tells."""
    if learns(loop) or any(map(_is_numbers, sources(loop))):
        return False
    if any(LEVELS.search(name_of(one)) for one in sources(loop)) or _saves_room(loop):
        return False
    calls = [one for one in ast.walk(loop) if isinstance(one, ast.Call)]
    return not any(name_of(one.func) in IN_ORDER or _resizes(one, parts) for one in calls)


def _is_of_steps(loop: ast.AST, way: Sequence[Place]) -> bool:
    """It goes over the batches of a loader, or a turn of it trains, or may: `optimize(loss)`."""
    if any(_is_loader(one, way[-1].tree) for one in sources(loop)):
        return True
    if isinstance(loop, Comprehension):
        return False
    return trains_by_name(loop) or may_be_trained_on(way, loop)


def _is_loader(over: ast.expr, tree: ast.Module) -> bool:
    """By its name, or by the name of what made it: `train, test = get_loaders(…)`. One batch of it,
    `next(loader)` or `batches[at]`, has parts."""
    if isinstance(over, ast.Call):
        of = [over.func.value] if isinstance(over.func, ast.Attribute) else []
        parts = [] if name_of(over.func) == "next" else [*of, *over.args]
        return _is_named_loader(over.func) or any(_is_loader(one, tree) for one in parts)
    if isinstance(over, ast.Subscript):
        return MANY_LOADERS.search(name_of(over.value)) is not None
    return _is_named_loader(over) or name_used(over) in _made_as_loaders(tree)


@once_of_each
def _made_as_loaders(tree: ast.Module) -> set[str]:
    """Names that a call binds in the file whose own name says that it makes loaders."""
    return {
        name
        for one in ast.walk(tree)
        if isinstance(one, ast.Assign)
        and isinstance(one.value, ast.Call)
        and _is_named_loader(one.value.func)
        for name in stored(one)
    }


def _is_named_loader(node: ast.expr) -> bool:
    return LOADERS.search(name_of(node)) is not None


def _saves_room(loop: ast.AST) -> bool:
    """A part, what cuts it, or what calls the net with it, is named so."""
    calls = [one.func for one in ast.walk(loop) if isinstance(one, ast.Call)]
    methods = {id(one) for one in calls if isinstance(one, ast.Attribute)}
    parts = [part for one in heads(loop) for part in (one.target, one.iter)]
    named = [one for each in parts for one in ast.walk(each) if id(one) not in methods]
    return any(FOR_ROOM.search(name_of(one)) for one in named) or any(
        name_of(one).endswith("checkpoint") for one in calls
    )


def _is_numbers(source: ast.expr) -> bool:
    """It is written out, as scales and rates of dilation are: `(0.5, 1.0, 2.0)`."""
    if isinstance(source, ast.Call):
        return any(map(_is_numbers, source.args))
    if not isinstance(source, (ast.Tuple, ast.List)) or not source.elts:
        return False
    return all(isinstance(one, ast.Constant) for one in source.elts)


def _resizes(call: ast.Call, parts: Parts) -> bool:
    if not RESIZES.search(name_of(call.func)):
        return False
    return any(names_in(one) & parts.names for one in (*call.args[1:], *call.keywords))


def _parts_of(loop: ast.AST, line: int) -> Parts | None:
    """None where the line is in no loop over something, or ends it by what it makes."""
    if isinstance(loop, Comprehension):
        bound = {name for one in loop.generators for name in _bound(one.target)}
        carried = (changed_in_place(loop) | carried_by(loop)) - bound
        return Parts(bound, carried, frozenset(carried))
    if not isinstance(loop, (ast.For, ast.AsyncFor)):
        return None
    if not any(holds(one, line) for one in loop.body) or _ends_by(loop, line):
        return None
    parts = _bound(loop.target)
    carried = carried_to_next(loop.body, parts)
    read = frozenset(read_of_carried(loop.body, carried))
    return Parts(made_from(loop.body, parts), carried, read)


def _ends_by(loop: ast.For | ast.AsyncFor, line: int) -> bool:
    """What is made at the line decides about the end of the loop: `if y.item() > 0.5: break`."""
    within = [one for one in enclosing(loop, line) if isinstance(one, ast.stmt)]
    made = made_from(loop.body, bound_by(within[-1]))
    return any(
        isinstance(one, ast.If)
        and any(map(_ends, nodes_outside(one, (*LOOP_STATEMENTS, *FUNCTIONS))))
        and (holds(one.test, line) or _values_in(one.test) & made)
        for one in nodes_outside(loop, (*LOOP_STATEMENTS, *FUNCTIONS))
    )


def _ends(node: ast.AST) -> bool:
    return isinstance(node, (ast.Break, ast.Return))


def _values_in(test: ast.expr) -> set[str]:
    """What it reads, but for how large that is, which is known before."""
    if isinstance(test, ast.Call) and name_of(test.func) in SIZES:
        return set()
    if isinstance(test, (ast.Name, ast.Attribute)):
        return set() if name_of(test) in SIZES else names_in(test)
    inner = (one for one in ast.iter_child_nodes(test) if isinstance(one, ast.expr))
    return set[str]().union(*map(_values_in, inner))


def calls_with_part(loop: ast.AST, parts: Parts, line: int) -> bool:
    """Something is called there that does not change from turn to turn, first of all with what
    does, and with nothing that an earlier turn has made: the turns could be one call. What is given
    before a part is whole in each turn, as the features to which a graph network applies one
    support after the other."""
    body = loop.body if isinstance(loop, (ast.For, ast.AsyncFor)) else [loop]
    for one in (one for each in body for one in ast.walk(each)):
        if isinstance(one, ast.Call) and holds(one, line) and name_of(one.func) not in NO_NETS:
            given = set[str]().union(*map(names_in, (*one.args, *one.keywords)))
            fixed = not names_in(one.func) & parts.names
            states = any(map(STATES.search, given - parts.names))
            leads = names_in(one.args[0]) if one.args else given
            if fixed and leads & parts.names and not given & parts.carried and not states:
                return True
    return False


def reads_part(loop: ast.AST, parts: Parts, line: int) -> bool:
    """What is computed there is of a part, and of nothing that an earlier turn has made: the turns
    could be one expression of tensors. A part that is called, as the layers of a list are, is
    another function in each turn."""
    within = [one for one in enclosing(loop, line) if isinstance(one, ast.stmt)]
    at = within[-1] if within else loop
    if any(isinstance(one, ast.Call) and _is_part(one.func, parts) for one in ast.walk(at)):
        return False
    if any(_is_of_a_net(one) for each in sources(loop) for one in ast.walk(each)):
        return False
    read = read_by(at)
    taken = (one for one in ast.walk(at) if isinstance(one, ast.Subscript))
    if any(_is_of_a_net(one.value) and names_in(one.slice) & parts.names for one in taken):
        return False
    if bound_by(at) & parts.read:
        return False
    return bool(read & parts.names) and not read & parts.carried


def _is_of_a_net(node: ast.AST) -> bool:
    """By its name, or the one that is asked for: `group["params"]`."""
    name = name_of(node)
    if isinstance(node, ast.Subscript) and isinstance(node.slice, ast.Constant):
        name = str(node.slice.value)
    return name in OF_A_NET or LIKEWISE.search(name) is not None


def _is_part(called: ast.expr, parts: Parts) -> bool:
    if isinstance(called, (ast.Subscript, ast.Call)):
        return bool(names_in(called) & parts.names)
    return isinstance(called, ast.Name) and called.id in parts.names


def _bound(target: ast.AST) -> set[str]:
    return {one.id for one in ast.walk(target) if isinstance(one, ast.Name)}
