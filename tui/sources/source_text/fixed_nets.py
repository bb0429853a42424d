"""A net that nothing updates, by the source: a teacher that is of the same class as the net which
learns from it, where no stack tells one from the other."""

import ast
import re
from collections.abc import Iterable, Iterator, Sequence
from typing import Final

from ...verdict.syntax import name_of
from .places import Place, holds

KEPT: Final = re.compile(
    r"teacher|frozen|pre_?trained|fixed|reference|expert|(^|_)ref(_|$)", re.IGNORECASE
)
"""In names of nets that are made before the training…"""
FOLLOWS: Final = re.compile(
    r"target|ema|momentum|mean_?teacher|averaged|shadow|slow|polyak|lagged", re.IGNORECASE
)
"""…and of those that follow the net which learns…"""
FOLLOWING: Final = re.compile(
    r"update|(^|_)ema|momentum|averag|copy|copies|sync|polyak|soft|lerp|swap|track|interpolat"
    r"|optim|^step$|_foreach_",
    re.IGNORECASE,
)
"""…and of functions that make one follow."""
WEIGHTS: Final = frozenset(
    ("parameters", "named_parameters", "buffers", "named_buffers", "state_dict", "data")
)
LOOKS: Final = re.compile(r"numel|requires_grad|\bsave\b|print|\blen\b")
"""What is done with weights that are not changed: counted, frozen, saved…"""
CHANGES: Final = re.compile(r"(copy|mul|add|sub|lerp|set)_\(|\.data [-+*/]?= ")
"""…and what changes them."""
SHORTEST: Final = 4
"""Letters of a name that others are taken to be made of, as `teacher_without_ddp` of `teacher`."""


def is_fixed(way: Sequence[Place]) -> bool:
    """By all files on the way to the net, the line that calls it first: that is named or made as a
    net from before the training, and nothing reads its weights to change them, hands it to what
    makes it follow another, or copies it from one."""
    if not way:
        return False
    trees = list({id(place.tree): place.tree for place in way}.values())
    kept = {one for one in _called_at(way[0]) if _is_kept(one, trees)}
    return bool(kept) and not any(_moves(one, trees) for one in kept)


def _called_at(place: Place) -> Iterator[str]:
    """ "teacher" of `self.teacher.encode(x)`: all names of what the line's statement calls."""
    for statement in ast.walk(place.tree):
        if not isinstance(statement, ast.stmt) or not holds(statement, place.line):
            continue
        if any(isinstance(one, ast.stmt) for one in ast.iter_child_nodes(statement)):
            continue
        for call in ast.walk(statement):
            if isinstance(call, ast.Call):
                yield from _chain(call.func)


def _chain(node: ast.AST) -> Iterator[str]:
    while isinstance(node, (ast.Attribute, ast.Subscript, ast.Call)):
        if isinstance(node, ast.Attribute):
            yield node.attr
        node = node.func if isinstance(node, ast.Call) else node.value
    if isinstance(node, ast.Name):
        yield node.id


def _is_kept(name: str, trees: Iterable[ast.Module]) -> bool:
    if FOLLOWS.search(name):
        return False
    if KEPT.search(name):
        return True
    nodes = [node for tree in trees for node in ast.walk(tree)]
    if any(_is_loaded(node, name) for node in nodes):
        # A net that goes on from a checkpoint learns where it is called once more.
        return sum(isinstance(one, ast.Call) and name_of(one.func) == name for one in nodes) <= 1
    return False


def _is_loaded(node: ast.AST, name: str) -> bool:
    """`net = Net.from_pretrained(path)`, `net.load_state_dict(torch.load(path))`."""
    if isinstance(node, ast.Assign) and any(name_of(one) == name for one in node.targets):
        return _calls(node.value, "from_pretrained")
    return _loads(node, name) and not _reads_weights(node)


def _calls(node: ast.AST, name: str) -> bool:
    return any(isinstance(one, ast.Call) and name_of(one.func) == name for one in ast.walk(node))


def _loads(node: ast.AST, name: str) -> bool:
    if not isinstance(node, ast.Call) or name_of(node.func) != "load_state_dict":
        return False
    return isinstance(node.func, ast.Attribute) and name_of(node.func.value) == name


def _reads_weights(call: ast.AST) -> bool:
    return any(
        isinstance(one, ast.Attribute) and one.attr == "state_dict" for one in ast.walk(call)
    )


def _moves(name: str, trees: Iterable[ast.Module]) -> bool:
    statements = [one for tree in trees for one in ast.walk(tree) if isinstance(one, ast.stmt)]
    weights = {
        name_of(target)
        for one in statements
        if isinstance(one, ast.Assign) and _reads_weights(one.value)
        for target in one.targets
    }
    return any(_changes(one, name, weights) for one in statements)


def _changes(statement: ast.stmt, name: str, weights: set[str]) -> bool:
    """The statement reads the weights for more than a look, hands the net to what makes it follow
    another, copies it, or has it learn."""
    if isinstance(statement, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)):
        return False
    for node in _own_nodes(statement):
        if isinstance(node, ast.Attribute) and node.attr in WEIGHTS:
            if _is_of(node.value, name) and not _looks(statement):
                return True
        elif isinstance(node, ast.Call):
            called = name_of(node.func)
            if len(name) >= SHORTEST and name in called and FOLLOWING.search(called):
                return True  # `model.update_teacher()`, which another file has
            given = (*node.args, *(one.value for one in node.keywords))
            if any(_is_of(one, name) for one in given) and FOLLOWING.search(name_of(node.func)):
                return True
            if _loads(node, name) and (_reads_weights(node) or weights & set(map(name_of, given))):
                return True
    if isinstance(statement, ast.Assign) and any(_is_of(one, name) for one in statement.targets):
        return _calls(statement.value, "deepcopy")
    return False


def _looks(statement: ast.stmt) -> bool:
    """With all that is within it: a loop over weights that freezes them."""
    text = ast.unparse(statement)
    return LOOKS.search(text) is not None and not CHANGES.search(text)


def _is_of(node: ast.AST, name: str) -> bool:
    """The net, or one of its other names: its module below a wrapper."""
    return any(one == name or (len(name) >= SHORTEST and name in one) for one in _chain(node))


def _own_nodes(statement: ast.stmt) -> Iterator[ast.AST]:
    """Of a statement without those within it."""
    left = list(ast.iter_child_nodes(statement))
    while left:
        node = left.pop()
        if not isinstance(node, ast.stmt):
            yield node
            left.extend(ast.iter_child_nodes(node))
