"""What a turn of a loop makes of its part, and what it hands to the next turn, by its text."""

import ast
from collections import deque
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Final

from .places import FUNCTIONS, Comprehension, Function, functions_in, nodes_outside

CHANGES: Final = frozenset((*dir(list), *dir(deque), *dir(dict), *dir(set)))
"""What is called of a container changes it; of a tensor what ends in "_"."""
SUMS: Final = frozenset(("add_", "sub_"))
"""In place, and alone: what was there is not asked for, as by `+=`."""
VIEWS: Final = frozenset(("view", "flatten", "squeeze", "unsqueeze", "select", "t", "detach"))
"""A tensor that these give is the one that they are called of."""
MODULES: Final = frozenset(("torch", "F", "nn"))
"""`F.relu_(x)` changes what it is given."""
LEAVES: Final = (ast.Return, ast.Raise, ast.Continue, ast.Break)


@dataclass(frozen=True, slots=True)
class Parts:
    """Of a loop: names of what changes from turn to turn, and of what a turn hands to the next."""

    names: set[str]
    carried: set[str]
    read: frozenset[str] = frozenset()
    """What of that a turn reads."""


@dataclass(frozen=True, slots=True)
class Made:
    """Of a statement: what it binds, and from what, by their names: `h`, `self.h`."""

    names: set[str]
    read: set[str]
    keeps: bool = False
    """What was there stays a part of it: `x += …`, `states.append(…)`."""


def made_from(body: Sequence[ast.AST], parts: set[str]) -> set[str]:
    """What is made from a part is a part."""
    known = set(parts)
    for one in _statements(body):
        if one.read & known and not one.keeps:
            known |= one.names
    return known


def carried_to_next(body: Sequence[ast.stmt], parts: set[str]) -> set[str]:
    """Names that a turn reads before it has bound them, and binds for the next, with all that is
    made of them; `parts` are bound as it begins. What sums up, as `loss = loss + …` does, is read
    by nobody."""
    made = _statements(body)
    carried: set[str] = set()
    _follow(body, set(parts), set[str]().union(*(one.names for one in made)), carried)
    for _ in made:
        more = {name for one in made if one.read & carried and not one.keeps for name in one.names}
        if more <= carried:
            break
        carried |= more
    return carried


def carried_by(comprehension: ast.AST) -> set[str]:
    """Names that a turn of it reads before it has bound them: `[h := cell(x, h) for x in xs]`."""
    named = [one for one in ast.walk(comprehension) if isinstance(one, ast.NamedExpr)]
    every, bound, carried = {one.target.id for one in named}, set[str](), set[str]()
    for name, binds in _in_order(comprehension):
        if binds:
            bound.add(name)
        elif name in every - bound:
            carried.add(name)
    for _ in named:
        carried |= {one.target.id for one in named if names_in(one.value) & carried}
    return carried


def _in_order(node: ast.AST) -> Iterator[tuple[str, bool]]:
    """Names as they are read, and by `:=` bound, in one turn."""
    if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Load):
        yield node.id, False
    parts = list(ast.iter_child_nodes(node))
    if isinstance(node, ast.NamedExpr):
        parts = [node.value]
    elif isinstance(node, Comprehension):
        parts.sort(key=lambda one: not isinstance(one, ast.comprehension))
    for one in parts:
        yield from _in_order(one)
    if isinstance(node, ast.NamedExpr):
        yield node.target.id, True


def _follow(
    body: Sequence[ast.stmt], fresh: set[str], every: set[str], carried: set[str]
) -> set[str]:
    """Adds to `carried`; what is bound for sure at the end, of what was at the beginning."""
    for statement in body:
        for one in _made_by(statement):
            carried |= (one.read & every) - fresh
            if one.keeps:
                carried |= one.names - fresh
            else:
                fresh = fresh | one.names
        branches = _branches(statement)
        ends = [_follow(branch, fresh, every, carried) for branch in branches]
        stays = [
            end
            for end, branch in zip(ends, branches, strict=True)
            if not (branch and isinstance(branch[-1], LEAVES))
        ]
        fresh = set.intersection(*stays) if stays else fresh
    return fresh


