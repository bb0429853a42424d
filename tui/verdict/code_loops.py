"""Loops in the user's code whose turns could be one call, by the samples that lie in them."""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from .code_places import BETWEEN, main_places, share_held, within
from .place_names import own_frame
from .stack_samples import FrameShare
from .statistics import Share, of_samples
from .thresholds.gpu import LOOP_SHARE
from .window import StepWindow

INSTEAD: Final = "for the whole batch, instead of one for each part of it in a loop"
MADE: Final = re.compile(r"^[^=(]*[^=!<>(]= *torch\.(\w*Tensor|tensor|as_tensor|from_numpy)\(")
"""A line that fills a batch with Python's numbers, which no gradient goes through."""
CELL: Final = re.compile(r"(LSTM|GRU|RNN)Cell\.")


@dataclass(frozen=True, slots=True)
class Loop:
    """One kind of loop, wherever it is."""

    instead: str
    """What to do instead, and where the loop is that holds most."""
    part: Share
    """Of the samples outside the backward, those in such loops…"""
    in_net: Share
    """…and of all samples those of them in a net's forward: of the time, without its backward."""
    calls_net: bool
    """A net is called in each turn, and not tensors computed alone."""
    cell: str = ""
    """ "LSTM", of a loop over its cells; "" of others."""

    @property
    def holds_most(self) -> bool:
        """Most of the samples outside the backward are in it."""
        return self.part.mean >= LOOP_SHARE


def called_in_parts(window: StepWindow) -> Loop | None:
    """A loop that calls the net for the parts of a batch."""
    places = within(main_places(window), BETWEEN)
    below = [place for place in places if place.in_parts]
    return _loop("one call of the net", below, places) if below else None


def looped_parts(window: StepWindow) -> Loop | None:
    """A loop that calls the net, or computes tensors, for the parts of a batch."""
    places = within(main_places(window), BETWEEN)
    below = [one for one in places if (one.in_parts or one.in_turns) and one.phase != "other"]
    below = [one for one in below if not MADE.search(one.line)]
    if not below:
        return None
    calls_net = bool(_most(below).in_parts)
    what = "one call of the net" if calls_net else "one tensor expression"
    return _loop(what, below, places, calls_net)


def looped_cells(window: StepWindow) -> Loop | None:
    """A loop over a recurrent cell, of which a layer takes all time steps at once."""
    places = within(main_places(window), BETWEEN)
    looped = [place for place in places if CELL.match(place.frame)]
    if not looped:
        return None
    cell = looped[0].frame.partition("Cell")[0]
    where = own_frame(looped[0]) or looped[0].frame
    text = f"nn.{cell} instead of {cell}Cell in a loop ({where}), if it is not fed with its own "
    text += "answers: all time steps in one call"
    return Loop(text, _part(looped, places), _in_net(looped), calls_net=True, cell=cell)


def _loop(
    what: str, below: Sequence[FrameShare], places: Sequence[FrameShare], calls_net: bool = True
) -> Loop:
    most = _most(below)
    where = most.in_parts or most.in_turns
    text = f"{what} {INSTEAD} ({where})"
    return Loop(text, _part(below, places), _in_net(below), calls_net)


def _most(places: Sequence[FrameShare]) -> FrameShare:
    return max(places, key=lambda place: place.share)


def _part(some: Sequence[FrameShare], places: Sequence[FrameShare]) -> Share:
    whole = share_held(places)
    return of_samples(share_held(some) / whole, whole * max(place.samples for place in places))


def _in_net(some: Sequence[FrameShare]) -> Share:
    held = share_held([place for place in some if place.in_net])
    return of_samples(held, max(place.samples for place in some))
