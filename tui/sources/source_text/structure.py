"""What the source says of a stack that its frames do not: whether the net is called for one part of
a batch after the other, and whether it runs without learning.

A loop and a `with torch.no_grad()` leave no frame. Both are read from the text of the user's own
functions, as it lies on disk.
"""

import ast
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from itertools import groupby, pairwise, takewhile
from typing import Final, NamedTuple

from ...model.code_lines import calls_torch, computes, imports_torch
from ...model.frames import acts as in_environment
from ...model.frames import own_line, place_of
from ...verdict.code_origin import is_users, where_in
from .after_update import evaluates_after_update, is_beside_training
from .batch_parts import calls_with_part, in_parts, reads_part, resets_a_net
from .choosing import chooses
from .computed_anew import computed_anew, parametrized_at
from .drawn_inputs import is_redrawn
from .environments import acting, class_of_environment, turns_around
from .evaluations import (
    evaluation_of,
    is_off,
    is_validation,
    loop_of_actions,
    loops_around,
    turns_gradients_off,
    turns_gradients_on,
)
from .files import SourceLines
from .fixed_nets import is_fixed
from .inline_evaluation import inline_evaluation
from .packing import (
    LIBRARY_PACKS,
    PACKS,
    PYTORCH,
    hands_lengths,
    is_another_library,
    is_padded_again,
)
from .pair_distances import sums_pairs
from .places import Place, scope_of
from .rollouts import asks_for_one, plays
from .syntax_trees import Mark, SyntaxTrees, parsed_file
from .training_values import asked_in_step, called_in_each_step, learned_from
from .trimming import trims
from .turns import stateful

MOST_STACKS: Final = 1_024

RUNS_A_NET: Final = ("_call_impl", "_wrapped_call_impl")
"""Of torch's Module: what is called next to a frame that holds one of these is a net."""
DECORATOR: Final = "torch/utils/_contextlib.py"
"""Its frame stands above a function that is decorated with one of these…"""


@dataclass(frozen=True, slots=True)
class Structure:
    """Of one stack."""

    in_parts: str = ""
    """The frame whose loop calls the net for its parts one after the other, none of which needs the
    one before it; "" where there is none."""
    in_turns: str = ""
    """Likewise of a loop that computes tensors and calls no net, as in a loss."""
    unpacked: bool = False
    """A net is called, and no file on the way packs the texts of a batch or trims it."""
    padded_again: bool = False
    """What is computed there are texts that were packed and are padded again."""
    chooses: bool = False
    """A loop around it, which does not train, chooses from what the net says, or acts by it."""
    evaluates: bool = False
    """The net runs without gradients, or in `eval()` mode, and no step of a training is around
    it."""
    acts: bool | None = None
    """An environment is stepped or reset there, or answers what the net says there, or a game is
    played to be learned from; None where no function of the user's could be read."""
    feeds: bool = False
    """A training learns from what the net, or the function around the line, answers without
    gradients."""
    in_step: bool = False
    """That is a part of each of its steps, whatever the function is called: a target, what a
    teacher answers, or outputs from which the training takes its gradients. So is what runs no net,
    in a function that each step calls and in which none was seen: a check, a state that is kept."""
    fixed: bool = False
    """The net that answers them is one that nothing updates, whatever its class is."""
    redrawn: bool = False
    """It is asked about what the program draws anew at each call: noise, words that are dropped."""
    anew: str = ""
    """The frame of a loop within the net that computes a parametrized weight anew in each turn."""
    computes: bool = False
    """The innermost line, the user's or a library's, computes tensors."""
    beside: bool = False
    """It is done when a step has made its update, and no training learns from it."""
    one_row: str = ""
    """The frame that asks the net for one state, and reads one number of its answer."""
    with_gradients: frozenset[str] = frozenset()
    """Frames of functions that PyTorch's decorator calls with gradients on."""
    pairs: bool | None = None
    """Distances are summed of all differences there; None where the line was not found."""


UNKNOWN: Final = Structure()