def _branches(statement: ast.stmt) -> list[list[ast.stmt]]:
    """Of which one is run: `if t == 0: h = first` binds nothing for sure."""
    if isinstance(statement, (ast.With, ast.AsyncWith)):
        return [statement.body]
    if isinstance(statement, ast.Try):
        tried = [*statement.body, *statement.orelse, *statement.finalbody]
        return [tried, *(one.body for one in statement.handlers)]
    if isinstance(statement, ast.Match):
        return [[], *(one.body for one in statement.cases)]
    if isinstance(statement, (ast.If, ast.For, ast.AsyncFor, ast.While)):
        return [statement.body, statement.orelse]
    if isinstance(statement, (*FUNCTIONS, ast.ClassDef)):
        return [statement.body, []]
    return []


def read_of_carried(body: Sequence[ast.stmt], carried: set[str]) -> set[str]:
    """What of it a turn reads: what is not only summed up, or gathered."""
    return carried.intersection(name for one in _statements(body) for name in one.read)


def keeps_state(scope: Function | ast.Module) -> bool:
    """A function that reads an attribute, or a name of the function around it, and binds it for its
    next call: `self.h = f(x, self.h)`. Counters, and what is only gathered, are not read."""
    if isinstance(scope, ast.Module):
        return False
    read = read_of_carried(scope.body, carried_to_next(scope.body, set()))
    outside = {
        name
        for one in nodes_outside(scope, FUNCTIONS)
        if isinstance(one, (ast.Nonlocal, ast.Global))
        for name in one.names
    }
    return any(name.startswith("self.") or name in outside for name in read)


def stateful(tree: ast.Module) -> list[range]:
    """The lines of the functions in a file that keep a state, by themselves or by a method of their
    own that they call: `self.charge(x)`."""
    functions = functions_in(tree)
    calls = {
        one: {
            each.func.attr
            for each in ast.walk(one)
            if isinstance(each, ast.Call)
            and isinstance(each.func, ast.Attribute)
            and isinstance(each.func.value, ast.Name)
            and each.func.value.id == "self"
        }
        for one in functions
    }
    found = {one for one in functions if keeps_state(one)}
    while True:
        names = {one.name for one in found}
        more = {one for one in functions if calls[one] & names} - found
        if not more:
            return [range(one.lineno, (one.end_lineno or one.lineno) + 1) for one in found]
        found |= more


def names_in(node: ast.AST) -> set[str]:
    """What it reads: `self.h.data` reads "self", "self.h" and "self.h.data"."""
    loaded = (
        one
        for one in ast.walk(node)
        if isinstance(one, (ast.Name, ast.Attribute)) and isinstance(one.ctx, ast.Load)
    )
    return {path_of(one) for one in loaded} - {""}


def read_by(statement: ast.AST) -> set[str]:
    """`loss = loss + …` reads what it adds alone, as `loss += …` does, and `losses.append(…)`."""
    if isinstance(statement, ast.AugAssign):
        sums = isinstance(statement.op, (ast.Add, ast.Sub))
        return names_in(statement.value) | (set() if sums else bound_by(statement))
    if (changed := _changed_by(statement)) is not None:
        if not _only_adds(changed):
            return names_in(changed)
        return set[str]().union(*map(names_in, (*changed.args, *changed.keywords)))
    if not isinstance(statement, ast.Assign):
        return names_in(statement)
    added = _added_by(statement)
    return names_in(statement.value) if added is None else set[str]().union(*map(names_in, added))


def _added_by(statement: ast.Assign) -> list[ast.expr] | None:
    """What `loss = loss + 1 - …` adds; None of another."""
    terms = _terms(statement.value)
    to = [ast.unparse(one) for one in statement.targets]
    at = next((at for at, one in enumerate(terms) if [ast.unparse(one)] == to), None)
    if at is None or len(terms) < 2:
        return None
    others = terms[:at] + terms[at + 1 :]
    path = path_of(terms[at])
    return None if any(path in names_in(one) for one in others) else others


def _terms(value: ast.expr) -> list[ast.expr]:
    """Of a sum: `a + b - c`."""
    if isinstance(value, ast.BinOp) and isinstance(value.op, (ast.Add, ast.Sub)):
        return [*_terms(value.left), *_terms(value.right)]
    return [value]


def bound_by(statement: ast.AST) -> set[str]:
    """What it binds, or changes."""
    if isinstance(statement, ast.Assign):
        return set[str]().union(*map(_bound, statement.targets))
    if isinstance(statement, (ast.AugAssign, ast.AnnAssign)):
        return _bound(statement.target)
    changed = _changed_by(statement)
    return {_changed(changed)} - {""} if changed is not None else set()


