"""Whether a net may be updated by what another file holds: `optimize(loss)`, `loss_scaler(loss,
optimizer)`, `agent.learn(loss)`. No text shows the backward there; what is called, and with what,
says as much as it would to a reader."""

import ast
import builtins
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Final

from ...verdict.syntax import name_of, root_of
from .environments import NAMED
from .packing import ON
from .places import NO_OPTIMIZER, Function, Place, functions_in, holds
from .training_values import (
    LEARNING,
    MOST_FUNCTIONS,
    data_in,
    is_own,
    nets_of,
    parameters_given,
    trains,
)
from .turns import CHANGES
from .value_flow import Names, reached, through

BUILTINS: Final = frozenset(dir(builtins))
LIBRARIES: Final = frozenset(("torch", "F", "nn", "dist", "np", "numpy", "plt", "cv2", "json"))
LOOKS: Final = re.compile(
    r"metric|meter|logg|writ|sav(e|ing)|evaluat|accura|visuali|display|record|report|histor|confus"
    r"|tensorboard|wandb|mlflow|postfix|description|callback|learning_rate|check|assert|monitor"
    r"|(^|[._])(log|dump|export|plot|ax|show|imshow|draw|print|pprint|put|push|store|send|stats?"
    r"|statistics|acc|counts?|scores?|results?|best|lr|summary|reduce|gather)(_|\b)|(^|\.)on_",
    re.IGNORECASE,
)
"""In the name of what is called, or of its object: it keeps or shows what it is given."""
LEARNERS: Final = re.compile(
    r"(^|[._])(self|super\(\)|agent|algo\w*|policy|actor|critic|trainer|learner|updater|solver"
    r"|strategy|engine|model|net|opt|optim\w*)$"
)
"""Of the objects that have an `update`, as a dictionary and a metric do, those that learn by it."""
TRAINS: Final = re.compile(
    r"optim|minimi[sz]e|backward|back_?prop|update|apply_|gradient|(^|_)(learn|train|step)(_|$)",
    re.IGNORECASE,
)
"""In names of what is called for nothing that it returns: it trains on what it is given…"""
TRAINS_ALWAYS: Final = re.compile(r"(^|_)(optimi[sz]e|minimi[sz]e|learn|backward|back_?prop)(_|$)")
"""…and in those of what trains whatever it returns, and whatever it is given."""
OPTIMIZER: Final = re.compile(r"optimi[sz]ers?(_\w+)?$|(^|_)optim$")
OPTIONS: Final = re.compile(r"(^|_)opt(_\w+)?$")
"""An optimizer too, or the options of a script."""
NUMBERS: Final = frozenset(("numpy", "tolist", "item"))
"""Nothing is learned through what these return."""


@dataclass(frozen=True, slots=True)
class Handed:
    """How what a line makes may be handed on."""

    by_name: bool = False
    """Only to what is named as what trains."""
    inner: str = ""
    """The function in which it was made: the line that calls it hands it on no more."""
    depth: int = 0


def may_be_trained_on(
    way: Sequence[Place],
    region: ast.AST,
    counts: Callable[[ast.stmt], bool] = lambda _: True,
    by_name: bool = False,
) -> bool:
    """In `region` of the way's outermost frame, behind its line: what the innermost line makes is
    trained on, or handed to what may do that. Of the statements there those that `counts`."""
    outer = way[-1]
    scope = way[-2].scope if len(way) > 1 else None
    handed = Handed(by_name, scope.name if isinstance(scope, Function) else "")

    def ends(statement: ast.stmt, place: Place, known: Names) -> bool:
        behind = (statement.end_lineno or statement.lineno) >= outer.line
        if place is not outer or not behind or not holds(region, statement.lineno):
            return False
        return counts(statement) and _may_train(statement, place, known, handed)

    return reached(way, replace(LEARNING, ends=ends)) is not None


