"""What the largest layers of a net take in other formats than theirs, tried in the run itself: how
much bf16 or channels_last gives depends on the CPU, the shapes and the threads, and no table of
other machines has it (public scripts on two cores gained 0.7 to 2.4x by bf16).

Once in the life of a process, while somebody watches, on a CPU and in float32 alone. A backward of
the loop shows the layers; before later ones each is computed a few times, a part of its samples,
for some milliseconds, and then not again for `PAUSE` times as long: a twentieth of the time until
all are known, and 2 s in all at the most (0.1 to 0.6 s in 17 nets on two cores). The program's
numbers, and what it draws at random, stay as they are.
"""

import sys
from collections import Counter
from collections.abc import Callable, Iterable
from typing import Any, Final

from ..loaders import is_dispatched
from ..peers import are_commands_off
from .flags import multiplies_bf16
from .layers import Format, Layer, layer_of

FORMATS: Final = "formats"
"""As `settings.Settings` has it."""
MOST_TIMED: Final = 32
"""Different layers that are timed as they are, those with most arithmetic first."""
MOST_TRIED: Final = 8
ENOUGH: Final = 0.9
"""Of what these take, in the layers that are tried in other formats."""
FLOPS: Final = 150_000_000
"""Of a forward that is tried, for each thread: 2 to 5 ms with its backward on cores with AVX512…"""
LONG_NS: Final = 15_000_000
"""…and what such a run is cut to where it took longer: depthwise convolutions take ten times as
long for theirs, but less so of fewer samples, whose results stay in the caches."""
TIMED: Final = 2
"""Runs in each format, of which the shorter counts, behind one that warms up; one where those two
took `LONG_NS`."""
AT_ONCE_NS: Final = 40_000_000
"""Layers are tried one after the other for so long."""
PAUSE: Final = 20
MOST_NS: Final = 2_000_000_000
MOST_LOOKS: Final = 8
"""At graphs in which nothing could be tried."""


class Formats:
    """Belongs to the training thread. It holds no tensor and no node."""

    def __init__(self, now_ns: Callable[[], int]) -> None:
        self._now_ns = now_ns
        self._left: list[tuple[Layer, int]] = []
        """Layers that are to be tried, and how often a backward has each."""
        self._now_of: dict[tuple[Layer, int], float] = {}
        """What all of one backward take as they are, ns, of each that was timed."""
        self._are_chosen = False
        """All were timed, and those that take most of it are left."""
        self._took_ns = dict.fromkeys(Format, 0.0)
        """Of one backward and its forward, those that were tried."""
        self._part = 0.0
        """Of the time of all, what these take."""
        self._again_ns = 0
        self._spent_ns = 0
        self._looks = 0
        self.is_over = are_commands_off()
        """There is nothing to try, or all has been."""

    @property
    def is_planned(self) -> bool:
        """The layers are known."""
        return bool(self._left or self._now_of)

    def plan(self, nodes: Iterable[Any]) -> None:
        """Take the layers of a graph, all of whose nodes but the first these are."""
        counts = Counter(layer for node in nodes if (layer := layer_of(node)) is not None)
        most = sorted(counts.items(), key=lambda each: each[0].flops * each[1], reverse=True)
        self._left = most[:MOST_TIMED]
        self._looks += 1
        self.is_over = not self._left and self._looks >= MOST_LOOKS

    def turn(self) -> dict[str, Any]:
        """Try some, where that is due; the field, once all have been."""
        now_ns = self._now_ns()
        if not self._left or now_ns < self._again_ns or not _may_compute():
            return {}
        ended_ns = now_ns
        while self._left and ended_ns - now_ns < AT_ONCE_NS:
            try:
                self._try(self._left.pop(0))
            except RuntimeError:  # an operator that this torch has not, or no memory for it
                self._left, self._part = [], 0.0
            ended_ns = self._now_ns()
        self._again_ns = ended_ns + PAUSE * (ended_ns - now_ns)
        self._spent_ns += ended_ns - now_ns
        if self._left and self._spent_ns < MOST_NS:
            return {}
        self.is_over = True
        self._left = []
        return {FORMATS: self._found() if self._part else None}

    def _try(self, layer: tuple[Layer, int]) -> None:
        most = FLOPS * sys.modules["torch"].get_num_threads()
        if not self._are_chosen:
            self._now_of[layer] = self._times(*layer, (Format.NOW,), most)[Format.NOW]
            self._choose()
        else:
            whole = layer[0].flops * layer[1]
            most = min(most, round(LONG_NS * whole / max(1.0, self._now_of[layer])))
            for form, ns in self._times(*layer, tuple(Format), most).items():
                self._took_ns[form] += ns
            self._part += self._now_of[layer] / sum(self._now_of.values())

    def _choose(self) -> None:
        """The layers that take most of the time, once all were timed as they are."""
        if self._left:
            return
        self._are_chosen = True
        whole, taken = sum(self._now_of.values()), 0.0
        for layer in sorted(self._now_of, key=self._now_of.__getitem__, reverse=True):
            if taken < ENOUGH * whole and len(self._left) < MOST_TRIED:
                self._left.append(layer)
                taken += self._now_of[layer]

    def _found(self) -> tuple[float, int, int, int]:
        """The fields of `settings.FormatTimes`."""
        part = min(1.0, self._part)
        now, last, bf16 = (round(took / 1_000 / part) for took in self._took_ns.values())
        return part, now, last, bf16

    def _times(
        self, layer: Layer, count: int, forms: Iterable[Format], most: int
    ) -> dict[Format, float]:
        """What all of a backward's layers of that kind take in each format, ns, by runs of so much
        arithmetic: in one that is not for them as long as in the one before."""
        torch: Any = sys.modules["torch"]
        cut = layer.at_most(most)
        factor = count * layer.flops / cut.flops
        offered = cut.formats() if multiplies_bf16(torch) else cut.formats()[:-1]
        with torch.enable_grad():  # else an LSTM keeps nothing for its backward
            took = {
                form: factor * self._shortest_ns(cut.made(form))
                for form in forms
                if form in offered
            }
        before = took[Format.NOW]
        return {form: (before := took.get(form, before)) for form in forms}

    def _shortest_ns(self, run: Callable[[], None]) -> int:
        times: list[int] = []
        while len(times) < 2 or (len(times) <= TIMED and sum(times) < LONG_NS):
            begun_ns = self._now_ns()
            run()
            times.append(self._now_ns() - begun_ns)
        return min(times[1:])


def _may_compute() -> bool:
    """Nothing would see it: no autocast, mode or profiler."""
    torch: Any = sys.modules["torch"]
    profiled = getattr(torch.autograd, "_profiler_enabled", bool)
    return not (torch.is_autocast_enabled("cpu") or is_dispatched(torch) or profiled())
