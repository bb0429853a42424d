"""An evaluation within the training's own loop: its net is asked for a result that nothing trained
on reads, as a test in each step or a sample every hundred. No function and no mode tells of it."""

import ast
import re
from collections.abc import Callable, Iterator, Sequence
from typing import Final, TypeGuard

from ...verdict.syntax import name_of, root_of
from .places import LOOPS, Place, holds, learns
from .syntax_trees import Mark
from .updates_elsewhere import BUILTINS, hands_on
from .value_flow import TURNS, read, rebound, stored

Says = Callable[[ast.AST], bool]
LEAVES: Final = (ast.Break, ast.Continue, ast.Return, ast.Raise)
"""What such a block decides about the training."""
UPDATES: Final = frozenset(("backward", "manual_backward", "step"))
TRAINERS: Final = re.compile(r"trainer|updater|learner", re.IGNORECASE)


def inline_evaluation(way: Sequence[Place], without_grad: Says) -> list[Mark]:
    """What the innermost loop that trains only looks at, of the user's own frames on the way to a
    net, innermost first."""
    for place in way:
        loop = next((one for one in place.around() if isinstance(one, LOOPS)), None)
        if loop is not None:
            looks = _in_loop(loop, place.line, without_grad) if learns(loop) else ()
            return list(map(place.mark, looks))
        if isinstance(place.scope, ast.Module) or learns(place.scope):
            return []
    return []


def _in_loop(loop: ast.AST, line: int, without_grad: Says) -> Sequence[ast.stmt]:
    """The statements around `line` that only look: within a `with` that turns gradients off, or
    behind the last statement of the turn that trains. Nothing that they make is read where this
    turn or a later one trains; () where it may be. A teacher's output is read by the loss, an
    action by the loss on what the environment answers."""
    if not isinstance(loop, (ast.For, ast.AsyncFor, ast.While)):
        return ()
    at = next((index for index, one in enumerate(loop.body) if holds(one, line)), None)
    trains = [index for index, one in enumerate(loop.body) if learns(one)]
    if at is None or not trains:
        return ()
    blocks = _without(loop.body[at], line, without_grad)
    if not blocks and any(_updates(loop.body[one]) for one in trains) and max(trains) < at:
        block = loop.body[max(trains) + 1 :]
        blocks = [] if any(map(hands_on, block)) else [block]
    order = (*loop.body[at:], *loop.body[:at]) * TURNS
    return next((block for block in blocks if _only_looks(block, order)), ())


def _only_looks(block: Sequence[ast.stmt], order: Sequence[ast.stmt]) -> bool:
    if any(learns(one) or _leaves(one) for one in block):
        return False
    return not _reaches_training(order, block, set[str]().union(*map(_made, block)))


def _without(statement: ast.stmt, line: int, without_grad: Says) -> list[list[ast.stmt]]:
    """The body of the outermost such `with` that holds the line. Before that, the same with those
    that follow it below one condition and only name what they make of what it has made: R-GCN
    ranks there what it has asked its net for."""
    for one in ast.walk(statement):
        if _is_without(one, without_grad) and holds(one, line):
            made = set[str]().union(*map(_made, one.body))
            more = [
                each
                for other in _behind(one, statement)
                if _is_without(other, without_grad) and _names_alone(other.body, made)
                for each in other.body
            ]
            return [[*one.body, *more], one.body] if more else [one.body]
    return []


def _is_without(one: ast.AST, without_grad: Says) -> TypeGuard[ast.With | ast.AsyncWith]:
    if not isinstance(one, (ast.With, ast.AsyncWith)):
        return False
    return any(without_grad(item.context_expr) for item in one.items)


def _behind(one: ast.stmt, statement: ast.stmt) -> Sequence[ast.stmt]:
    """The statements of a condition's branch that follow one of it."""
    if not isinstance(statement, ast.If):
        return ()
    branch = next((each for each in (statement.body, statement.orelse) if one in each), None)
    return () if branch is None else branch[branch.index(one) + 1 :]


def _names_alone(body: Sequence[ast.stmt], made: set[str]) -> bool:
    """It reads what was made, and changes nothing but names."""
    named = (
        isinstance(one, ast.Assign) and all(isinstance(to, ast.Name) for to in one.targets)
        for one in body
    )
    return all(named) and any(read(one) & made for one in body)


def _updates(statement: ast.stmt) -> bool:
    """A backward or an update, where `zero_grad()` alone may only begin a step."""
    calls = (one.func for one in ast.walk(statement) if isinstance(one, ast.Call))
    return any(name_of(one) in UPDATES for one in calls)


def _reaches_training(order: Sequence[ast.stmt], block: Sequence[ast.stmt], made: set[str]) -> bool:
    """Something that trains, or leaves the loop, reads a name in `made` or what comes of one."""
    inside = {id(one) for one in block}
    known = set(made)
    for one in order:
        for statement in _beside(one, inside):
            if not read(statement) & known:
                # In the other branch of a condition it is bound instead, not anew.
                known -= rebound(statement) if statement is one else set()
            elif learns(statement) or _leaves(statement) or _hands_to_a_trainer(statement):
                return True
            else:
                known |= _made(statement)
    return False


def _beside(statement: ast.stmt, inside: set[int]) -> Iterator[ast.stmt]:
    """The statement, in pieces without the block where it holds that."""
    if id(statement) in inside:
        return
    if not any(id(one) in inside for one in ast.walk(statement)):
        yield statement
        return
    for child in ast.iter_child_nodes(statement):
        if isinstance(child, ast.stmt):
            yield from _beside(child, inside)


def _hands_to_a_trainer(statement: ast.stmt) -> bool:
    """`d_loss, right = d_trainer.step(fake)`: the step of a GAN's own class is another file's."""
    calls = (one.func for one in ast.walk(statement) if isinstance(one, ast.Call))
    return any(
        isinstance(one, ast.Attribute)
        and one.attr == "step"
        and TRAINERS.search(ast.unparse(one.value)) is not None
        for one in calls
    )


def _leaves(statement: ast.stmt) -> bool:
    return any(isinstance(one, LEAVES) for one in ast.walk(statement))


def _made(statement: ast.stmt) -> set[str]:
    """Names that it binds, and what it may change: `kept.append(output)`, `state["best"] = …`."""
    found = set()
    for one in ast.walk(statement):
        if isinstance(one, ast.Name) and isinstance(one.ctx, ast.Store):
            found.add(one.id)
        elif isinstance(one, (ast.Attribute, ast.Subscript)) and isinstance(one.ctx, ast.Store):
            found.add(root_of(one))
        elif isinstance(one, ast.Expr) and isinstance(one.value, ast.Call):
            found.add(root_of(one.value.func))
    for one in ast.walk(statement):
        # `for group in optimizer.param_groups: group["lr"] = …` changes the optimizer.
        if isinstance(one, ast.For) and found & _stored_into(one):
            found |= {each.id for each in ast.walk(one.iter) if isinstance(each, ast.Name)}
    return found - {""} - BUILTINS


def _stored_into(loop: ast.For) -> set[str]:
    """Of its targets those whose items or attributes are bound in it."""
    changed = (
        root_of(one)
        for one in ast.walk(loop)
        if isinstance(one, (ast.Attribute, ast.Subscript)) and isinstance(one.ctx, ast.Store)
    )
    return stored(loop.target) & set(changed)
