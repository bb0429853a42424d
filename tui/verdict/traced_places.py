"""Where a traced step spends its time, as it is shown."""

from typing import Final

from ..settings import FunctionTime, StepOperations
from .findings import Evidence, EvidenceSource
from .format import percent
from .thresholds.hysteresis import CONTRIBUTOR
from .window import RunFacts

LARGE: Final = 0.3
"""Of all operations' time, of a function that is named where nothing needless was found."""

FUSED: Final = (0.75, 0.4, 1.0)
"""Of what one kernel each way would save by its bytes: a compiler fuses most, and not across each
reduction."""


def shown(place: str) -> str:
    """ "Net.forward (/home/me/train.py:12)" -> "Net.forward (train.py:12)"."""
    function, _, where = place.rpartition(" (")
    return f"{function} ({where.rpartition('/')[2]}" if function else place


def costliest(window: RunFacts) -> FunctionTime | None:
    """The function whose operations take most of a traced step, where that is much of it."""
    seen = traced(window)
    first = seen.functions[0] if seen is not None and seen.functions else None
    return first if seen is not None and first is not None and first.us >= LARGE * seen.us else None


def traced(window: RunFacts) -> StepOperations | None:
    """None before a step was traced."""
    seen = traced_forward(window)
    return seen if seen is not None and seen.us else None


def traced_forward(window: RunFacts) -> StepOperations | None:
    """The same, or what its forward alone has shown of the host, where its backward could not be
    traced."""
    return None if window.settings is None else window.settings.step_operations


def constant_function(window: RunFacts) -> str:
    """ "Net.normal": which computes most of what is the same in each step, where that is a cause;
    "" without one."""
    seen = traced(window)
    found = None if seen is None else seen.constant
    if seen is None or found is None or found.us < CONTRIBUTOR * seen.us:
        return ""
    return found.place.rpartition(" (")[0]


def place_of_most(window: RunFacts) -> tuple[Evidence, ...]:
    """ "69% of the operations' time in a traced step is at Head.forward (fpn.py:127), 40% of it
    convolution"; nothing where no function has so much."""
    seen, first = traced(window), costliest(window)
    if seen is None or first is None:
        return ()
    text = f"{percent(first.us / seen.us)} of the operations' time in a traced step is at "
    text += f"{shown(first.place)}, {percent(first.operation_us / max(1, first.us))} of it "
    text += f"{first.operation}"
    return (Evidence(text, source(window), first.us / seen.us),)


def castable(window: RunFacts) -> float:
    """Of a traced step the part, 0 to 1, in operations that autocast computes in half precision; 1
    where none was traced."""
    seen = traced(window)
    taken = None if seen is None else seen.castable_us
    return 1.0 if seen is None or taken is None else min(1.0, taken / seen.us)


def source(window: RunFacts) -> EvidenceSource:
    """What has timed the operations."""
    return "event" if window.gpu_present else "hook"
