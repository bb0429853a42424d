"""What a run is asked for while somebody watches: how PyTorch is set up, what hooks take, and what
traced steps show.

Each is loaded by the training thread, at the first mark behind the first question: the publisher's
may not import, for a child that is forked meanwhile would wait for its lock.
"""

from typing import TYPE_CHECKING, Any

from .recorder import Recorder

if TYPE_CHECKING:
    from .call_costs import CallCosts, Wrapped
    from .one_step.traces import StepTraces
    from .settings.sampler import SettingsSampler


class WatchedLooks:
    """The publisher asks; the recorder keeps what fails in the others from the user's loop."""

    def __init__(self, recorder: Recorder) -> None:
        self._recorder = recorder
        self._settings: SettingsSampler | None = None
        self._costs: CallCosts | None = None
        self._traces: StepTraces | None = None

    def ask(self) -> None:
        """For the next of each."""
        recorder = self._recorder
        if self._settings is not None:
            self._settings.ask()
        elif recorder.on:
            recorder.sample_settings_with(self._first_sample)
        if self._costs is not None:
            self._costs.ask()
        elif recorder.on:
            recorder.time_with(self._first_timed)
        if self._traces is not None:
            self._traces.ask()
        elif recorder.on and self._settings is not None:
            recorder.trace_with(self._first_trace)

    def reading(self) -> dict[str, Any]:
        """The settings, with what traced steps have shown."""
        reading = {} if self._settings is None else self._settings.reading
        return reading if self._traces is None else reading | self._traces.reading

    def costs(self) -> "tuple[int | None, Wrapped | None]":
        """ns of a mark, and of a hook's wrapper."""
        return (None, None) if self._costs is None else self._costs.reading()

    def _first_sample(self, kind: int, what: Any) -> None:
        from .settings.sampler import SettingsSampler

        self._settings = SettingsSampler(self._recorder)
        self._recorder.sample_settings_with(self._settings.at)
        self._settings.at(kind, what)

    def _first_timed(self, _: int) -> None:
        from .call_costs import CallCosts

        self._costs = CallCosts(self._recorder)
        self._recorder.time_with(self._costs.at)

    def _first_trace(self, *_: Any) -> None:
        from .one_step.traces import StepTraces

        self._traces = StepTraces(self._recorder)
        self._recorder.trace_with(self._traces.at)
