"""A penalty on all of a net's parameters that is a term of the loss, where the optimizer's weight
decay would do the same."""

import re
from typing import Final

from ...settings import Settings
from ..code_places import main_places
from ..findings import Evidence, Finding
from ..format import percent
from ..on_device import is_the_limit, share_of_steps
from ..place_names import by_user_function, own_frame, place_name
from ..scoring import of_net
from ..statistics import Share, product, times, within_one
from ..thresholds.hysteresis import CONTRIBUTOR
from ..window import StepWindow

OF_UPDATE: Final = {"SGD": 2.7, "Adagrad": 1.1, "RMSprop": 0.95, "Adam": 0.75}
"""Times as long as the optimizer's update of the same parameters the squares of all, their sum and
the way back take: both read and write each parameter some times over. On two cores, one thread and
two, of 30 small tensors, 53 and 8 large ones: SGD 3.6 to 6.4, with momentum 1.6 to 3.1, Adagrad 1.0
to 1.6, RMSprop 0.85 to 1.4, Adam 0.7 to 1.0…"""
FUSED: Final = 1.8
"""…and one whose update is one kernel 1.7 to 2.1."""
BY_AS_MUCH: Final = (1.0, 0.6, 1.5)
SQUARES: Final = re.compile(r"\.pow\(|\*\* ?2|square\(|penalty|regular", re.IGNORECASE)


def penalty(window: StepWindow) -> Finding | None:
    """By the time of the optimizer's update, which goes over the same memory. Nothing where a GPU
    waits for its host."""
    settings = window.settings
    seen = None if settings is None else settings.penalty
    if settings is None or seen is None or not is_the_limit(window):
        return None
    as_long = _of_update(settings)
    if as_long is None:
        return None
    update = share_of_steps(window, lambda row: row.optimizer_ns)
    over = times(Share(*BY_AS_MUCH), as_long * within_one(seen.part))
    share = product(update, over)
    if share.mean < CONTRIBUTOR:
        return None
    text = (
        f"{seen.parameters} parameters, {percent(seen.part)} of all by their size, are squared as "
    )
    text += "a term of the loss: forward and backward go over all of them"
    advice = "weight_decay in the optimizer instead (twice the factor of a sum of squares)"
    inside = [one for one in main_places(window) if one.phase == "forward" and own_frame(one)]
    if named := by_user_function(one for one in inside if SQUARES.search(one.line)):
        advice += f": {place_name(named[0])}"
    headline = f"a penalty on parameters takes {percent(share.mean)} of each step"
    evidence = Evidence(text, "hook", seen.part)
    return of_net("penalty", share, headline, (evidence,), (advice,))


def _of_update(settings: Settings) -> float | None:
    """None of an optimizer of which nothing is known, and of those whose decay is another thing
    than a penalty (AdamW)."""
    as_long = OF_UPDATE.get(settings.optimizer or "")
    return FUSED if settings.fused and as_long is not None else as_long
