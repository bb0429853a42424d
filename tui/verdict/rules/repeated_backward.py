"""Several backwards of one step that go through the same graph, for losses that add up to one."""

from typing import Final

from ..code_places import main_places
from ..findings import Evidence, Finding
from ..format import percent
from ..on_device import is_clocked, share_of_steps
from ..place_names import by_user_function, own_frame, place_name
from ..scoring import of_net
from ..statistics import Share, product, times, within_one
from ..thresholds.hysteresis import CONTRIBUTOR
from ..window import StepWindow

OF_BACKWARD: Final = (0.95, 0.75, 1.0)
"""Of the backwards' time, over that part of their products: what is no product is done again too.
The least is a guess."""


def repeated_backward(window: StepWindow) -> Finding | None:
    """By the backwards' time, on the GPU's clock where that is read: each is launched again."""
    settings = window.settings
    again = None if settings is None else settings.repeated_backward
    if again is None or not is_clocked(window):
        return None
    of_backward = times(Share(*OF_BACKWARD), within_one(again.part))
    share = product(share_of_steps(window, lambda row: row.backward_ns), of_backward)
    if share.mean < CONTRIBUTOR:
        return None
    text = f"{again.backwards} backwards of a step share a graph: {percent(again.part)} of their "
    text += "products' arithmetic is done again"
    advice = "one backward from the sum of the losses, (a + b).backward() without retain_graph, "
    advice += "where nothing reads the gradients of one between"
    called = [one for one in main_places(window) if one.phase == "backward" and own_frame(one)]
    if functions := by_user_function(called):
        advice += f", in {place_name(functions[0])}"
    headline = f"going back through a graph again takes {percent(share.mean)} of each step"
    evidence = (Evidence(text, "hook", again.part),)
    return of_net("repeated-backward", share, headline, evidence, (advice,))
