"""What the source says of a stack that its frames do not: whether the net is called for one part of
a batch after the other, and whether it runs without learning.

A loop and a `with torch.no_grad()` leave no frame. Both are read from the text of the user's own
functions, as it lies on disk.
"""

import ast
import warnings
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import groupby
from typing import Final

from ..model.frames import place_of
from ..verdict.code_origin import is_users
from .after_update import evaluates_after_update
from .aside import statements_aside
from .in_parts import in_parts
from .source_code import SourceLines
from .source_tree import FUNCTIONS, LOOPS, Function, Place, learns, name_of, scope_of

MOST_STACKS: Final = 1_024
MOST_CHARACTERS: Final = 150_000
MOST_TREES: Final = 8
"""Of a file that is parsed, and files that are kept: one of 277,000 takes 0.35 s and 6 MB."""

RUNS_A_NET: Final = ("_call_impl", "_wrapped_call_impl")
"""Of torch's Module: what is called next to a frame that holds one of these is a net."""
DECORATOR: Final = "torch/utils/_contextlib.py"
"""Its frame stands above a function that is decorated with one of these…"""
WITHOUT_GRAD: Final = frozenset(("no_grad", "inference_mode", "set_grad_enabled"))


@dataclass(frozen=True, slots=True)
class Structure:
    """Of one stack."""

    in_parts: str = ""
    """The frame whose loop calls the net for its parts one after the other, none of which needs the
    one before it; "" where there is none."""
    evaluates: bool = False
    """The net runs without gradients, or in `eval()` mode, and no step of a training is around
    it."""


UNKNOWN: Final = Structure()


class SourceStructure:
    """Reads the files of one process."""

    def __init__(self, lines: SourceLines) -> None:
        self._lines = lines
        self._files: dict[str, ast.Module | None] = {}
        self._evaluations: set[ast.AST | None] = set()
        """Loops and functions in which a net was seen to run without learning…"""
        self._graded: set[ast.AST | None] = set()
        """…and with its gradients on."""
        self._aside: set[ast.AST] = set()
        """Statements of a training's own loop that only look at its net."""
        self._of_net = lru_cache(maxsize=MOST_STACKS)(self._with_a_net)

    def of(self, frames: Sequence[str]) -> Structure:
        """Of a stack of the main thread, outermost frame first."""
        try:
            return self._find(frames)
        except RecursionError:
            return UNKNOWN  # an expression of thousands of terms

    def _find(self, stack: Sequence[str]) -> Structure:
        frames = [one for one in stack if place_of(one)[0] != DECORATOR]
        net = _net_in(frames)
        if net is not None:
            return self._of_net(tuple(frames), net)
        # Its batches and its metrics are the evaluation's too.
        mine = groupby(frames, lambda frame: is_users(place_of(frame)[0]))
        first = next((list(group) for own, group in mine if own), [])
        way = self._way_to(first)
        if any(map(_is_validation, way)):
            self._evaluations.update(_evaluation(way))
        if any(not self._aside.isdisjoint(place.around()) for place in way):
            return Structure(evaluates=True)
        if not self._evaluations:
            return UNKNOWN
        around = {_loop_around(way), *(place.scope for place in way)} - self._graded
        return Structure(evaluates=not around.isdisjoint(self._evaluations))

    def _with_a_net(self, frames: tuple[str, ...], net: int) -> Structure:
        way = self._way_to(frames[:net])
        inner = self._way_to([one for one in frames[net:] if is_users(place_of(one)[0])])
        evaluation = _evaluation(way)
        self._evaluations.update(evaluation)
        if not evaluation:
            for place in way:
                self._graded |= {place.scope, *place.around()}
        again = any(evaluates_after_update(place.region(), place.line) for place in way)
        aside = statements_aside(self._way_to(_without_library(frames[:net])), _turns_off)
        self._aside.update(aside)
        evaluates = bool(evaluation) or again or bool(aside)
        return Structure(in_parts(inner) or in_parts(way), evaluates)

    def _way_to(self, frames: Sequence[str]) -> list[Place]:
        """The user's own frames that end such a stack, without a library's between them."""
        found: list[Place] = []
        for frame in reversed(frames):
            path, number = place_of(frame)
            if not number or not is_users(path) or (tree := self._tree(path)) is None:
                break
            found.append(Place(frame, number, scope_of(tree, number)))
        return found

    def _tree(self, path: str) -> ast.Module | None:
        if path not in self._files:
            if sum(tree is not None for tree in self._files.values()) >= MOST_TREES:
                self._files.clear()
                self._evaluations.clear()
                self._aside.clear()
                self._graded.clear()
            self._files[path] = _parsed("\n".join(self._lines.all_of(path)))
        return self._files[path]


def runs_a_net(frames: Sequence[str]) -> bool:
    """A net is called in this stack."""
    return _net_in(frames) is not None


def _net_in(frames: Sequence[str]) -> int | None:
    return next((at for at, one in enumerate(frames) if _function(one) in RUNS_A_NET), None)


