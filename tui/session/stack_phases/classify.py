"""From a stack of the main thread to what the training does there."""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import pairwise
from statistics import median
from typing import Final

from ...model import code_lines
from ...model.frames import is_copy, is_waiting
from ...model.loop_frames import COMPUTES_NOTHING
from ...model.observations import StackCount
from ...verdict.code_origin import is_users
from ...verdict.thresholds.samples import FOR_LINES, SYNC_LOOPS
from . import table
from .table import CodeRow, StackPhase

# The samples of a run, one after the other.

GAP: Final = 3.0
"""Samples further apart than this many intervals belong to different stretches."""


class MomentBits:
    """Gives each sample its bit, as `Stacks.taken` has them: a gap has one as well."""

    def __init__(self, interval_ns: int) -> None:
        """`interval_ns` is what samples lie apart, on average."""
        self._gap_ns = GAP * interval_ns
        self._free = 0
        self._last_ns: int | None = None

    def place(self, moments_ns: Sequence[int]) -> int:
        """The bit of the first of these, which follow all that were placed before; the others have
        the next ones."""
        if not moments_ns:
            return self._free
        if self._last_ns is not None and moments_ns[0] - self._last_ns > self._gap_ns:
            self._free += 1
        at, self._last_ns = self._free, moments_ns[-1]
        self._free += len(moments_ns)
        return at


# How long a step takes, by the moments at which the main thread comes back to its backward.

INTERVALS: Final = 4
"""A step shorter than four samples may have been passed over between two of them."""
RETURNS: Final = 10
"""Fewer returns are not a rhythm."""
ALIKE: Final = 0.2
"""Returns within this part of their median are alike…"""
REGULAR: Final = 0.6
"""…and so many of them must be. Steps of 5 to 300 ms, which return to their samples at random, pass
in 1 of 100 minutes; steps of 500 ms and more are estimated to 5 % (simulated)."""

TimedPhase = tuple[int, StackPhase]
"""perf_counter_ns, and what was done."""


def period_ns(moments: Sequence[TimedPhase], interval_ns: int) -> float | None:
    """The median time between two entries into the backward, of the phases that come once a step
    the longest; None where the rhythm is faster than samples can follow, or there is none.

    `interval_ns` is what samples lie apart, on average.
    """
    for phase in ("backward", "data", "optimizer", "forward"):
        found = _between_returns(moments, phase, interval_ns)
        if found is not None:
            return found
    return None


