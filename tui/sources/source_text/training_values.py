"""Whether a training learns from what a net answers, by the source."""

import ast
import re
from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Final

from ...verdict.syntax import name_of
from .environments import asks_environment
from .places import LOOPS, Function, Place, called_in, functions_in, holds, learns, sources
from .syntax_trees import once_of_each
from .value_flow import Names, Reached, Values, gathered, name_used, reached, read, through

BACKWARD: Final = frozenset(("backward", "manual_backward", "training_step"))
NUMBERS: Final = frozenset(("float", "int", "bool", "len", "round"))
"""Python's own calls that give a number: a loss that is looked at, a count of what was right. As
methods of a tensor they cast it."""
DRAWS: Final = frozenset(("multinomial", "argmax", "sample"))
"""Calls whose number is a token."""
LEARNED: Final = re.compile(r"reward|score|advantage|label|target|token|\bids\b|action|weight|next")
"""Names of numbers that a training learns from all the same."""
GATHERS: Final = frozenset(("append", "extend", "print"))
OF_NETS: Final = frozenset(
    ("eval", "train", "parameters", "named_parameters", "state_dict", "load_state_dict")
)
"""What only a net, or an optimizer, is asked for: none is made of a loss that it is handed with."""
SELDOM: Final = (ast.If, ast.IfExp, ast.Match, ast.ExceptHandler)
"""What lies in one of these is not done each time."""
MOST_FUNCTIONS: Final = 4
"""Deep that a value is followed into functions that learn."""


def learned_from(way: Sequence[Place], loop: ast.AST | None = None) -> Reached | None:
    """Where a training learns from what the innermost line makes, or all that `loop` around it
    makes: tokens that a policy samples, outputs of several teachers. Not from a loss that decides
    about a rate, a checkpoint or the end."""
    return reached(way, LEARNING, loop)


def feeds_training(way: Sequence[Place], loop: ast.AST, inner: Place | None) -> bool:
    """What a loop without gradients makes is learned from, in its own function or in one that
    called it. Not said of a rollout, in which an environment steps, nor of a net's own `step`."""
    own = inner is not None and isinstance(inner.scope, Function) and inner.scope.name == "step"
    place = way[0]
    for one in _statements(loop, place.tree):
        if asks_environment(one, place.tree) and not (own and holds(one, place.line)):
            return False
    return learned_from(way, loop) is not None


def asked_in_step(way: Sequence[Place], helpers: int) -> bool:
    """What so many of the innermost frames answer, and the next one learns from, is asked for in
    each step: in no loop, as texts are made in, or the answers to a whole set, but one that trains
    or counts time steps, or goes over what is written out, `for x in (now, then)`. A loop whose
    inner loop alone trains asks once an epoch."""
    around = (one for place in way[:helpers] for one in place.around() if isinstance(one, LOOPS))
    if not all(map(_is_written_out, around)):
        return False
    loops = [one for one in way[helpers].around() if isinstance(one, LOOPS)]
    training = next((one for one in loops if learns(one)), None)
    if training is not None and not learns(training, nested=False):
        return False
    return all(learns(one) or _counts(one) for one in loops)


def called_in_each_step(way: Sequence[Place]) -> Sequence[Place]:
    """The innermost frames, as far as each step of a training calls them: in no branch, and in the
    very loop, or function, that holds its backward. None of what a loop over epochs calls beside
    its steps, nor of what a script does before them."""
    for at, place in enumerate(way):
        around = place.around()
        regions: list[ast.AST] = [one for one in around if isinstance(one, LOOPS)]
        if isinstance(place.scope, Function):
            regions.append(place.scope)
        step = next(filter(learns, regions), None)
        within = around[: around.index(step)] if step in around else around
        if any(isinstance(one, SELDOM) for one in within) or _left_before(place):
            return ()
        if step is not None:
            return way[:at] if learns(step, nested=False) else ()
    return ()


def _left_before(place: Place) -> bool:
    """A branch before the line, in a block around it, leaves it out: `if step % 100: return`."""
    return any(
        isinstance(one, ast.If)
        and (one.end_lineno or 0) < place.line
        and isinstance(one.body[-1], (ast.Return, ast.Continue))
        for block in (place.scope, *place.around())
        for one in ast.iter_child_nodes(block)
    )


def _is_written_out(loop: ast.AST) -> bool:
    over = sources(loop)
    return bool(over) and all(
        isinstance(one, (ast.Tuple, ast.List))
        and not any(isinstance(each, ast.Starred) for each in one.elts)
        for one in over
    )


def _counts(loop: ast.AST) -> bool:
    over = loop.iter if isinstance(loop, ast.For) else None
    return isinstance(over, ast.Call) and name_of(over.func) == "range"


def _statements(loop: ast.AST, tree: ast.Module) -> Iterator[ast.stmt]:
    """In a loop, and in the functions of the same file that it calls."""
    for node in (loop, *called_in(loop, tree)):
        yield from (one for one in ast.walk(node) if isinstance(one, ast.stmt))


def trains(statement: ast.stmt, place: Place, known: Names, depth: int = 0) -> bool:
    """The backward is in it, or in a function of the same file that is handed the value by it."""
    calls = [one for one in ast.walk(statement) if isinstance(one, ast.Call)]
    if any(name_of(one.func) in BACKWARD for one in calls):
        return True
    if depth == MOST_FUNCTIONS:
        return False
    functions = learners(place.tree)
    return any(
        _learns_from(functions[name_of(one.func)], one, place, known, depth)
        for one in calls
        if name_of(one.func) in functions and (isinstance(one.func, ast.Name) or is_own(one.func))
    )


