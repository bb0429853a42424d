"""The training side of `steps`: blocks of steps, with the hooks in and out.

`python -m tests.bench.cost.blocks SECONDS TARGET_MS…`. One process, since processes differ by more
than the probe costs, and blocks of 10 ms in the order in-out-out-in, since machines do not keep
their speed for longer: a drift falls on both alike. A third kind of block is out as well; what it
differs from "out" is the noise (A/A).

Some of what the probe does falls on few steps: the publisher takes a turn once to four times a
second. So a pair, which the arithmetic compares, is as many such rounds as one turn is apart.

For half of the time nobody looks, for the other half another process watches. Prints a JSON line a
length, for which it takes about SECONDS.
"""

import json
import random
import statistics
import subprocess
import sys
from array import array
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from time import monotonic
from typing import Any, Final

import torch

from tests.bench.cost.counters import Counters
from tests.bench.cost.intervals import IN, OUT, OUT_AGAIN, Arm, Pair
from tests.bench.cost.loop import LaunchLoop, layers_for
from tests.bench.cost.switch import Switch
from tests.measuring.one_thread import one_thread

BLOCK_S: Final = 0.01
"""With neighbours on both cores 40 s of 0.5 ms steps have an interval (95 %, A/A, CPU) of 3 us,
with blocks of 25 ms of 5 us, of 50 ms of 7 us."""
FEWEST_STEPS: Final = 5
"""Of a block."""
WARM_S: Final = 0.003
"""Steps of a block before the measured ones: the interpreter learns the places again."""
SETTLE_S: Final = 1.2
"""With the probe in, before the first pair: it looks for a device, its budget finds its level. No
longer than what follows takes."""
WINDOWS: Final = 8
FEW_WINDOWS: Final = 3
"""Of a short run, of which no row is resolved."""
WINDOW_S: Final = 1.0
"""Four turns of the publisher."""
SHORT_WINDOW_S: Final = 0.3
"""One of them, in a run that is as short."""
LIMIT_S: Final = 30.0
"""For settling."""
ROUNDS: Final[tuple[tuple[Arm, ...], ...]] = (
    (OUT_AGAIN, IN, OUT, OUT, IN, OUT_AGAIN),
    (IN, OUT_AGAIN, OUT, OUT, OUT_AGAIN, IN),
)


