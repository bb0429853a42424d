"""An optimizer that the user has written: where in it the time goes, and what could take less."""

from typing import Final

from ..code_places import (
    at_own_line,
    clips,
    in_collective,
    in_optimizer,
    is_users,
    main_places,
    multiplies,
    share_held,
)
from ..place_names import by_user_function, called_function, function_of, place_name, users_function
from ..stack_samples import FrameShare, StackPhase
from ..thresholds.causes import BY_HAND_NS
from ..window import RunFacts, StepWindow

_OF_TORCH: Final = (
    *("Adadelta", "Adafactor", "Adagrad", "Adam", "Adamax", "AdamW", "ASGD", "LBFGS", "Muon"),
    *("NAdam", "RAdam", "RMSprop", "Rprop", "SGD", "SparseAdam"),
)
FEWEST_BY_HAND: Final = 8
"""Fewer tensors are as good as together."""
MOST_OF_UPDATE: Final = 0.5
"""A function that holds less of the update's samples is not what it waits for."""
_BESIDE: Final[frozenset[StackPhase]] = frozenset(("backward", "data", "other"))
"""A loop, or a closure, that calls a backward or fetches is no part of the update."""


def own_function(window: RunFacts) -> FrameShare | None:
    """The user's function that holds most of the update's samples, be it `step` itself; None where
    a library updates, or no function does."""
    places = main_places(window)
    update = [one for one in places if one.phase == "optimizer" and not clips(one)]
    beside = {users_function(one) for one in places if one.phase in _BESIDE or one.in_net}
    own = {users_function(one) for one in update if at_own_line(one) and is_users(one)} - beside
    within = [one for one in update if users_function(one) in own and not in_optimizer(one)]
    most = by_user_function(within)
    if not most or most[0].share < MOST_OF_UPDATE * share_held(update):
        return None
    return most[0]


def function_to_spare(window: RunFacts) -> FrameShare | None:
    """The same where it is what `step` calls: that need not be done in each update, or not so."""
    most = own_function(window)
    return None if most is None or called_function(most.frame).strip("_") == "step" else most


def spare_it(window: RunFacts) -> tuple[str, ...]:
    """What can be done about that. A Shampoo of somebody's own whose inverse roots were made in
    each step, for their counter stood still, on two cores: 2.3x with every 20th."""
    called = function_to_spare(window)
    if called is None:
        return ()
    less = "do it less often, where what it makes can be kept, or in fewer, larger operations"
    return (f"{less}: {place_name(called)}",)


def by_hand(window: RunFacts) -> tuple[str, ...]:
    """A class that is none of torch's, exchanges nothing and takes long for each tensor: it goes
    through them in Python, and each operation of each is a launch of its own. TinyBERT's BertAdam
    on an H200, 75 tensors in 17.5 ms, 30 % of each step: AdamW(fused=True) gave 1.59x, its own
    step by torch._foreach_ functions 1.53x."""
    settings = window.settings
    if not isinstance(window, StepWindow) or not window.gpu_present or settings is None:
        return ()
    name, tensors = settings.optimizer, settings.parameters or 0
    if name is None or name in _OF_TORCH or settings.parameter_device == "cpu":
        return ()
    if tensors < FEWEST_BY_HAND or any(map(_is_no_launching, main_places(window))):
        return ()
    calls = sum(row.optimizer_steps for row in window.steps)
    if sum(row.optimizer_ns for row in window.steps) < BY_HAND_NS * max(1, calls * tensors):
        return ()
    return (
        f"update all {tensors} tensors together: torch.optim.AdamW(..., fused=True), where it fits "
        f"what {name} does, or torch._foreach_ functions in its step()",
    )


def _is_no_launching(place: FrameShare) -> bool:
    """An update is seen to exchange, as a sharded one does; to decompose or multiply matrices, as
    Shampoo's; or to go through groups, as a class that is made of torch's does."""
    if place.phase != "optimizer":
        return False
    together = function_of(place.frame).startswith(("_multi_tensor_", "_fused_"))
    on_matrices = "linalg" in place.frame + place.line or multiplies(place)
    return together or in_collective(place) or on_matrices