class SourceStructure:
    """Reads the files of one process."""

    def __init__(self, lines: SourceLines) -> None:
        self._lines = lines
        self._trees = SyntaxTrees(lines)
        self._packing: dict[str, bool] = {}
        self._importing: dict[str, bool] = {}
        self._stateful: dict[str, list[range] | None] = {}
        self._in_order: set[str] = set()
        """Frames of the user's below which a module was seen that keeps a state: the layers beside
        it, as a convolution, have stacks of their own, which do not show it."""
        self._evaluations: set[Mark | None] = set()
        """Loops and functions in which a net was seen to run without learning…"""
        self._graded: set[Mark | None] = set()
        """…and with its gradients on."""
        self._inline: set[Mark] = set()
        """Statements of a training's own loop that only look at its net."""
        self._acting: set[Mark] = set()
        """Loops in which a net was seen to act in an environment…"""
        self._choosing: set[tuple[Mark, Mark]] = set()
        """…and functions that are asked for an action there, each with the one that asks."""
        self._asking: set[Mark] = set()
        """Classes that step and can be reset, below which a net was seen: no environments."""
        self._above_nets: set[Mark] = set()
        """Functions in which a net was seen of which no step learns."""
        self._learned: set[Mark] = set()
        """Functions of which a training was seen to learn what they return without gradients."""
        self._beside = lru_cache(maxsize=MOST_STACKS)(self._is_beside)
        self._plays = lru_cache(maxsize=MOST_STACKS)(self._is_play)
        self._computes = lru_cache(maxsize=MOST_STACKS)(self._computes_at)
        self._of_net = lru_cache(maxsize=MOST_STACKS)(self._with_a_net)
        self._of_tensors = lru_cache(maxsize=MOST_STACKS)(self._turns)

    def of(self, frames: Sequence[str]) -> Structure:
        """Of a stack of the main thread, outermost frame first."""
        try:
            found = self._find(frames)
            pairs = next(map(sums_pairs, self._way_to([own_line(tuple(frames))])), None)
        except RecursionError:
            return UNKNOWN  # an expression of thousands of terms
        computed = bool(frames) and self._computes(frames[-1])
        decorated = [own for outer, own in pairwise(frames) if place_of(outer)[0] == DECORATOR]
        graded = frozenset(filter(self._has_gradients, decorated))
        return replace(found, computes=computed, with_gradients=graded, pairs=pairs)

    def _has_gradients(self, frame: str) -> bool:
        return any(turns_gradients_on(place.scope) for place in self._way_to([frame]))

    def _find(self, stack: Sequence[str]) -> Structure:
        frames = [one for one in stack if place_of(one)[0] != DECORATOR]
        net = _net_in(frames)
        if net is not None:
            found = self._of_net(tuple(frames), net)
            return replace(found, acts=self._acts(_users_own(frames[:net])))
        # Its batches and its metrics are the evaluation's too.
        mine = groupby(frames, lambda frame: is_users(place_of(frame)[0]))
        first = next((list(group) for own, group in mine if own), [])
        way = self._way_to(first)
        if any(map(is_validation, way)):
            self._evaluations.update(evaluation_of(way))
        turns = self._of_tensors(tuple(frames))
        loops = (*loops_around(way), loop_of_actions(way))
        around = {*loops, *(place.marked for place in way)} - self._graded
        inline = any(not self._inline.isdisjoint(map(place.mark, place.around())) for place in way)
        evaluates = inline or not around.isdisjoint(self._evaluations)
        acts = self._acts(_users_own(frames))
        feeds = any(place.marked in self._learned for place in way)
        helpers = called_in_each_step(way)
        asks = not self._above_nets.isdisjoint(place.marked for place in helpers)
        other = asks or evaluates or acts or in_environment(tuple(stack))
        in_step = bool(helpers) and not other
        beside = self._beside(tuple(first)) and first == _users_own(frames)
        return Structure(
            in_turns=turns, evaluates=evaluates, acts=acts, feeds=feeds, in_step=in_step,
            beside=beside,
        )  # fmt: skip

    def _is_beside(self, frames: tuple[str, ...]) -> bool:
        return is_beside_training(self._way_to(frames))

    def _acts(self, frames: Sequence[str]) -> bool | None:
        """Also below a library's wrapper of an environment."""
        way = self._way_to(frames)
        if not way:
            return None
        worlds = {one for place in way if (one := class_of_environment(place))} - self._asking
        chooses = any((one.marked, outer.marked) in self._choosing for one, outer in pairwise(way))
        acts = chooses or bool(worlds) or not self._acting.isdisjoint(turns_around(way))
        return acts or self._plays(tuple(frames))

    def _is_play(self, frames: tuple[str, ...]) -> bool:
        return plays(self._way_to(frames))

    def _turns(self, frames: tuple[str, ...]) -> str:
        """By the user's own frames next above what a library calls, which is no net."""
        mine = _without_library(frames)
        if runs_a_net(frames[len(mine) :]):
            return ""
        way = self._way_to(mine)
        # Averages of a net's parameters, and metrics, are no part of what is learned.
        return "" if any(map(is_off, way)) else in_parts(way, reads_part)

    def _with_a_net(self, frames: tuple[str, ...], net: int) -> Structure:
        way = self._way_to(frames[:net])
        inner = self._way_to(_users_own(frames[net:]))
        evaluation = evaluation_of(way)
        self._evaluations.update(evaluation)
        if not evaluation:
            for place in way:
                self._graded |= {place.marked, *map(place.mark, place.around())}
        again = any(evaluates_after_update(place.region(), place.line) for place in way)
        inline = inline_evaluation(
            self._way_to(_without_library(frames[:net])), turns_gradients_off
        )
        self._inline.update(inline)
        self._asking |= {one for place in way if (one := class_of_environment(place))}
        acts = acting(way)
        if acts is not None:
            self._acting.add(acts.turn)
            self._choosing |= set() if acts.asks is None else {acts.asks}
        learned = _learned(way)
        helpers = None if learned is None or learned.with_gradients else learned.helpers
        self._learned |= {place.marked for place in helpers or ()}
        self._learn_order(frames, net)
        parts = ""
        if not any(resets_a_net(place.scope) for place in (*inner, *way)):
            parts = in_parts(inner, calls_with_part, self._in_order)
            parts = parts or in_parts(way, calls_with_part, self._in_order)
        turns = "" if parts or evaluation else self._turns(frames)
        parts = "" if parts and self._is_plain(frames, parts) else parts
        evaluates = bool(evaluation) or again or bool(inline)
        unpacked = self._is_unpacked(frames)
        feeds = helpers is not None
        in_step = acts is None and learned is not None
        if in_step and helpers is not None:
            in_step = asked_in_step(way, len(helpers))
        elif in_step:
            in_step = not evaluates  # a method called `generate` may be what is trained
        if not in_step:
            self._above_nets |= {place.marked for place in way}
        padded = any(map(is_padded_again, [*inner, *way][:1]))
        chosen = chooses([*inner, *way])
        is_asked = in_step and helpers is not None
        fixed, redrawn = is_asked and is_fixed(way), is_asked and is_redrawn(way)
        weight = parametrized_at(frames)
        above = () if weight is None else self._way_to(_users_own(frames[net:weight]))
        one_row = frames[net - 1] if way and asks_for_one(way[0]) else ""
        return Structure(
            parts, turns, unpacked, padded, chosen, evaluates, feeds=feeds, in_step=in_step,
            fixed=fixed, redrawn=redrawn, anew=computed_anew(above, way), one_row=one_row,
        )  # fmt: skip

    def _is_plain(self, frames: Sequence[str], loop: str) -> bool:
        """Below that loop are functions of the user's own alone, and the innermost computes no
        tensors: a tree for each sentence, within a net, is no call of it."""
        around = [at for at, one in enumerate(frames) if where_in(one) == where_in(loop)]
        below = frames[around[-1] + 1 :] if around else ()
        if not below or not all(is_users(place_of(one)[0]) for one in below):
            return False
        path, number = place_of(below[-1])
        return not calls_torch(self._lines.all_of(path), number)

    def _learn_order(self, frames: Sequence[str], net: int) -> None:
        """From the modules in this stack."""
        inner = range(len(frames) - 1, net - 1, -1)
        last = next((at for at in inner if self._keeps_state(frames[at])), net)
        above = {one for one in frames[:last] if is_users(place_of(one)[0])} - self._in_order
        if last > net and above:
            if len(self._in_order) >= MOST_STACKS:
                self._in_order.clear()
            self._in_order |= above
            self._of_net.cache_clear()

    def _keeps_state(self, frame: str) -> bool:
        """For the next call of its net; True where another library than PyTorch cannot be read."""
        path, number = place_of(frame)
        own = is_users(path)
        if not own and not is_another_library(path):
            return False
        if path not in self._stateful:
            tree = self._trees.of(path) if own else parsed_file("\n".join(self._lines.all_of(path)))
            self._stateful[path] = None if tree is None else stateful(tree)
        lines = self._stateful[path]
        return not own if lines is None else any(number in one for one in lines)

    def _computes_at(self, frame: str) -> bool:
        """PyTorch's own files are known by their names."""
        path, number = place_of(frame)
        return self._with_tensors(path) and computes(self._lines.all_of(path), number)

    def _with_tensors(self, path: str) -> bool:
        if path not in self._importing:
            if len(self._importing) >= MOST_STACKS:
                self._importing.clear()
            own = path.startswith(PYTORCH)
            self._importing[path] = not own and imports_torch(self._lines.all_of(path))
        return self._importing[path]

    def _is_unpacked(self, frames: Sequence[str]) -> bool:
        """From the user's outermost function on, which what starts it has nothing to do with."""
        paths = [place_of(frame)[0] for frame in frames]
        first = next((at for at, path in enumerate(paths) if is_users(path)), None)
        if first is None or any(map(self._may_pack, dict.fromkeys(paths[first:]))):
            return False
        return not hands_lengths(self._way_to(_users_own(frames)))

    def _may_pack(self, path: str) -> bool:
        """True where it cannot be read."""
        if path not in self._packing:
            if is_users(path):
                tree = self._trees.of(path)
                packs = tree is None or any(map(PACKS.search, _names_in(tree))) or trims(tree)
            else:
                lines = (
                    self._lines.all_of(path)
                    if is_another_library(path)
                    else ["PyTorch's, or Python's"]
                )
                packs = not lines or any(map(LIBRARY_PACKS.search, lines))
            self._packing[path] = packs
        return self._packing[path]

    def _way_to(self, frames: Sequence[str]) -> list[Place]:
        """The user's own frames that end such a stack, without a library's between them."""
        found: list[Place] = []
        for frame in reversed(frames):
            path, number = place_of(frame)
            if not number or not is_users(path) or (tree := self._trees.of(path)) is None:
                break
            found.append(Place(frame, number, scope_of(tree, number), tree))
        return found


