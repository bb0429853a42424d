"""The training side of `steps`: blocks of steps, bare and with the probe, in random order.

`python -m tests.bench.cost.blocks SECONDS TARGET_MS…`. One process, since processes differ by more
than the probe costs, and blocks of 20 ms side by side, since machines do not keep their speed for
longer. Each round has two bare blocks, whose difference is the noise (A/A), and one
with the probe: for half of the time nobody looks, for the other half another process watches.
Prints a JSON line a length, for which it takes about SECONDS.
"""

import json
import random
import statistics
import subprocess
import sys
from collections.abc import Mapping
from time import monotonic, perf_counter_ns, thread_time_ns
from typing import Any, Final, NamedTuple

import torch

from tests.bench.cost.figures import ARMS, PROBED, Block, Round, without_pauses
from tests.bench.cost.loop import LaunchLoop, layers_for
from tests.bench.cost.run_queue import RunQueue
from tests.bench.cost.switch import Switch
from tests.measuring.one_thread import one_thread

BLOCK_S: Final = 0.02
WARM_S: Final = 0.003
"""Steps of a block before the measured ones: the interpreter learns the places again."""
SETTLE_S: Final = 1.2
"""With the probe in, before the first round: it looks for a device, its budget finds its level."""
TURN_S: Final = 0.25
REST_S: Final = 2.5
"""A group of rounds holds so much time with the probe: a turn of the publisher, or, where the hooks
rest nine turns of ten, all ten."""
WATCHED_S: Final = 5.0


class Monitor:
    """The process that watches."""

    def __init__(self) -> None:
        self._process = subprocess.Popen(
            [sys.executable, "-m", "tests.bench.cost.on_call"],
            stdin=subprocess.PIPE,
            stdout=subprocess.DEVNULL,
            text=True,
        )

    def say(self, words: str) -> None:
        """Watch, or rest."""
        assert self._process.stdin is not None
        self._process.stdin.write(words + "\n")
        self._process.stdin.flush()

    def kill(self) -> None:
        """End it."""
        self._process.kill()
        self._process.wait()


class Taken(NamedTuple):
    """One block as the clocks have it."""

    times_ns: list[int]
    """Of each step."""
    queue_ns: int
    thread_ns: int
    publisher_ns: int


class Blocks:
    """A loop of one length of step, and the probe that comes and goes. It is in between rounds'
    blocks only while it is measured."""

    def __init__(self, layers: int, switch: Switch, queue: RunQueue) -> None:
        self._loop = LaunchLoop(layers)
        self._switch = switch
        self._order = random.Random(0)
        self._queue = queue
        step_s = min(self._loop.times_ns(5)) / 1e9
        self.steps = max(1, round(BLOCK_S / step_s))
        self._warm_steps = round(WARM_S / step_s)
        self.block_s = self.steps * step_s

    def settle(self, watched: bool) -> bool:
        """Train with the probe in until it is used to it; whether its hooks rested meanwhile."""
        rested = False
        until_s = monotonic() + WATCHED_S
        while self._switch.watched != watched:
            self._loop.step()
            if monotonic() > until_s:
                raise TimeoutError("nobody watches" if watched else "somebody watches still")
        until_s = monotonic() + SETTLE_S
        while monotonic() < until_s:
            self._loop.step()
            rested |= self._switch.resting
        return rested

    def rounds(self, seconds: float) -> list[Round]:
        """As many as fit, one at least. The probe is in before, and after."""
        self._switch.take_out()
        until_s = monotonic() + seconds
        rounds: list[Round] = []
        while not rounds or monotonic() < until_s:
            arms = self._order.sample(ARMS, len(ARMS))
            rounds.append(as_blocks({arm: self._block(arm == PROBED) for arm in arms}))
        self._switch.put_in()
        return rounds

    def _block(self, probed: bool) -> Taken:
        # Two wakings of the publisher before each block and two after it, in every arm: on a busy
        # machine each lets a neighbour in, and the caches are cold afterwards.
        self._switch.shake()
        if probed:
            self._switch.put_in()
        else:
            self._switch.shake()
        self._loop.fetch()  # the first one after a switch describes the loader again
        self._loop.times_ns(self._warm_steps)
        thread_ns, publisher_ns = thread_time_ns(), self._switch.publisher_ns()
        times_ns, queue_ns = self._train()
        thread_ns = thread_time_ns() - thread_ns
        publisher_ns = self._switch.publisher_ns() - publisher_ns
        if probed:
            self._switch.take_out()
        else:
            self._switch.shake()
        self._switch.shake()
        return Taken(times_ns, queue_ns, thread_ns, publisher_ns)

    def _train(self) -> tuple[list[int], int]:
        """(each step without its wait for a core, that wait of all steps)."""
        times_ns, queued_ns = [], self._queue.waited_ns()
        before_ns = queued_ns
        for _ in range(self.steps):
            begin_ns = perf_counter_ns()
            self._loop.step()
            took_ns = perf_counter_ns() - begin_ns
            waited_ns = self._queue.waited_ns() - queued_ns
            queued_ns += waited_ns
            times_ns.append(took_ns - waited_ns)
        return times_ns, queued_ns - before_ns


def as_blocks(taken: Mapping[str, Taken]) -> dict[str, Block]:
    """One round."""
    kept = without_pauses({arm: one.times_ns for arm, one in taken.items()})
    return {
        arm: Block(
            statistics.fmean(kept[arm]) / 1e3,
            statistics.median(kept[arm]) / 1e3,
            one.queue_ns / len(one.times_ns) / 1e3,
            one.thread_ns / len(one.times_ns) / 1e3,
            one.publisher_ns / len(one.times_ns) / 1e3,
        )
        for arm, one in taken.items()
    }


def measure(
    layers: int, seconds: float, switch: Switch, queue: RunQueue, monitor: Monitor
) -> dict[str, Any]:
    """Both modes of one length of step."""
    blocks = Blocks(layers, switch, queue)
    each_s = max(0.0, seconds / 2 - SETTLE_S)
    rested = blocks.settle(watched=False)
    unwatched = blocks.rounds(each_s)
    monitor.say(f"watch {switch.endpoint}")
    blocks.settle(watched=True)
    watched = blocks.rounds(each_s)
    monitor.say("rest")
    return {
        "layers": layers,
        "steps": blocks.steps,
        "unwatched": unwatched,
        "unwatched_group": _a_group(REST_S if rested else TURN_S, blocks),
        "watched": watched,
        "watched_group": _a_group(TURN_S, blocks),
    }


def _a_group(period_s: float, blocks: Blocks) -> int:
    return max(1, round(period_s / blocks.block_s))


def main() -> None:
    """Ready, then a line a length."""
    seconds, *targets_ms = (float(word) for word in sys.argv[1:])
    one_thread()
    if torch.cuda.is_available():
        torch.cuda.init()
    monitor = Monitor()
    try:
        counts = layers_for(targets_ms)
        switch, queue = Switch(), RunQueue()
        print("ready", flush=True)
        sys.stdin.readline()
        for target_ms, layers in zip(targets_ms, counts, strict=True):
            seen = measure(layers, seconds, switch, queue, monitor)
            print(json.dumps({"target_ms": target_ms, **seen}), flush=True)
        switch.end()
    finally:
        monitor.kill()


if __name__ == "__main__":
    main()