def hands_on(statement: ast.stmt) -> bool:
    """It calls a function, or a method by its name, that may train: for nothing that it returns."""
    calls = (one.value for one in ast.walk(statement) if isinstance(one, ast.Expr))
    return any(
        isinstance(one, ast.Call)
        and not _looks(one)
        and (isinstance(one.func, ast.Name) or TRAINS.search(name_of(one.func)))
        for one in calls
    )


def trains_by_name(loop: ast.AST) -> bool:
    """`self.optimize_parameters()`, `agent.learn()`: what was computed is kept where they are."""
    calls = (one.value for one in ast.walk(loop) if isinstance(one, ast.Expr))
    return any(
        isinstance(one, ast.Call) and TRAINS_ALWAYS.search(name_of(one.func)) and not _looks(one)
        for one in calls
    )


def _may_train(statement: ast.stmt, place: Place, known: Names, handed: Handed) -> bool:
    if trains(statement, place, known):
        return True
    alone = statement.value if isinstance(statement, ast.Expr) else None
    calls = [one for one in ast.walk(statement) if isinstance(one, ast.Call)]
    return any(
        _is_given(one, place, known, handed)
        and not _looks(one)
        and _is_trainer(one, one is alone, place, known, handed)
        for one in calls
    )


def _is_trainer(call: ast.Call, alone: bool, place: Place, known: Names, handed: Handed) -> bool:
    """What is called: by the text of it where the same file holds that, else by its name."""
    name = name_of(call.func)
    if isinstance(call.func, ast.Name) or is_own(call.func):
        named = (one for one in functions_in(place.tree) if one.name == name)
        if function := next(named, None):
            return _hands_further(function, call, place, known, handed)
    given = [name_of(one) for one in (*call.args, *(one.value for one in call.keywords))]
    if TRAINS_ALWAYS.search(name) or any(map(OPTIMIZER.search, given)):
        return True
    if not alone:
        return False
    by_name = TRAINS.search(name) is not None or any(map(OPTIONS.search, given))
    return by_name or not handed.by_name


def _hands_further(
    function: Function, call: ast.Call, place: Place, known: Names, handed: Handed
) -> bool:
    """What is given to the function is handed on there."""
    if handed.depth == MOST_FUNCTIONS:
        return False
    further = replace(handed, inner="", depth=handed.depth + 1)

    def ends(statement: ast.stmt, place: Place, known: Names) -> bool:
        return _may_train(statement, place, known, further)

    given = parameters_given(function, call, place, known)
    values = replace(LEARNING, ends=ends, returns=False)
    return through(function.body, given, replace(place, scope=function), values) is not None


def _is_given(call: ast.Call, place: Place, known: Names, handed: Handed) -> bool:
    """The value; where no name holds it yet, what the same line makes."""
    arguments = [
        one
        for one in (*call.args, *(one.value for one in call.keywords))
        if NUMBERS.isdisjoint(name_of(each.func) for each in _calls_in(one))
    ]
    if known:
        return any(not known.isdisjoint(LEARNING.reads(one, place)) for one in arguments)
    if name_of(call.func) in {handed.inner, *nets_of(place.tree)}:
        return False
    return any(name_of(each.func) not in ON for one in arguments for each in _calls_in(one))


def _calls_in(node: ast.AST) -> list[ast.Call]:
    return [one for one in data_in(node) if isinstance(one, ast.Call)]


def _looks(call: ast.Call) -> bool:
    """It keeps, shows or counts what it is given."""
    name = name_of(call.func)
    text = ast.unparse(call.func).replace("parameters", "")  # which holds "meter"
    if isinstance(call.func, ast.Attribute):
        of = ast.unparse(call.func.value)
        if root_of(call.func) in LIBRARIES or NAMED.search(of):
            return True
        if name in CHANGES and not LEARNERS.search(of):
            return True
    elif name in BUILTINS:
        return True
    changes = name.endswith("_") and not name.startswith("_")
    return changes or any(one.search(text) for one in (LOOKS, NO_OPTIMIZER))