def _between_returns(moments: Sequence[TimedPhase], phase: str, interval_ns: int) -> float | None:
    entries: list[int] = []
    spans: list[int] = []
    for (before_ns, before), (at_ns, now) in pairwise(moments):
        if at_ns - before_ns > GAP * interval_ns:
            spans += _spans(entries)
            entries = []
        elif now == phase and before != phase:
            entries.append((before_ns + at_ns) // 2)
    spans += _spans(entries)
    if len(spans) < RETURNS:
        return None
    middle = median(spans)
    near = sum(abs(span - middle) <= ALIKE * middle for span in spans)
    if middle < INTERVALS * interval_ns or near < REGULAR * len(spans):
        return None
    return middle


def _spans(entries: Sequence[int]) -> list[int]:
    return [later - earlier for earlier, later in pairwise(entries)]


_FRAME: Final = re.compile(r"(?P<function>.*) \((?P<file>[^()]*?)(:\d+)?\)$")
_EVALUATES: Final = re.compile(table.EVALUATION_NAMES)
_EVALUATES_A_NET: Final = re.compile(table.EVALUATION_NAMES_OF_A_NET)
_NAMES: Final[tuple[tuple[StackPhase, re.Pattern[str]], ...]] = (
    ("checkpoint", re.compile(rf"(.*\.)?({table.CHECKPOINT_NAMES})")),
    ("data", re.compile(rf"(.*\.)?({table.DATA_NAMES})|{table.REPLAYS}")),
)
"""Of functions of the user's own, whatever their class is; or by that."""
_LINES: Final[tuple[tuple[StackPhase, re.Pattern[str]], ...]] = (
    ("data", re.compile(FOR_LINES)),
    ("other", re.compile(code_lines.SLEEP_LINES)),  # what else the line calls has frames of its own
    ("waiting", re.compile(code_lines.WAIT_LINES)),
    ("backward", re.compile(code_lines.BACKWARD_LINES)),
    ("optimizer", re.compile(code_lines.OPTIMIZER_LINES)),
    ("synchronisation", re.compile(code_lines.SYNC_LINES)),
    ("forward", re.compile(code_lines.COMPUTE_LINES)),
)
_LEAVES: Final = re.compile(code_lines.LEFT_LINES)
_FOLDERS: Final = tuple(row for row in table.ROWS if row.file.endswith("/"))
_FILES: Final[dict[str, tuple[CodeRow, ...]]] = {
    file: tuple(row for row in table.ROWS if row.file == file)
    for file in {row.file for row in table.ROWS if not row.file.endswith("/")}
}


@dataclass(frozen=True, slots=True)
class Classified:
    """What one stack shows."""

    phase: StackPhase
    """Never "evaluation", which has phases of its own: this is the one inside it."""
    evaluates: bool
    serial: bool
    """The training thread makes the batch itself."""


_BEFORE_NET: Final = ("data", "other")
"""A batch that a library takes to the GPU belongs to the net, as where a line of the user's own
does: Accelerate does so in its loader, whose wait for the copy is none for data."""


@lru_cache(maxsize=4096)
def classify(
    frames: tuple[str, ...],
    line: str,
    unlearning: bool = False,
    computes: bool = False,
    in_step: bool = False,
) -> Classified:
    """The phase of a stack, outermost frame first, each "function (file:line)".

    `line` is the text of the innermost line of the user's own, "" where it could not be read.
    `unlearning`: by its source a net runs there to be evaluated; `computes`: by the text of the
    innermost line it computes tensors; `in_step`: by its source each step of a training learns
    from it, or calls it and no net in it, so that a name says nothing.
    """
    phase: StackPhase = "other"
    evaluates, may_evaluate = unlearning, False
    serial = without_grad = takes_gradients = False
    function, file, own = "", "", False
    for frame in frames:
        function, file = parts_of(frame)
        if (file, function) == table.PASSES_ON and frame == frames[-1]:
            break  # nothing is done there: the user's own line takes what is passed on
        own = is_users(file)
        may_evaluate = may_evaluate or (without_grad and phase == "other" and _is_no_torch(file))
        without_grad = file == table.WITHOUT_GRAD.file and function in table.WITHOUT_GRAD.functions
        if own and phase == "other":
            evaluates = evaluates or bool(_EVALUATES.fullmatch(function))
            may_evaluate = may_evaluate or bool(_EVALUATES_A_NET.fullmatch(function))
        found = _by_name(frame) if own else by_place(function, file)
        if found == "checkpoint" and own and in_step:
            found = None  # what each step keeps is no file's, or has frames of its own that write
        if found == "evaluation":
            evaluates = True
        elif phase == "optimizer" and file in table.OPERATORS:
            continue  # `g ** 2` of an update is no forward
        elif found is not None and found in table.NESTED[phase]:
            phase = found
        elif phase in _BEFORE_NET and not serial and is_copy(frame):
            phase = "forward"
        takes_gradients = takes_gradients or (file, function) == table.GRADIENTS
        predicts = (file, function) == table.PREDICTS
        runs_net = phase == "data" or function in table.RUNS_A_NET or predicts
        evaluates = evaluates or (may_evaluate and runs_net)
        serial = serial or (file == table.SERIAL.file and function in table.SERIAL.functions)
    if phase == "other" and own:
        phase = _by_line(line)
    elif phase == "other" and (file, function) in SYNC_LOOPS:
        phase = "synchronisation"
    elif phase == "other" and is_waiting(frames) and function not in table.STARTS_OR_SENDS:
        phase = "data" if _takes(frames, line) else "waiting"
    if phase == "other" and (computes or _computes_below(frames, line)):
        phase = "forward"
    learns = phase == "optimizer" or (phase == "backward" and not (unlearning and takes_gradients))
    if learns or in_step:  # a function that is decorated without gradients makes targets too
        evaluates = False  # what learns does not evaluate, whatever its name
    return Classified(phase, evaluates, serial and phase == "data")


def classify_stack(stack: StackCount) -> Classified:
    """With all that its source says of it."""
    return classify(stack.frames, stack.line, stack.evaluates, stack.computes, stack.in_step)


def phase_of(stack: StackCount) -> StackPhase:
    """The phase of a stack; "evaluation" for all that an evaluation does."""
    found = classify_stack(stack)
    return "evaluation" if found.evaluates else found.phase


def _is_no_torch(file: str) -> bool:
    return not file.startswith("torch/")


@lru_cache(maxsize=16384)
def parts_of(frame: str) -> tuple[str, str]:
    """("_call_impl", "torch/nn/modules/module.py") of "Module._call_impl (torch/nn/…:1779)"."""
    match = _FRAME.match(frame)
    if match is None:
        return frame, ""
    return match["function"].rpartition(".")[2], match["file"]


def by_place(function: str, file: str) -> StackPhase | None:
    """The table's phase for a function in a library's file."""
    for row in (*_FILES.get(file, ()), *_FOLDERS):
        if file.startswith(row.file) and (not row.functions or function in row.functions):
            return row.phase
    return None


def _by_name(frame: str) -> StackPhase | None:
    name = frame.rpartition(" (")[0] or frame
    return next((phase for phase, known in _NAMES if known.fullmatch(name)), None)


def _by_line(line: str) -> StackPhase:
    code = code_lines.code_of(line)
    phase: StackPhase = next((phase for phase, text in _LINES if text.search(code)), "other")
    return "other" if phase == "forward" and code_lines.only_converts(code) else phase


def _takes(frames: tuple[str, ...], line: str) -> bool:
    """Whether the user's own line takes what it waits for, by a call of its own: a logger's waits
    are the logger's, and who waits for a save to end takes nothing."""
    first = len(frames)
    while is_waiting(frames[:first]):
        first -= 1
    if not first:
        return False
    caller, called = (parts_of(frame)[1] for frame in frames[first - 1 : first + 1])
    taken = is_users(caller) and called.startswith(table.HANDS_OVER)
    return taken and not _LEAVES.match(code_lines.code_of(line))


def _computes_below(frames: tuple[str, ...], line: str) -> bool:
    """Whether PyTorch's own Python is at work below a line of the user's that computes tensors: it
    is what the line computes."""
    innermost = parts_of(frames[-1])[1] if frames else ""
    if _is_no_torch(innermost) or innermost.startswith(COMPUTES_NOTHING):
        return False
    files = (parts_of(frame)[1] for frame in reversed(frames))
    return is_users(next(filter(_is_no_torch, files), "")) and _by_line(line) == "forward"