def changed_in_place(node: ast.AST) -> set[str]:
    """What a method within an expression changes: h of `kept.append(h.mul_(0.9).add_(x))`."""
    calls = (one for one in _within(node) if isinstance(one, ast.Call))
    return {_changed(one) for one in calls if _in_place(one.func)} - {""}


def _statements(body: Sequence[ast.AST]) -> list[Made]:
    """Those that bind or change something, in their order; `count += 1` is known in advance."""
    inner = [one for each in body for one in ast.walk(each) if isinstance(one, ast.stmt)]
    ordered = sorted(inner, key=lambda each: (each.lineno, each.col_offset))
    return [made for one in ordered for made in _made_by(one)]


def _made_by(statement: ast.stmt) -> list[Made]:
    """By itself, without the statements within it."""
    changed = _changed_by(statement)
    if changed is None:
        inner = changed_in_place(statement)
    else:
        parts = (changed.func, *changed.args, *changed.keywords)
        inner = set[str]().union(*map(changed_in_place, parts))
    found = [Made(inner, inner, keeps=True)] if inner else []
    within = (one for one in _within(statement) if isinstance(one, ast.NamedExpr))
    found += [Made({one.target.id}, names_in(one.value)) for one in within]
    if _counts(statement):
        return found
    if isinstance(statement, ast.AnnAssign) and statement.value is not None:
        found.append(Made(bound_by(statement), names_in(statement.value)))
    elif isinstance(statement, ast.Assign):
        sums = _added_by(statement) is not None
        found.append(Made(bound_by(statement), read_by(statement), keeps=sums))
    elif isinstance(statement, ast.AugAssign) or changed is not None:
        found.append(Made(bound_by(statement), read_by(statement), keeps=True))
    return found


def _counts(statement: ast.stmt) -> bool:
    if not isinstance(statement, ast.AugAssign) or not isinstance(statement.value, ast.Constant):
        return False
    return isinstance(statement.op, (ast.Add, ast.Sub))


def _within(node: ast.AST) -> Iterator[ast.AST]:
    """The node, and what is below it, without other statements."""
    yield node
    for child in ast.iter_child_nodes(node):
        if not isinstance(child, (ast.stmt, ast.excepthandler, ast.match_case)):
            yield from _within(child)


def _changed_by(statement: ast.AST) -> ast.Call | None:
    """The call, where it changes what it is called of."""
    called = statement.value if isinstance(statement, ast.Expr) else None
    if not isinstance(called, ast.Call) or not isinstance(called.func, ast.Attribute):
        return None
    return called if called.func.attr in CHANGES or _in_place(called.func) else None


def _in_place(called: ast.expr) -> bool:
    name = called.attr if isinstance(called, ast.Attribute) else ""
    return name.endswith("_") and not name.startswith("_")


def _only_adds(call: ast.Call) -> bool:
    """To a container, or to a tensor that nothing else changes there."""
    func = call.func
    if not isinstance(func, ast.Attribute) or isinstance(func.value, ast.Call):
        return False
    return func.attr in CHANGES or func.attr in SUMS


def _changed(call: ast.Call) -> str:
    """ "h" of `h.view(-1).mul_(0.9).add_(x)`, and of `F.relu_(h)`; "" of a call's new tensor."""
    node: ast.expr = call
    while isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
        if node is not call and not (_in_place(node.func) or node.func.attr in VIEWS):
            return ""
        node = node.func.value
    path = path_of(node)
    if path.partition(".")[0] in MODULES:
        return path_of(call.args[0]) if call.args else ""
    return path


def _bound(target: ast.expr) -> set[str]:
    if isinstance(target, (ast.Tuple, ast.List)):
        return set[str]().union(*map(_bound, target.elts))
    return {path_of(target.value if isinstance(target, ast.Starred) else target)} - {""}


def path_of(node: ast.AST) -> str:
    """ "self.h" of `self.h[0]`; "" of what is no name."""
    names: list[str] = []
    while isinstance(node, (ast.Attribute, ast.Subscript)):
        if isinstance(node, ast.Attribute):
            names.append(node.attr)
        node = node.value
    return ".".join((node.id, *reversed(names))) if isinstance(node, ast.Name) else ""
