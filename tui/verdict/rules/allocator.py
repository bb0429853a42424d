"""The allocator works in the loop: its cache is emptied, or it has to be emptied to go on."""

from ..code_places import (
    EMPTYING_CALL,
    call_at,
    empties_cache,
    main_places,
    place_evidence,
    share_where,
)
from ..findings import Evidence, Finding
from ..forecast.gain import gain_without
from ..format import percent
from ..gpu_clock import idle_of, on_device
from ..loader import loader_floor
from ..scoring import cause
from ..statistics import without_rows
from ..thresholds.hysteresis import CONTRIBUTOR
from ..window import StepWindow


def allocator(window: StepWindow) -> Finding | None:
    """Time on lines that empty the cache, as far as the GPU is idle then: each call waits for
    the GPU and gives back memory that the next step asks for again."""
    known = window.activity
    if known is None or known.busy is None or on_device(window) is None:
        return None
    places = main_places(window)
    spent = share_where(places, empties_cache)
    mean = min(spent, idle_of(window))
    if mean < CONTRIBUTOR:
        return None
    emptied = [place for place in places if empties_cache(place)]
    where = [place_evidence(place, "main-thread") for place in emptied[:2]]
    retries = _retries(window)
    if retries:
        text = f"{retries} allocations had to empty the cache first"
        where.append(Evidence(text, "hook", float(retries)))
    return cause(
        "allocator",
        None,
        without_rows(mean),
        f"emptying the allocator's cache takes {percent(mean)} of each step",
        tuple(where),
        (
            f"take {call_at(emptied[0], EMPTYING_CALL)} out of the loop: PyTorch reuses its "
            "cached memory",
            "if memory is short: PYTORCH_CUDA_ALLOC_CONF=expandable_segments:True",
        ),
        loader_floor(window),
        gain_without("allocator", window),
    )


def _retries(window: StepWindow) -> int:
    first_ns = window.steps[0].start_ns if window.steps else 0
    seen = [row.retries for row in window.gpu_memory if row.t_ns >= first_ns]
    return seen[-1] - seen[0] if seen else 0
