"""Operations of a forward that the program's own lines make, and no layer of PyTorch's."""

from .code_places import at_own_line, main_places
from .place_names import by_user_function, users_function
from .stack_samples import FrameShare
from .window import StepWindow


def own_operations(window: StepWindow, least: float) -> FrameShare | None:
    """The function of the user's own whose lines compute most of the forward by themselves, with
    its part of the training thread's samples: differences of all pairs, masks of all triplets,
    neighbours within a radius. None where that is not surely `least` of the time. What of it need
    not be is not seen: it is where to look next."""
    own = [one for one in main_places(window) if one.phase == "forward" and at_own_line(one)]
    most = next(iter(by_user_function(own)), None)
    if window.stacks is None or most is None:
        return None
    held = [one for one in own if users_function(one) == users_function(most)]
    return most if window.stacks.seen(held).low >= least else None
