"""Which nets a function sets to `eval()` or `train()`, and whether a line calls one of them."""

import ast
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

from ...verdict.syntax import name_of
from .places import FUNCTIONS, Function, Place, heads, nodes_outside
from .syntax_trees import once_of_each
from .turns import path_of

CALLED_LATER: Final = (*FUNCTIONS, ast.Lambda)
"""What functions within another do when they are called is not what that one does."""
MOVES: Final = frozenset(("to", "cuda", "cpu", "half", "float", "double", "bfloat16"))
EACH: Final = frozenset(("zip", "enumerate", "values", "items", "list", "tuple"))
"""Calls that give what they are called of, or with, one by one."""
Scope = Function | ast.Module


@dataclass(frozen=True, slots=True)
class Mode:
    line: int
    net: str
    evaluates: bool


@once_of_each
def modes_set(scope: Scope) -> list[Mode]:
    """In their order; of two on one line, `net.train() if learns else net.eval()`, the first."""
    nodes = list(nodes_outside(scope, CALLED_LATER))
    given = {
        id(call): path_of(statement.targets[0])
        for statement in nodes
        if isinstance(statement, ast.Assign)
        for call in _chain(statement.value)
    }
    found = [
        Mode(one.lineno, net, evaluates)
        for one in nodes
        if isinstance(one, ast.Call) and (evaluates := _evaluates(one)) is not None
        for net in _nets_set(one, given, scope)
    ]
    return sorted(found, key=lambda one: (one.line, not one.evaluates))


def _evaluates(call: ast.Call) -> bool | None:
    """None where it sets no mode: `frame.eval("a + b")` is pandas'."""
    if not isinstance(call.func, ast.Attribute) or call.func.attr not in ("eval", "train"):
        return None
    given = [*call.args, *(one.value for one in call.keywords)]
    if call.func.attr == "eval":
        return None if given else True
    return bool(given) and isinstance(given[0], ast.Constant) and given[0].value is False


def _nets_set(call: ast.Call, given: dict[int, str], scope: Scope) -> list[str]:
    """ "net" of `net = load().eval()` and of `net.to(device).eval()`; "a" and "b" of `for net in
    (a, b): net.eval()`."""
    if path := given.get(id(call)):
        return [path]
    chain = list(_chain(call))
    moved = all(name_of(one.func) in MOVES for one in chain[1:])
    first = chain[-1].func
    path = path_of(first.value) if moved and isinstance(first, ast.Attribute) else ""
    each = [over for target, over in _bound_each(scope) if path in target]
    return each[0] if each and each[0] else [path]


def _chain(node: ast.expr) -> Iterator[ast.Call]:
    """Calls of what the next one gives, outermost first: `net.to(device).eval()`."""
    while isinstance(node, ast.Call):
        yield node
        if not isinstance(node.func, ast.Attribute):
            return
        node = node.func.value


def asks(place: Place, net: str, calls_net: bool) -> bool:
    """The line calls that net, under any of its names. Another function that it calls may: with the
    net among what it is given, or in the object whose method it is."""
    names = _names_of(place.scope, net)
    calls = [one for one in place.around() if isinstance(one, ast.Call)]
    if any(_is_within(path_of(one.func), name) for one in calls for name in names):
        return True
    if calls_net and all(path_of(one.func) for one in calls):
        return False
    return any(
        _is_within(given, name) or _is_within(name, given)
        for one in calls
        for given in _given_to(one)
        for name in names
    )


def _given_to(call: ast.Call) -> Iterator[str]:
    of = [call.func.value] if isinstance(call.func, ast.Attribute) else []
    for one in (*of, *call.args, *(one.value for one in call.keywords)):
        if path := path_of(one):
            yield path


def _is_within(path: str, whole: str) -> bool:
    """`model.encoder` within `model`, which is within itself."""
    return bool(whole) and f"{path}.".startswith(f"{whole}.")


def _names_of(scope: Scope, net: str) -> set[str]:
    """A net's own, and what it is called by: `fast = compile(net)`, `for one in nets`."""
    found = {net, net.removesuffix(".module")}
    while (
        more := {
            name
            for names, of in _bound(scope)
            if any(_is_within(one, known) for one in of for known in found)
            for name in names
        }
        - found
    ):
        found |= more
    return found


@once_of_each
def _bound(scope: Scope) -> list[tuple[set[str], list[str]]]:
    """Names that are bound there, and what to."""
    return [*_bound_each(scope), *_bound_to(scope)]


def _bound_to(scope: Scope) -> Iterator[tuple[set[str], list[str]]]:
    """Names that an assignment binds to a net, or to what wraps it; what is made by a call of the
    net is none, nor its copy."""
    for one in nodes_outside(scope, CALLED_LATER):
        if not isinstance(one, ast.Assign):
            continue
        names = set(map(path_of, one.targets)) - {""}
        if not isinstance(one.value, ast.Call):
            yield names, [path_of(one.value)]
        elif "copy" not in name_of(one.value.func):
            yield names, list(map(path_of, one.value.args))


def _bound_each(scope: Scope) -> Iterator[tuple[set[str], list[str]]]:
    """Names that a loop binds, and what it goes over."""
    for loop in nodes_outside(scope, CALLED_LATER):
        for one in heads(loop):
            names = {each.id for each in ast.walk(one.target) if isinstance(each, ast.Name)}
            yield names, [path for path in _each_of(one.iter) if path]


def _each_of(over: ast.expr) -> Iterator[str]:
    if isinstance(over, (ast.Tuple, ast.List)):
        yield from map(path_of, over.elts)
    elif not isinstance(over, ast.Call):
        yield path_of(over)
    elif name_of(over.func) in EACH:
        yield from map(path_of, over.args)
        if isinstance(over.func, ast.Attribute):
            yield path_of(over.func.value)