def _without_library(frames: Sequence[str]) -> Sequence[str]:
    """Up to the innermost frame of the user's own: a solver may call the net."""
    mine = [at for at, one in enumerate(frames) if is_users(place_of(one)[0])]
    return frames[: mine[-1] + 1] if mine else ()


def _parsed(text: str) -> ast.Module | None:
    if not 0 < len(text) <= MOST_CHARACTERS:
        return None
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # about the user's code, which Python has shown them
        try:
            return ast.parse(text)
        except (SyntaxError, ValueError, RecursionError, MemoryError):
            return None


def _function(frame: str) -> str:
    return frame.partition(" (")[0].rpartition(".")[2]


def _evaluation(way: Sequence[Place]) -> list[ast.AST]:
    """The loop of an evaluation, and the functions that it calls there: without gradients or in
    `eval()` mode, and it does not train. A net that is asked in every step of a training, as a
    teacher or a target, is part of that step."""
    at = next((index for index, place in enumerate(way) if _off(place)), None)
    if any(isinstance(place.scope, Function) and learns(place.scope) for place in way[:at]):
        return []  # the loop of a script over epochs calls it, beside an evaluation
    functions: list[ast.AST] = []
    for place in way[at:] if at is not None else ():
        loop = _calm_loop(place)
        if loop is not None:
            return [] if learns(loop) else [loop, *functions]
        if isinstance(place.scope, ast.Module) or learns(place.scope):
            return []
        functions.append(place.scope)
    return []


def _calm_loop(place: Place) -> ast.AST | None:
    """The innermost loop that takes no gradients; else the outermost. An attack walks along the
    gradients of a net in `eval()` mode, for whatever is around its loop: TRADES for a training."""
    loops = [one for one in place.around() if isinstance(one, LOOPS)]
    calm = [one for one in loops if not _takes_gradients(one)]
    return calm[0] if calm else loops[-1] if len(loops) > 1 else None


def _takes_gradients(loop: ast.AST) -> bool:
    return any(isinstance(one, ast.Call) and name_of(one.func) == "grad" for one in ast.walk(loop))


def _turns_off(context: ast.AST) -> bool:
    return isinstance(context, ast.Call) and _without_grad(context)


def _is_validation(place: Place) -> bool:
    """A function that is decorated without gradients and sets a net to `eval()`: nothing else
    does both."""
    scope = place.scope
    if isinstance(scope, ast.Module) or not any(map(_without_grad, scope.decorator_list)):
        return False
    called = (one.func for one in _own_nodes(scope) if isinstance(one, ast.Call))
    return any(isinstance(one, ast.Attribute) and one.attr == "eval" for one in called)


def _loop_around(way: Sequence[Place]) -> ast.AST | None:
    """The innermost loop on the way that does not train, in which an evaluation's batches are
    fetched, or an environment acts, though gradients are not off there."""
    for place in way:
        loop = next((one for one in place.around() if isinstance(one, LOOPS)), None)
        if loop is not None:
            return None if learns(loop) else loop
        if isinstance(place.scope, ast.Module) or learns(place.scope):
            return None
    return None


def _off(place: Place) -> bool:
    """Gradients are off at the line, or a net was set to `eval()` last before it."""
    if isinstance(place.scope, Function) and any(map(_without_grad, place.scope.decorator_list)):
        return True
    for one in place.around():
        if isinstance(one, (ast.With, ast.AsyncWith)):
            for item in one.items:
                called = item.context_expr
                if isinstance(called, ast.Call) and name_of(called.func) in WITHOUT_GRAD:
                    return _without_grad(called)
    modes = [
        (call.lineno, call.func.attr)
        for call in _own_nodes(place.scope)
        if isinstance(call, ast.Call)
        and isinstance(call.func, ast.Attribute)
        and call.func.attr in ("eval", "train")
        and call.lineno < place.line
    ]
    return bool(modes) and max(modes)[1] == "eval"


def _without_grad(context: ast.expr) -> bool:
    """A context or a decorator, with or without its brackets, that turns gradients off."""
    if not isinstance(context, ast.Call):
        return name_of(context) in WITHOUT_GRAD
    return name_of(context.func) in WITHOUT_GRAD and not _turned_on(context)


def _own_nodes(scope: Function | ast.Module) -> Iterator[ast.AST]:
    """Without what functions within it do when they are called."""
    left: list[ast.AST] = list(ast.iter_child_nodes(scope))
    while left:
        node = left.pop()
        yield node
        if not isinstance(node, (*FUNCTIONS, ast.Lambda)):
            left.extend(ast.iter_child_nodes(node))


def _turned_on(called: ast.Call) -> bool:
    """`set_grad_enabled(True)`, or by a value that only the run knows."""
    if name_of(called.func) != "set_grad_enabled":
        return False
    given = called.args[0] if called.args else None
    return not (isinstance(given, ast.Constant) and given.value is False)
