"""Pausing, going back and forward: keys to the next way of looking."""

from ..model.provider import Frame, TimeTravelProvider
from ..model.view_state import ViewState, step_beside


class TimeNavigation:
    """Where in time a person is, in a run that goes on or in a recording that plays."""

    def __init__(self, picture: TimeTravelProvider) -> None:
        self._picture = picture

    def moment(self, looking: ViewState) -> Frame:
        """What there is to see."""
        return self._picture.moment(looking.held_ns)

    @property
    def hurries(self) -> bool:
        """What was asked for lies far ahead in a recording, and comes over several frames."""
        return self._picture.hurries

    def paused(self, looking: ViewState) -> ViewState:
        """Held where it is; or, if it was held, going on."""
        if looking.held_ns is not None:
            return looking.following()
        return looking.held(self._at_ns(looking))

    def back(self, looking: ViewState, by: int) -> ViewState:
        """So many parts of the window later, or earlier: below 0, which holds a recording too."""
        if by < 0 and looking.held_ns is None:
            looking = looking.held(self._at_ns(looking))
        return self._at(looking, self._at_ns(looking) + by * looking.by_ns)

    def one_step(self, looking: ViewState, by: int) -> ViewState:
        """At the start of the step before (-1) or after (+1); where none is known as it was. The
        step before holds a recording too."""
        if by < 0 and looking.held_ns is None:
            looking = looking.held(self._at_ns(looking))
        at_ns = self._at_ns(looking)
        start_ns = self._step_beside(looking, at_ns, by)
        if start_ns is None and by > 0 and looking.held_ns is not None and self._picture.plays:
            # Of a recording the steps are known as far as it was played.
            looking = self._at(looking, at_ns + looking.by_ns)
            start_ns = self._step_beside(looking, at_ns, by)
        return looking if start_ns is None else self._at(looking, start_ns)

    def _step_beside(self, looking: ViewState, at_ns: int, by: int) -> int | None:
        saw = self.moment(looking).snapshot.sawtooth
        return step_beside(saw.step_starts_ns if saw is not None else (), at_ns, by)

    def end(self, looking: ViewState, by: int) -> ViewState:
        """At the first moment (-1), or the last (+1): of a run that goes on that is now."""
        reach = self._picture.reach
        if by > 0 and not self._picture.plays:
            return looking.following()
        return self._at(looking, reach.latest_ns if by > 0 else reach.earliest_ns)

    def change_speed(self, by: int) -> bool:
        """Twice as fast, or half (-1); False where nothing plays."""
        self._picture.change_speed(by)
        return self._picture.plays

    def _at(self, looking: ViewState, t_ns: int) -> ViewState:
        """A recording that plays goes on from there; everything else is held there."""
        if looking.held_ns is None and self._picture.plays:
            self._picture.go_to(self._picture.reach.nearest(t_ns))
            return looking
        return looking.at(t_ns, self._picture.reach)

    def _at_ns(self, looking: ViewState) -> int:
        if looking.held_ns is not None:
            return looking.held_ns
        return self.moment(looking).newest_ns
