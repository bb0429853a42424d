"""Functions of the user's own that read what the GPU has computed: a metric, class by class.

All that such a function launches is for what it reads, so that to read less often takes its
launches along with its waits.
"""

from collections import defaultdict
from collections.abc import Callable
from functools import lru_cache
from typing import Final

from .code_places import LAUNCHING, main_places, waits_for_gpu
from .place_names import users_function
from .stack_samples import FrameShare, StackPhase
from .thresholds.samples import READING_LEAST
from .window import RunFacts

_ITS_OWN: Final[frozenset[StackPhase | None]] = frozenset(
    {None, "forward", "other", "synchronisation", "waiting"}
)
"""Phases of the samples of a function that does nothing else: one with a backward is the loop."""

Function = tuple[str, str]
"""Its name, with its class, and its file."""


@lru_cache(maxsize=4)
def reading_functions(window: RunFacts) -> frozenset[Function]:
    """Those that no net runs in, and that wait for the GPU in a good part of their samples."""
    held: defaultdict[Function, float] = defaultdict(float)
    waits: defaultdict[Function, float] = defaultdict(float)
    others: set[Function] = {("", "")}
    for place in main_places(window):
        function = users_function(place)
        held[function] += place.share
        if waits_for_gpu(place):
            waits[function] += place.share
        if place.in_net or place.phase not in _ITS_OWN:
            others.add(function)
    return frozenset(
        function
        for function, share in waits.items()
        if function not in others and share >= READING_LEAST * held[function]
    )


def reads_results(window: RunFacts) -> Callable[[FrameShare], bool]:
    """Whether the host waits for the GPU there, or launches what it will wait for."""
    functions = reading_functions(window)
    return lambda place: (
        waits_for_gpu(place) or (place.phase in LAUNCHING and users_function(place) in functions)
    )