def _learns_from(
    function: Function, call: ast.Call, place: Place, known: Names, depth: int
) -> bool:
    """The backward of the function is reached by an argument that holds the value."""
    given = parameters_given(function, call, place, known)
    if not given:
        return False

    def ends(statement: ast.stmt, place: Place, known: Names) -> bool:
        return trains(statement, place, known, depth + 1)

    inside = replace(place, scope=function)
    values = replace(LEARNING, ends=ends, returns=False)
    return through(function.body, given, inside, values) is not None


def parameters_given(function: Function, call: ast.Call, place: Place, known: Names) -> Names:
    """The function's parameters that are handed the value; where none is known to hold it, those
    that are handed what the same line makes."""

    def holds_it(argument: ast.expr) -> bool:
        if known:
            return not known.isdisjoint(_reads(argument, place))
        return any(isinstance(one, ast.Call) for one in data_in(argument))

    own = function.args
    names = [one.arg for one in (*own.posonlyargs, *own.args)]
    if isinstance(call.func, ast.Attribute):
        names = names[1:]
    given = {name for name, one in zip(names, call.args, strict=False) if holds_it(one)}
    if any(map(holds_it, call.args[len(names) :])) and own.vararg is not None:
        given.add(own.vararg.arg)
    if any(isinstance(one, ast.Starred) and holds_it(one) for one in call.args):
        given.update(names)
    for keyword in call.keywords:
        if holds_it(keyword.value):
            named = own.kwarg.arg if own.kwarg is not None else ""
            given |= {*names, named} if keyword.arg is None else {keyword.arg}
    return given


def is_own(called: ast.expr) -> bool:
    """A method of the same object; `meter.update(loss)` has but the name of the agent's."""
    return isinstance(called, ast.Attribute) and name_of(called.value) == "self"


@once_of_each
def learners(tree: ast.Module) -> dict[str, Function]:
    """Functions that hold a backward, or call one that does."""
    functions = functions_in(tree)
    called = {
        id(function): {name_of(one.func) for one in ast.walk(function) if isinstance(one, ast.Call)}
        for function in functions
    }
    found = dict[str, Function]()
    learning = BACKWARD
    while new := [
        one
        for one in functions
        if found.get(one.name) is None and not learning.isdisjoint(called[id(one)])
    ]:
        found |= {one.name: one for one in new}
        learning = learning | found.keys()
    return found


# What of a statement is data.


def _reads(node: ast.AST, place: Place) -> Names:
    """Names that it reads as data: for no number or text, and no net."""
    if isinstance(node, ast.stmt) and any(map(LEARNED.search, gathered(node))):
        return read(node)
    names = {name for one in data_in(node) if (name := name_used(one))}
    return names - {"self"} - nets_of(place.tree)


def _makes(node: ast.AST, _: Place) -> Names | None:
    """None of a statement that makes numbers; of a loop what the others in it make."""
    names = gathered(node)
    statements = [
        one
        for one in ast.walk(node)
        if isinstance(one, (ast.Assign, ast.AnnAssign, ast.AugAssign, ast.Expr, ast.Return))
    ]
    if any(map(LEARNED.search, names)):
        return names
    numbers = [one for one in statements if _is_of_numbers(one)]
    if numbers and len(numbers) == len(statements):
        return None
    others = (gathered(one) for one in statements if one not in numbers)
    return names - set[str]().union(*map(gathered, numbers)).difference(*others)


def _is_of_numbers(statement: ast.stmt) -> bool:
    """All that it calls ends as a number."""
    calls = [one for one in ast.walk(statement) if isinstance(one, ast.Call)]
    data = (one for one in data_in(statement) if isinstance(one, ast.Call))
    return bool(calls) and all(name_of(one.func) in GATHERS for one in data)


def data_in(node: ast.AST) -> Iterator[ast.AST]:
    """What lies in it, without what becomes a number, a text or a condition there."""
    match node:
        case ast.Call(func=called) if _is_number(called) and not _draws(node):
            return
        case ast.Compare() | ast.JoinedStr():
            return
        case ast.IfExp(body=body, orelse=other):
            parts: Sequence[ast.AST] = (body, other)
        case _:
            parts = list(ast.iter_child_nodes(node))
    yield node
    for part in parts:
        yield from data_in(part)


def _is_number(called: ast.expr) -> bool:
    if isinstance(called, ast.Attribute):
        return called.attr == "item"
    return isinstance(called, ast.Name) and called.id in NUMBERS


def _draws(node: ast.AST) -> bool:
    """`logits.argmax().item()`; what is compared counts what was right."""
    within = list(ast.walk(node))
    drawn = any(isinstance(one, ast.Call) and name_of(one.func) in DRAWS for one in within)
    return drawn and not any(isinstance(one, ast.Compare) for one in within)


@once_of_each
def nets_of(tree: ast.Module) -> frozenset[str]:
    """Names of nets and optimizers in a file."""
    asked = (one for one in ast.walk(tree) if isinstance(one, ast.Attribute))
    return frozenset(name_used(one.value) for one in asked if one.attr in OF_NETS)


LEARNING: Final = Values(trains, _reads, _makes)
