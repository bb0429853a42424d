"""Section `memory`: what the probe adds to the resident memory of a process that trains.

Two processes train the same, both bare at first. Then one installs the probe, and later it is
watched; what its memory grows by beyond its bare twin's is the probe's. Other pairs follow while
there is time.
"""

from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import asdict
from time import monotonic, sleep
from typing import Final

from gpuwatch.probe.wire import marks, page
from tests.bench.cost.intervals import FEWEST, Bar, interval, judged
from tests.bench.cost.machine import HOST
from tests.measuring.child import Child
from tests.measuring.claims import Claim
from tests.measuring.uses import use_of
from tests.measuring.watcher import watching
from tests.processes.monitored import pages_of, word_of

STEPS_S: Final = 2000
"""Or as many as the machine makes: the rings of marks are to be full soon."""
TURN_S: Final = 4.0
"""Between two readings, or until the rings are full."""
FULL_S: Final = 60.0
"""At most."""
LOOK_S: Final = 0.2
ANSWER_S: Final = 30.0
BAR: Final = Bar(2)


def claims(seconds: float) -> Iterator[Claim]:
    """Two rows, within about so many seconds, or what `FEWEST` pairs take."""
    more_mb: dict[str, list[float]] = {"unwatched": [], "watched": []}
    until_s = monotonic() + seconds
    while len(more_mb["watched"]) < FEWEST or monotonic() < until_s:
        for mode, mb in zip(more_mb, _pair(), strict=True):
            more_mb[mode].append(mb)
    for mode, values in more_mb.items():
        found = interval(values)
        measured, met = judged(found, BAR, "MB", 2, signed=True)
        loop = f"host, {mode}"
        figures = {"unit": "MB", **asdict(found)}
        yield Claim("resident memory", loop, measured, f"{BAR.most:g} MB", met, figures)


def _pair() -> tuple[float, float]:
    """(unwatched, watched), MB."""
    words = ["-m", "tests.bench.cost.paced", str(STEPS_S), "0", "bare"]
    with ExitStack() as stack:
        ours, twin = (stack.enter_context(Child(words, HOST.environment)) for _ in range(2))
        ours.ready()
        twin.ready()
        bare_mb = _beyond(ours, twin, "collect")
        unwatched_mb = _beyond(ours, twin, "install") - bare_mb
        with watching(ours.pid):
            return unwatched_mb, _beyond(ours, twin, "collect") - bare_mb


def _beyond(ours: Child, twin: Child, word: str) -> float:
    """What one has beyond the other some time after it was given a word, MB."""
    ours.send(word)
    ours.until("done", ANSWER_S)
    sleep(TURN_S)
    limit_s = monotonic() + FULL_S
    while pages_of(ours.pid) and word_of(ours.pid, page.WORD_MARKS) < marks.RING:
        if monotonic() > limit_s:
            raise TimeoutError("the ring of marks is not full yet")
        sleep(LOOK_S)
    for one in (ours, twin):
        one.send("collect")
        one.until("done", ANSWER_S)
    return (use_of(ours.pid).rss_bytes - use_of(twin.pid).rss_bytes) / 1e6
