"""Puts the probe into a loop and takes it out again, a hundred times a minute.

`install()` and `uninstall()` would do, but a publisher takes half a second to find its level (it
binds a socket, a monitor comes, budgets fill), and in that time the machine's speed has changed by
more than the probe costs. So the process is installed once, and a switch does what can be done in a
tenth of a millisecond and leaves nothing of the probe's cost behind:

* out: the hooks are out (`in_and_out`). The publisher sleeps, and its clock stands still: a turn
  that was due in 80 ms is due 80 ms after the next "in". So a second of training with the probe has
  as many turns, of as many marks, as in a real run.
* in: the hooks are in, and the publisher's time passes.

What stays when it is out and costs a step nothing: a thread and a socket that sleep, a finder that
waits for imports, and what dynamo was made to skip.
"""

from threading import Condition, Event
from time import clock_gettime_ns, monotonic, perf_counter_ns, pthread_getcpuclockid
from types import SimpleNamespace
from typing import Any

import torch

import probe
from gpuwatch.probe import api, clock, serve
from gpuwatch.probe.loaders import look_at
from gpuwatch.probe.recorder import ENTRIES, MOST_RARE
from gpuwatch.probe.wire import page
from gpuwatch.probe.wire.marks import BATCH, FETCH_LEAVE, LOADER, NO_DETAIL
from tests.measuring.in_and_out import InAndOut

SERVE: Any = serve
"""Whose clock and whose wait are taken."""
WAIT: Any = serve.Server.wait


class OpenTime:
    """What the publisher waits on between two turns: only the time counts in which it is open.

    Free at first: the publisher waits as in a run. From the first `close` on requests are read at
    its turns and not as they come, one wake-up a second less. Whoever opens or closes it goes on
    when the publisher knows of it and sleeps again, so that its waking up falls into no block.
    """

    def __init__(self) -> None:
        self._condition = Condition()
        self._free = True
        self._open = True
        self._asked = 0
        self._answered = 0
        self._closed_ns = 0
        self._since_ns = 0
        self.waits = 0
        """Since the start; a turn may be made of several."""

    def now_ns(self) -> int:
        """perf_counter_ns, less the time in which this was closed."""
        return (perf_counter_ns() if self._open else self._since_ns) - self._closed_ns

    def wait(self, server: Any, stop: Event, seconds: float) -> None:
        """For so much open time, or until `stop`: in place of `Server.wait`."""
        self.waits += 1
        if self._free:
            WAIT(server, stop, seconds)
            return
        with self._condition:
            while not (stop.is_set() or self._free) and (seconds > 0 or not self._open):
                self._answered = self._asked
                self._condition.notify_all()
                begin_s, was_open = monotonic(), self._open
                self._condition.wait(seconds if was_open else None)
                if was_open:
                    seconds -= monotonic() - begin_s

    def close(self) -> None:
        """From now on, once a turn that is under way is over."""
        with self._condition:
            self._free = False
            self._wait_for_publisher()
            self._open, self._since_ns = False, perf_counter_ns()
            self._wait_for_publisher()

    def open(self) -> None:
        """Go on."""
        with self._condition:
            self._closed_ns += perf_counter_ns() - self._since_ns
            self._open = True
            self._wait_for_publisher()

    def nudge(self) -> None:
        """Wake the publisher and let it sleep again, as opening and closing do."""
        with self._condition:
            self._wait_for_publisher()

    def free(self) -> None:
        """Let the publisher wait as in a run. It is open."""
        with self._condition:
            self._free = True
            self._condition.notify_all()

    def _wait_for_publisher(self) -> None:
        self._asked += 1
        self._condition.notify_all()
        while self._answered != self._asked:
            self._condition.wait()


class Switch:
    """The installed probe, in or out. It is in at first. torch has been imported before."""

    def __init__(self) -> None:
        probe.install()
        assert api._installed is not None
        assert api._installed._armed is not None
        self._installed = api._installed
        self._recorder = api._installed.recorder
        publisher: Any = api._installed._armed._publisher
        self._time = OpenTime()
        timed = self._time
        SERVE.Server.wait = lambda server, stop, seconds: timed.wait(server, stop, seconds)
        SERVE.clock = SimpleNamespace(now_ns=self._time.now_ns)
        assert publisher.ident
        self._hooks = InAndOut(self._installed)
        self._publisher_clock = pthread_getcpuclockid(publisher.ident)

    @property
    def endpoint(self) -> str:
        """Where a monitor finds the probe."""
        assert self._installed._armed is not None
        endpoint = self._installed._armed._identity.endpoint
        assert endpoint is not None
        return endpoint

    @property
    def watched(self) -> bool:
        """Whether the probe knows of a monitor."""
        return self._recorder.watched

    @property
    def turned_ns(self) -> int:
        """When the publisher last took a turn, by its own clock."""
        assert self._installed._armed is not None
        return self._installed._armed._page.words[page.WORD_HEARTBEAT]

    def fill(self) -> None:
        """Take marks until each new one takes the place of an old one, as in all but a run's first
        half minute. By the thread that trains."""
        for _ in range(MOST_RARE):
            self._recorder.mark(BATCH, torch.zeros(1), NO_DETAIL, look_at)
        for _ in range(ENTRIES // 2):
            self._recorder.mark(FETCH_LEAVE)

    def publisher_ns(self) -> int:
        """CPU time that the publisher's thread has taken."""
        return clock_gettime_ns(self._publisher_clock)

    def take_out(self) -> None:
        """Training as if the probe had never been there."""
        self._time.close()
        self._hooks.take_out()

    def put_in(self) -> None:
        """The hooks as after `install()`; the publisher sleeps until `open`."""
        self._hooks.put_in()

    def open(self) -> None:
        """The publisher's time passes, once the hooks are in and warm."""
        rare = self._recorder.rare
        for beside in [one for one in rare if one[1] in (LOADER, BATCH)]:
            rare.remove(beside)  # each `put_in` has a loader described again: no run does that
        self._time.open()

    def shake(self) -> None:
        """In and out at once, without a step. It is out. What a switch does to the interpreter
        (places it must learn again) bare blocks have before them too."""
        self._hooks.put_in()
        self._hooks.take_out()

    def nudge(self) -> None:
        """Wake the publisher and let it sleep again, as `open` and `take_out` do."""
        self._time.nudge()

    def free(self) -> None:
        """In, and the publisher serves as in a run. It is out."""
        self._hooks.put_in()
        self._time.open()
        self._time.free()

    def end(self) -> None:
        """Uninstall; it is in."""
        self._time.free()
        self._hooks.take_out()
        left = probe.uninstall()
        SERVE.clock, SERVE.Server.wait = clock, WAIT
        assert not left, left
