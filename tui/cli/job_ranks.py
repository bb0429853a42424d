"""Another rank of a job over several hosts in the place of the one on the screen."""

from collections.abc import Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from functools import partial
from typing import TYPE_CHECKING, NamedTuple

from ..errors import GpuwatchError
from ..remote.far_clock import FarClock
from ..remote.line import begin
from ..remote.link import Began, Connects, Link, begin_watching, watch_for
from ..remote.places import Place
from ..remote.provider import RemoteProvider
from . import remote

if TYPE_CHECKING:
    from ..model.snapshot import Rank
    from ..remote.line import Line


class Wishes(NamedTuple):
    """What is wanted of the agents of a job."""

    stacks: bool
    whole_argv: bool
    keep_s: float
    every_steps: int
    """The collectives of one step in so many."""


def begin_ranks(line: "Line", pid: int, wishes: Wishes, alone: bool) -> Began:
    """Watch a rank and those beside it; `alone`: nothing but these. Raises a GpuwatchError."""
    watch = watch_for(
        pid,
        stacks=wishes.stacks,
        whole_argv=wishes.whole_argv,
        keep_s=wishes.keep_s,
        node_every=wishes.every_steps,
        ranks_alone=alone,
    )
    with remote.failing_clearly(line.place):
        return begin_watching(line, watch)


def again(began: Began) -> Connects:
    """Makes the link anew when it is lost."""
    place, pid = began.line.place, began.watch.pid
    return partial(begin, place, pid, asks=False, limit_s=remote.ANSWER_S)


def linked(began: Began) -> Link:
    """To a host whose ranks alone are wanted."""
    return Link(began, again(began), FarClock())


class JobRanks:
    """Watches another rank, on whichever host, and keeps the agents of all other hosts
    (`screens.switching.Make`). One at a time."""

    def __init__(self, shown: RemoteProvider, places: Sequence[Place], wishes: Wishes) -> None:
        self._shown = shown
        self._places = {place.name: place for place in places}
        self._wishes = wishes

    def __call__(self, rank: "Rank") -> RemoteProvider:
        """Raises a GpuwatchError; then the one that is shown is as it was."""
        before = self._shown
        place = self._places[rank.host] if rank.host else before.link.place
        left = before.link if place != before.link.place else None
        with ThreadPoolExecutor(1) as pool:
            aside = pool.submit(self._begun, left.place, left.watching.pid, True) if left else None
            try:
                began = self._begun(place, rank.pid, alone=False)
            except BaseException:
                _let_go(aside)
                raise
        beside = _result(aside)
        # Where the host that was left cannot be reached now, its link tries on as it did.
        replaced = {place.name} if beside is None else {place.name, before.link.place_name}
        others, known = before.hand_over(but=replaced)
        if beside is not None:
            others.append(linked(beside))
        provider = RemoteProvider(began, again(began), others, known)
        provider.recording.tape.whole_argv = self._wishes.whole_argv
        provider.connect()
        self._shown = provider
        return provider

    def _begun(self, place: Place, pid: int, alone: bool) -> Began:
        """Raises a GpuwatchError."""
        line = remote.reach(place, pid, asks=False)
        try:
            return begin_ranks(line, pid, self._wishes, alone)
        except BaseException:
            line.close()
            raise


def _result(aside: "Future[Began] | None") -> Began | None:
    try:
        return None if aside is None else aside.result()
    except GpuwatchError:
        return None


def _let_go(aside: "Future[Began] | None") -> None:
    if (begun := _result(aside)) is not None:
        begun.line.close()
