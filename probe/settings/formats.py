"""What the largest layers of a net take in other formats than theirs, tried in the run itself: how
much bf16 or channels_last gives depends on the CPU, the shapes and the threads, and no table of
other machines has it (public scripts on two cores gained 0.7 to 2.4x by bf16).

Once in the life of a process, while somebody watches, on a CPU and in float32 alone. A backward of
the loop shows the layers; before later ones each is computed a few times, a part of its samples,
for some milliseconds, and then not again for `PAUSE` times as long: a twelfth of the time until
all are known, and 2 s in all at the most (0.1 to 0.6 s in 17 nets on two cores). The program's
numbers, and what it draws at random, stay as they are.
"""

import os
import sys
from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from typing import Any, Final

from ..circuit_breaker import is_users
from ..loaders import is_dispatched
from ..peers import are_commands_off
from .flags import multiplies_bf16
from .layers import PICTURE, Convolution, Format, Layer, Run, formats_of
from .net_layers import layer_of

FORMATS: Final = "formats"
"""As `settings.Settings` has it."""
MOST_TIMED: Final = 32
"""Different layers that are timed as they are, those with most arithmetic first."""
MOST_TRIED: Final = 8
ENOUGH: Final = 0.9
"""Of what these take, in the layers that are tried in other formats."""
FLOPS: Final = 300_000_000
"""Of a forward that is tried, for each core: 4 to 10 ms with its backward on cores with AVX512…"""
MOST_ELEMENTS: Final = 16_000_000
"""…and of its operands and results: 64 MB."""
TOO_LARGE: Final = 2.5
"""Times that, of a layer that cannot be cut further: it is not tried…"""
MOST_LEFT: Final = 0.25
"""…and nothing is known where such ones have so much of all arithmetic."""
LONG_NS: Final = 15_000_000
"""What a run is cut to where it took longer: depthwise convolutions take ten times as long for
their arithmetic, but less so of fewer samples, whose results stay in the caches."""
TIMED: Final = 3
"""Runs in each format, of which the shortest counts, behind one that warms up; fewer where those
took twice `LONG_NS`: one that loses its core takes 8 ms."""
SAME_NET: Final = 3
"""Backwards, one after the other, that must go through the same layers: a GAN's go through two nets
by turns, and what one of them takes is no part of the step that is known."""
AT_ONCE_NS: Final = 80_000_000
"""Layers are tried one after the other for so long."""
PAUSE: Final = 12
MOST_NS: Final = 2_000_000_000
MOST_LOOKS: Final = 8
"""At graphs in which nothing could be tried."""


