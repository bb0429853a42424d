"""Pausing, going back and forward: from a key to the next `ViewState`."""

from ..model.provider import Frame, TimeTravelProvider, ViewState, step_beside


class TimeNavigation:
    """Where in time a person is, in a run that goes on or in a recording that plays."""

    def __init__(self, provider: TimeTravelProvider) -> None:
        self._provider = provider

    def moment(self, view: ViewState) -> Frame:
        """What there is to see."""
        return self._provider.moment(view.held_ns)

    @property
    def hurries(self) -> bool:
        """What was asked for lies far ahead in a recording, and comes over several frames."""
        return self._provider.hurries

    def paused(self, view: ViewState) -> ViewState:
        """Held where it is; or, if it was held, going on."""
        if view.held_ns is not None:
            return view.following()
        return view.held(self._at_ns(view))

    def back(self, view: ViewState, by: int) -> ViewState:
        """So many parts of the window later, or earlier: below 0, which holds a recording too."""
        if by < 0 and view.held_ns is None:
            view = view.held(self._at_ns(view))
        return self._at(view, self._at_ns(view) + by * view.by_ns)

    def one_step(self, view: ViewState, by: int) -> ViewState:
        """At the start of the step before (-1) or after (+1); where none is known as it was. The
        step before holds a recording too."""
        if by < 0 and view.held_ns is None:
            view = view.held(self._at_ns(view))
        at_ns = self._at_ns(view)
        start_ns = self._step_beside(view, at_ns, by)
        if start_ns is None and by > 0 and view.held_ns is not None and self._provider.plays:
            # Of a recording the steps are known as far as it was played.
            view = self._at(view, at_ns + view.by_ns)
            start_ns = self._step_beside(view, at_ns, by)
        return view if start_ns is None else self._at(view, start_ns)

    def _step_beside(self, view: ViewState, at_ns: int, by: int) -> int | None:
        saw = self.moment(view).snapshot.sawtooth
        return step_beside(saw.step_starts_ns if saw is not None else (), at_ns, by)

    def end(self, view: ViewState, by: int) -> ViewState:
        """At the first moment (-1), or the last (+1): of a run that goes on that is now."""
        reach = self._provider.reach
        if by > 0 and not self._provider.plays:
            return view.following()
        return self._at(view, reach.latest_ns if by > 0 else reach.earliest_ns)

    def change_speed(self, by: int) -> bool:
        """Twice as fast, or half (-1); False where nothing plays."""
        self._provider.change_speed(by)
        return self._provider.plays

    def _at(self, view: ViewState, t_ns: int) -> ViewState:
        """A recording that plays goes on from there; everything else is held there."""
        if view.held_ns is None and self._provider.plays:
            self._provider.go_to(self._provider.reach.nearest(t_ns))
            return view
        return view.at(t_ns, self._provider.reach)

    def _at_ns(self, view: ViewState) -> int:
        if view.held_ns is not None:
            return view.held_ns
        return self.moment(view).newest_ns