def runs_a_net(frames: Sequence[str]) -> bool:
    """A net is called in this stack."""
    return _net_in(frames) is not None


def _net_in(frames: Sequence[str]) -> int | None:
    return next((at for at, one in enumerate(frames) if _function(one) in RUNS_A_NET), None)


def _names_in(tree: ast.Module) -> Iterator[str]:
    for node in ast.walk(tree):
        if isinstance(node, ast.Name):
            yield node.id
        elif isinstance(node, ast.Attribute):
            yield node.attr
        elif isinstance(node, ast.alias):
            yield node.name


class _Learned(NamedTuple):
    """A training learns from what the innermost line makes."""

    helpers: Sequence[Place]
    """The frames up to the one in which it does, none where it has no helper."""
    with_gradients: bool


def _learned(way: Sequence[Place]) -> _Learned | None:
    """None where it does not."""
    learned = learned_from(way)
    if learned is None:
        return None
    helpers = list(takewhile(learned[0].__ne__, way))
    contexts = (
        item.context_expr
        for one in learned[0].around()
        if isinstance(one, (ast.With, ast.AsyncWith))
        for item in one.items
    )
    without = any(map(is_off, helpers)) or any(map(turns_gradients_off, contexts))
    return _Learned(helpers, not without)


def _users_own(frames: Sequence[str]) -> list[str]:
    return [one for one in frames if is_users(place_of(one)[0])]


def _without_library(frames: Sequence[str]) -> Sequence[str]:
    """Up to the innermost frame of the user's own: a solver may call the net."""
    mine = [at for at, one in enumerate(frames) if is_users(place_of(one)[0])]
    return frames[: mine[-1] + 1] if mine else ()


def _function(frame: str) -> str:
    return frame.partition(" (")[0].rpartition(".")[2]
