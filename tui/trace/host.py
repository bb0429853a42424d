"""Of a run without a device: which operators take a step's time."""

from collections import defaultdict
from dataclasses import dataclass
from typing import Final

from .events import Operator, read_trace
from .profile import Profile, Window, fetches_of, profile_of
from .spans import length, minus, union, within

FETCH: Final = "enumerate(DataLoader)"
"""PyTorch's own annotation around a fetch, which is a row already."""


@dataclass(frozen=True, slots=True)
class OperatorSum:
    """An operator over the steps, without those that it calls."""

    name: str
    shape: str
    a_step: float
    ns_a_step: float


@dataclass(frozen=True, slots=True)
class HostProfile:
    """Of the host's time."""

    steps: int
    step_ns: float
    fetch_ns_a_step: float
    operators_ns_a_step: float
    """In which any operator ran, on the thread that trains or for it, outside of fetches."""
    operators: tuple[OperatorSum, ...]


def host_profile_of(window: Window) -> HostProfile:
    """Raises ValueError for a trace that is malformed, or has no whole step."""
    trace = read_trace(window.times.data, window.times.anchor)
    ends_ns = window.times.ends_ns
    if len(ends_ns) < 3:
        raise ValueError("the recording has no two whole steps")
    start_ns, end_ns, steps = ends_ns[1], ends_ns[-1], len(ends_ns) - 2
    operators = tuple(one for one in trace.operators if not one.name.startswith(FETCH))
    own: defaultdict[tuple[str, str], list[int]] = defaultdict(lambda: [0, 0])
    for operator, ns in _own_times(operators):
        if start_ns <= operator.start_ns < end_ns:
            row = own[operator.name, _shape(operator)]
            row[0] += 1
            row[1] += ns
    fetches = union(fetches_of(window.times.marks))
    spans = minus(union((one.start_ns, one.end_ns) for one in operators), fetches)
    sums = (OperatorSum(*key, row[0] / steps, row[1] / steps) for key, row in own.items())
    return HostProfile(
        steps,
        (end_ns - start_ns) / steps,
        length(within(fetches, start_ns, end_ns)) / steps,
        length(within(spans, start_ns, end_ns)) / steps,
        tuple(sorted(sums, key=lambda one: -one.ns_a_step)),
    )


def _own_times(operators: tuple[Operator, ...]) -> list[tuple[Operator, int]]:
    """Each with its time less that of those inside it. They are sorted by their start."""
    left: list[list[int]] = []
    stacks: defaultdict[int | str, list[int]] = defaultdict(list)
    for index, one in enumerate(operators):
        left.append([one.end_ns - one.start_ns])
        stack = stacks[one.thread]
        while stack and operators[stack[-1]].end_ns <= one.start_ns:
            stack.pop()
        if stack:
            left[stack[-1]][0] -= one.end_ns - one.start_ns
        stack.append(index)
    return [(one, max(0, left[index][0])) for index, one in enumerate(operators)]


def _shape(operator: Operator) -> str:
    return " · ".join("x".join(map(str, one)) for one in operator.dims[:2] if one)


def read_window(window: Window, on_device: bool) -> Profile | HostProfile:
    """What the window says, of the device where the run has one. Raises ValueError."""
    return profile_of(window) if on_device else host_profile_of(window)