class Formats:
    """Belongs to the training thread. It holds no tensor and no node."""

    def __init__(self, now_ns: Callable[[], int]) -> None:
        self._now_ns = now_ns
        self._weights: set[Any] = set()
        """Of the layers of the graph that was seen last…"""
        self._offered = frozenset(Format)
        """Formats that its layers are tried in."""
        self._same = 0
        """…and how many had the same."""
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
        """Take the layers of a graph's nodes, once as many were seen as `SAME_NET` says."""
        counts = Counter(layer for node in nodes if (layer := layer_of(node)) is not None)
        weights = {layer.weights for layer in counts}
        self._looks += 1
        if not counts:
            self.is_over = self._looks >= MOST_LOOKS
        elif self._same and weights != self._weights:
            self.is_over = True
        else:
            self._weights, self._same = weights, self._same + 1
            if self._same >= SAME_NET:
                self._left = _to_try(counts)
                if any(isinstance(one, Convolution) and one.is_broken_in_bf16 for one in counts):
                    self._offered -= {Format.BF16}  # nor is such a net advised it
                self.is_over = not self._left

    def turn(self) -> dict[str, Any]:
        """Try some, where that is due; the field, once all have been."""
        now_ns = self._now_ns()
        if not self._left or now_ns < self._again_ns or not _may_compute():
            return {}
        ended_ns = now_ns
        while self._left and ended_ns - now_ns < AT_ONCE_NS:
            try:
                self._try(self._left.pop(0))
            except (AttributeError, RuntimeError) as error:
                # An operator that this torch has not, or no memory for it: a trial ends itself, and
                # not all watching.
                if is_users(error):
                    raise
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
        most = _most_flops()
        if not self._are_chosen:
            self._now_of[layer] = self._times(*layer, (Format.NOW,), most, 1)[Format.NOW]
            self._choose()
        else:
            whole = layer[0].flops * layer[1]
            most = min(most, round(LONG_NS * whole / max(1.0, self._now_of[layer])))
            for form, ns in self._times(*layer, tuple(Format), most, TIMED).items():
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
        self, layer: Layer, count: int, forms: Iterable[Format], most: int, timed: int
    ) -> dict[Format, float]:
        """What all of a backward's layers of that kind take in each format, ns, by runs of so much
        arithmetic: in one that is not for them as long as in the one before."""
        torch: Any = sys.modules["torch"]
        cut = _cut(layer, most)
        factor = count * layer.flops / cut.flops
        offered = self._offered.intersection(formats_of(cut))
        if not multiplies_bf16(torch) or (isinstance(cut, Convolution) and cut.is_broken_in_bf16):
            offered -= {Format.BF16}
        with torch.enable_grad():  # else an LSTM keeps nothing for its backward
            runs = {form: cut.made(form) for form in forms if form in offered}
            took = {form: factor * ns for form, ns in self._shortest_ns(runs, timed).items()}
        before = took[Format.NOW]
        return {form: (before := took.get(form, before)) for form in forms}

    def _shortest_ns(self, runs: Mapping[Format, Run], timed: int) -> dict[Format, int]:
        """By turns: what comes first finds caches and memory as the program has left them."""
        times: dict[Format, list[int]] = {form: [] for form in runs}
        first_ns = self._now_ns()
        for turn in range(1 + timed):
            if turn > 1 and self._now_ns() - first_ns >= 2 * LONG_NS * len(runs):
                break
            for form, run in runs.items():
                begun_ns = self._now_ns()
                run()
                times[form].append(self._now_ns() - begun_ns)
        return {form: min(each[1:]) for form, each in times.items()}


def _to_try(counts: Mapping[Layer, int]) -> list[tuple[Layer, int]]:
    """Those that can be, with most arithmetic first; none where the rest has much of it."""
    # Such a net is tried in no other order, and not advised it either.
    keeps_order = any(
        isinstance(one, Convolution) and (len(one.operand) > PICTURE or one.is_broken_in_last)
        for one in counts
    )
    whole, most = 0, _most_flops()
    found: list[tuple[Layer, int]] = []
    for layer, count in counts.items():
        if keeps_order and isinstance(layer, Convolution):
            layer = layer._replace(may_be_last=False)
        if isinstance(layer, Convolution) and layer.is_last and layer.is_broken_in_last:
            return []  # which may break this program any time: not by a trial of ours
        whole += layer.flops * count
        cut = _cut(layer, most)
        if 0 < cut.flops < TOO_LARGE * most and cut.elements < TOO_LARGE * MOST_ELEMENTS:
            found.append((layer, count))
    found.sort(key=lambda each: each[0].flops * each[1], reverse=True)
    left = whole - sum(layer.flops * count for layer, count in found)
    return [] if left > MOST_LEFT * whole else found[:MOST_TIMED]


def _cut(layer: Layer, most: int) -> Layer:
    """At most so much arithmetic, and so many elements."""
    if not layer.flops:
        return layer
    cut: Layer = layer.at_most(most)
    if cut.elements > MOST_ELEMENTS:
        cut = layer.at_most(min(most, cut.flops * MOST_ELEMENTS // cut.elements))
    return cut


def _most_flops() -> int:
    """Of a trial, by the threads that have a core."""
    threads: int = sys.modules["torch"].get_num_threads()
    usable = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else threads
    return FLOPS * max(1, min(threads, usable))


def _may_compute() -> bool:
    """Nothing would see it: no autocast, mode or profiler."""
    torch: Any = sys.modules["torch"]
    profiled = getattr(torch.autograd, "_profiler_enabled", bool)
    return not (torch.is_autocast_enabled("cpu") or is_dispatched(torch) or profiled())
