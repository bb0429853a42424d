"""Section `memory`: what the probe adds to the memory of a process that trains.

One process: it trains bare, then with the probe, then watched. The first row is the same over two
readings of the bare one.
"""

from collections.abc import Iterator
from time import sleep
from typing import Final

from tests.bench.cost.machine import HOST
from tests.measuring.child import Child
from tests.measuring.claims import Claim
from tests.measuring.uses import Use, use_of
from tests.measuring.watcher import watching

STEPS_S: Final = 150
"""With six marks each 180 a turn of the publisher: the hooks do not rest yet, which they do above
192 (`probe.serve.RESTING_MARKS`)."""
ANSWER_S: Final = 30.0


def claims(seconds: float) -> Iterator[Claim]:
    """Three rows, within about so many seconds."""
    each_s = seconds / 4
    words = ["-m", "tests.bench.cost.paced", str(STEPS_S), "0", "bare"]
    with Child(words, HOST.environment) as child:
        child.ready()
        bare = _after(child, "go on", each_s)
        yield _row("A/A", bare, _after(child, "go on", each_s), each_s)
        bare = use_of(child.pid)
        yield _row("unwatched", bare, _after(child, "install", each_s), each_s)
        with watching(child.pid):
            yield _row("watched", bare, _after(child, "go on", each_s), each_s)


def _after(child: Child, word: str, seconds: float) -> Use:
    child.tell(word)
    child.until("done", ANSWER_S)
    sleep(seconds)
    child.tell("collect")
    child.until("done", ANSWER_S)
    return use_of(child.pid)


def _row(mode: str, before: Use, after: Use, seconds: float) -> Claim:
    more = {
        name: (getattr(after, name) - getattr(before, name)) / 1e6
        for name in ("rss_bytes", "pss_bytes")
    }
    measured = f"{more['rss_bytes']:+.1f} MB resident, {more['pss_bytes']:+.1f} MB PSS"
    loop = f"{mode}, {STEPS_S} steps/s for {seconds:.0f} s"
    figures = {"mode": mode, **{name.replace("bytes", "mb"): mb for name, mb in more.items()}}
    return Claim("memory of the process", loop, measured, "", None, figures)