class Blocks:
    """A loop of one length of step, and the probe that comes and goes."""

    def __init__(self, layers: int, switch: Switch, counters: Counters) -> None:
        self._loop = LaunchLoop(layers)
        self._switch = switch
        self._counters = counters
        self._order = random.Random(0)
        step_s = min(self._loop.times_ns(5)) / 1e9
        self._steps = max(FEWEST_STEPS, round(BLOCK_S / step_s))
        self._warm_steps = max(1, round(WARM_S / step_s))
        self._hooked_ns = array("q", [0]) * self._steps

    def settle(self, watched: bool, seconds: float) -> None:
        """Train with the probe in until it is used to it, as far as so many seconds need it."""
        until_s, limit_s = monotonic() + min(SETTLE_S, seconds), monotonic() + LIMIT_S
        switch = self._switch
        while monotonic() < until_s or switch.watched != watched:
            self._loop.step()
            if monotonic() > limit_s:
                raise TimeoutError("not watched" if watched else "watched still")

    def left_alone(self, seconds: float) -> list[Pair]:
        """Windows of a run whose probe stays in: in blocks the publisher's turns come three times
        as far apart, and find the caches colder."""
        fit = round(seconds / WINDOW_S)
        each_s = WINDOW_S if fit >= FEW_WINDOWS else max(SHORT_WINDOW_S, seconds / FEW_WINDOWS)
        return [{IN: self._window(each_s)} for _ in range(max(FEW_WINDOWS, min(WINDOWS, fit)))]

    def _window(self, seconds: float) -> dict[str, float]:
        before, until_s, steps = self._counters.read(), monotonic() + seconds, 0
        while monotonic() < until_s:
            self._loop.step()
            steps += 1
        after = self._counters.read()
        return {name: (after[name] - before[name]) / steps for name in before}

    def pairs(self, seconds: float) -> list[Pair]:
        """As many as fit, one at least. The probe is in before, and after."""
        self._switch.take_out()
        until_s = monotonic() + seconds
        pairs = [self._pair()]
        while monotonic() < until_s:
            pairs.append(self._pair())
        self._switch.free()
        return pairs

    def _pair(self) -> Pair:
        """Rounds up to the end of that in which the publisher took its turn."""
        used: dict[Arm, Counter[str]] = {arm: Counter() for arm in (IN, OUT, OUT_AGAIN)}
        hooked_ns: dict[Arm, array[int]] = {arm: array("q") for arm in used}
        turned_ns = self._switch.turned_ns
        while self._switch.turned_ns == turned_ns:
            for arm in self._order.choice(ROUNDS):
                used[arm].update(self._block(arm is IN))
                hooked_ns[arm].extend(self._hooked_ns)
        return {
            arm: {
                **{name: count / len(hooked_ns[arm]) for name, count in used[arm].items()},
                "hooked_ns": statistics.median(hooked_ns[arm]),
            }
            for arm in used
        }

    def _block(self, hooked: bool) -> dict[str, int]:
        switch, loop, times_ns = self._switch, self._loop, self._hooked_ns
        if hooked:
            switch.put_in()
        else:
            switch.shake()
        for _ in range(self._warm_steps):
            loop.step()
        # A waking of the publisher before each block and one after it, in every arm: on a busy
        # machine each lets a neighbour in, and the caches are cold afterwards.
        if hooked:
            switch.open()
        else:
            switch.nudge()
        before = self._counters.read()
        for at in range(len(times_ns)):
            times_ns[at] = loop.step()
        after = self._counters.read()
        if hooked:
            switch.take_out()
        else:
            switch.nudge()
        return {name: after[name] - before[name] for name in before}


@contextmanager
def monitor(endpoint: str) -> Iterator[None]:
    """Another process watches."""
    with subprocess.Popen(
        [sys.executable, "-m", "tests.bench.cost.on_call", endpoint],
        stdin=subprocess.PIPE,
        stdout=subprocess.DEVNULL,
    ) as process:
        try:
            yield
        except BaseException:
            process.kill()
            raise


def measure(layers: int, seconds: float, switch: Switch, counters: Counters) -> dict[str, Any]:
    """All modes of one length of step."""
    blocks = Blocks(layers, switch, counters)
    blocks.settle(watched=False, seconds=seconds)
    unwatched = blocks.pairs(seconds / 2)
    with monitor(switch.endpoint):
        blocks.settle(watched=True, seconds=seconds)
        left_alone = blocks.left_alone(seconds)
        watched = blocks.pairs(seconds / 2)
    seen: dict[str, list[Pair]] = {
        "unwatched": unwatched,
        "watched": watched,
        "watched, left alone": left_alone,
    }
    return {"layers": layers, **seen}


def main() -> None:
    """Ready, then a line a length."""
    seconds, *targets_ms = (float(word) for word in sys.argv[1:])
    one_thread()
    if torch.cuda.is_available():
        torch.cuda.init()
    counts = layers_for(targets_ms)
    switch = Switch()
    LaunchLoop(1).step()
    switch.fill()
    counters = Counters(switch.publisher_ns)
    print("ready", flush=True)
    sys.stdin.readline()
    for target_ms, layers in zip(targets_ms, counts, strict=True):
        seen = measure(layers, seconds, switch, counters)
        seen |= {"target_ms": target_ms, "no_instructions": counters.no_instructions}
        print(json.dumps(seen), flush=True)
    switch.end()


if __name__ == "__main__":
    main()
