"""What removing a cause alone would give, and what removing two of them together."""

from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Final, Literal

from ..allocations import segments_asked
from ..between_phases import of_closures
from ..code_places import (
    copies_to_gpu,
    empties_cache,
    fetches,
    main_places,
    share_beside_net,
    share_where,
    steps_one_by_one,
    waits_for_gpu,
)
from ..cpu_wait import starved, taken_of_threads
from ..findings import Finding, Kind
from ..gpu_clock import copies, idle_of, on_device, unmeasured
from ..idle_ledger import evaluated_within, keeps_up, loader_ends, python_within
from ..loader import loader_floor, often_late
from ..pauses import Pauses, training_restarts
from ..stack_samples import FrameShare
from ..thresholds import hysteresis as limits
from ..thresholds.gpu import (
    FORWARD_OF_BACKWARD,
    GRAPH_LEFT,
    GRAPH_LEFT_NS,
    PASS_NS_A_TENSOR,
    SEGMENT_ASKED_NS,
)
from ..window import RunFacts, StepWindow
from .measured import replay_of
from .replay import ISSUING, Removal, StepReplay, replay

_WORKING: Final = (*ISSUING, "other")
_NET: Final = ("forward", "backward")


def removal_of(kind: Kind, window: StepWindow, record: StepReplay) -> Removal | None:
    """None for what no replay can take away."""
    found = _REMOVALS.get(kind)
    return found(window, record) if found is not None else None


def _input(window: StepWindow, record: StepReplay) -> Removal:
    """Every batch lies ready, and none has to be given back. Of a loop without a loader samples
    show how long it makes them."""
    if window.sees_loading:
        ends, other_ns = loader_ends(window).mean, record.host_ns(("other",))
        left = max(0.0, 1.0 - ends * record.step_ns / other_ns) if other_ns else 1.0
        return _without("data").joined(Removal(host={"other": left}))
    return _off_forward(share_where(main_places(window), fetches), record)


def _host(window: StepWindow, record: StepReplay) -> Removal:
    """Python between the phases, and what samples show of it within; a wait for the GPU there is
    no Python."""
    return Removal(host={"other": 0.0}).joined(_off_forward(python_within(window), record))


def _off_forward(share: float, record: StepReplay) -> Removal:
    """This part of a step goes from what the host does in its forward."""
    forward_ns = record.host_ns(("forward",))
    if not (share and forward_ns):
        return Removal()
    return Removal(host={"forward": max(0.0, 1.0 - share * record.step_ns / forward_ns)})


def _optimizer(window: StepWindow, _: StepReplay) -> Removal:
    """All of it, or what a fused one leaves of a loop over the parameters."""
    looped = any(map(steps_one_by_one, main_places(window)))
    return _without("optimizer", limits.FUSED_LEFT if looped else 0.0)


def _launch(window: StepWindow, record: StepReplay) -> Removal:
    """The net's forward and backward, replayed as a graph. What else the host does in them takes
    what it took: copies, batches that the loop makes itself, Python, emptying the cache; and
    something is left of every launch. No graph holds the optimizer."""
    issued, beside_ns = record.host_ns(_NET), _beside_the_net(window, record) * record.step_ns
    net_ns = max(0.0, issued - beside_ns)
    left_ns = _passes(window) * GRAPH_LEFT_NS + GRAPH_LEFT * net_ns + beside_ns
    return Removal(host=dict.fromkeys(_NET, min(1.0, left_ns / issued) if issued else 1.0))


def _passes(window: StepWindow) -> float:
    """Forwards a step."""
    passes = sum(row.backwards for row in window.steps) / max(1, window.observed)
    return max(1.0, passes)


def _beside_the_net(window: StepWindow, record: StepReplay) -> float:
    """What the host does in the net's phases and is not the net's, as part of a step."""
    moved, places = copies(window), main_places(window)
    kept = share_where(places, empties_cache) + python_within(window)
    kept += 0.0 if window.sees_loading else share_where(places, fetches)
    by_link = 0.0
    if moved is not None and moved.by_samples:
        kept += moved.share
    elif moved is not None:
        by_link = moved.share
    kept = min(kept + of_closures(window), _not_the_nets(window, record)) + by_link
    beside = record.host_ns(("other", "evaluation")) / record.step_ns
    return kept + max(0.0, evaluated_within(window) + share_beside_net(places) - beside)


def _one_call(window: StepWindow, record: StepReplay) -> Removal | None:
    """The net called once for a whole batch, and not for its parts: each of its tensors is used
    once in a pass, and kernels that are as many times as large fill the multiprocessors. None where
    it is not known how many tensors there are, or how full the kernels are now."""
    activity, settings = window.activity, window.settings
    tensors = None if settings is None else settings.parameters
    if not tensors or activity is None or not activity.busy or activity.sm is None:
        return None
    issued = record.host_ns(_NET)
    if not issued:
        return None
    left_ns = _passes(window) * tensors * PASS_NS_A_TENSOR
    left_ns += _beside_the_net(window, record) * record.step_ns
    filled = min(1.0, activity.sm / activity.busy)
    return Removal(
        host=dict.fromkeys(_NET, min(1.0, left_ns / issued)),
        device=dict.fromkeys((*_NET, "wait"), filled),
    )


def _sync(window: StepWindow, record: StepReplay) -> Removal:
    """The host never waits for the GPU. Lines that copy wait for it too: those are the copies'."""
    moved = copies(window)
    copying = moved is not None and moved.share >= limits.CONTRIBUTOR

    def waits(place: FrameShare) -> bool:
        return waits_for_gpu(place) and not (copying and copies_to_gpu(place))

    return _without_waits(share_where(main_places(window), waits), record)


def _h2d(window: StepWindow, record: StepReplay) -> Removal:
    """No copy that the host sits in, and none that the GPU has to wait for."""
    moved = copies(window)
    if moved is None:
        return Removal()
    most = _copying(window, record) if moved.by_samples else 1.0
    removed = _without_waits(min(most, max(moved.on_lines, moved.share)), record)
    worked = record.device_ns(ISSUING)
    if not worked:
        return removed
    # What the counters call idle is all that copies can hold on the GPU's side.
    held = worked + record.device_ns(("other", "wait")) - (1 - idle_of(window)) * record.step_ns
    cut = min(moved.share * record.step_ns, max(0.0, held))
    return removed.joined(Removal(device=dict.fromkeys(ISSUING, max(0.0, 1 - cut / worked))))


def _copying(window: StepWindow, record: StepReplay) -> float:
    """The most of a step that copies can hold on the host, 0 to 1: of the net's phases what is not
    the net's, and what lies between them."""
    beside_ns = record.host_ns(("data", "other", "wait"))
    return min(1.0, _not_the_nets(window, record) + beside_ns / record.step_ns)


def _not_the_nets(window: StepWindow, record: StepReplay) -> float:
    """What the host does in the net's phases and is not the net's, as part of a step, where it
    launches all the time: what the net's forward leaves of its phase. Samples know it to a tenth
    of the step, a backward tells how long its forward takes to a fifth of that. 1 elsewhere."""
    device = on_device(window)
    if device is None or not keeps_up(device):
        return 1.0
    net_ns = FORWARD_OF_BACKWARD * record.host_ns(("backward",))
    return max(0.0, record.host_ns(("forward",)) - net_ns) / record.step_ns


def _allocator(window: StepWindow, record: StepReplay) -> Removal:
    """The lines that empty the cache, and what the host then takes to ask for the same memory
    again."""
    emptying = share_where(main_places(window), empties_cache)
    asked, issued = segments_asked(window) or 0.0, record.host_ns(_NET)
    left = max(0.0, 1.0 - asked * SEGMENT_ASKED_NS / issued) if issued else 1.0
    return _without_waits(emptying, record).joined(Removal(host=dict.fromkeys(_NET, left)))


def _evaluation(window: StepWindow, record: StepReplay) -> Removal:
    """Marked ones; else what samples show, between the phases first. What is more than the host
    works there it waits for the GPU, and for the kernels of the evaluation."""
    seen_ns = evaluated_within(window) * record.step_ns - record.host_ns(("evaluation",))
    if seen_ns <= 0:
        return _without("evaluation")
    left: dict[str, float] = {}
    for name in ("other", "forward"):
        held_ns = record.host_ns((name,))
        left[name] = max(0.0, 1.0 - seen_ns / held_ns) if held_ns else 1.0
        seen_ns = max(0.0, seen_ns - held_ns)
    waited_ns = record.device_ns(("wait",))
    kernels = max(0.0, 1.0 - seen_ns / waited_ns) if waited_ns else 1.0
    elsewhere = Removal(host=left, device={"other": left["other"], "wait": kernels})
    return _without("evaluation").joined(elsewhere)


def _without_waits(share: float, record: StepReplay) -> Removal:
    """This part of the host's time removed, its waits for the GPU first."""
    if not share:
        return Removal()
    taken_ns = share * record.step_ns
    host_ns = record.host_ns(_WORKING)
    blocked_ns = max(0.0, record.step_ns - host_ns - record.host_ns(("data",)))
    left = 1.0 - max(0.0, taken_ns - blocked_ns) / host_ns if host_ns else 1.0
    return Removal(host=dict.fromkeys(_WORKING, max(0.0, left)), waits=True)


def _without(name: str, left: float = 0.0) -> Removal:
    return Removal(host={name: left}, device={name: left})


_REMOVALS: Final[dict[Kind, Callable[[StepWindow, StepReplay], Removal]]] = {
    "input": _input,
    "host": _host,
    "optimizer": _optimizer,
    "launch": _launch,
    "sync": _sync,
    "h2d": _h2d,
    "allocator": _allocator,
    "checkpoint": lambda _, __: _without("checkpoint"),
    "evaluation": _evaluation,
    "recompile": lambda _, __: _without("compile"),
}


@dataclass(frozen=True, slots=True)
class Gain:
    """Steps a second after over before."""

    speedup: float
    speedup_is: Literal["estimate", "bound"]


@dataclass(frozen=True, slots=True)
class Replayed:
    """A window that a replay understands: with nothing removed it gives what was measured."""

    window: StepWindow
    record: StepReplay
    now_ns: float
    """A step of that replay."""

    def left(self, kinds: Collection[Kind], at_best: bool = False) -> float | None:
        """Length of a step without these causes, as part of what it is, 0 to 1; None for causes
        that no replay takes away. An epoch's start goes with the cause "input"; other steps that
        were not measured stay as they are."""
        within = self.within(kinds, at_best)
        return None if within is None else self._of_all(within, "input" in kinds)

    def in_one_call(self) -> float | None:
        """The same where the net is called once for a whole batch and not for its parts."""
        removed = _one_call(self.window, self.record)
        return None if removed is None else self._of_all(self._after(removed), False)

    def with_kernels(self, left: float) -> float:
        """The same where the net's kernels take this part of their time."""
        removed = Removal(device=dict.fromkeys((*_NET, "wait"), left))
        return self._of_all(self._after(removed), False)

    def _of_all(self, within: float, started: bool) -> float:
        """Of the whole window; `started`: epochs begin at once."""
        beside = unmeasured(self.window)
        starts = 0.0 if started else beside.starting
        return min(1.0, beside.left * within + beside.paused + starts)

    def within(
        self, kinds: Collection[Kind], at_best: bool = False, fed: bool = False
    ) -> float | None:
        """The same of the measured steps alone. Unless they are `fed`, no cause outside the loader
        may beat it, S/W: plain replay gave 1.27x for removing a sync where the loader was the
        limit, and the truth was 1.00x (simulated)."""
        removed = Removal()
        for kind in kinds:
            removal = removal_of(kind, self.window, self.record)
            if removal is None:
                return None
            removed = removed.joined(removal)
        return self._after(removed, at_best, fed or "input" in kinds)

    def _after(self, removed: Removal, at_best: bool = False, fed: bool = False) -> float:
        least = limits.LEAST_LEFT if fed else loader_floor(self.window)
        then = removed.of(self.record.at_best() if at_best else self.record)
        return min(1.0, max(limits.LEAST_LEFT, least, replay(then) / self.now_ns))


@lru_cache(maxsize=4)
def replayed(window: StepWindow) -> Replayed | None:
    """None where the GPU's clock is not read, or where a replay with nothing removed misses the
    measured step: then shares of the time are all that is known."""
    record = replay_of(window)
    if record is None:
        return None
    now_ns = replay(record)
    if abs(now_ns / record.step_ns - 1) > limits.REPLAY_WITHIN:
        return None
    return Replayed(window, record, now_ns)


def gain_without(kind: Kind, window: StepWindow, at_most: bool | None = None) -> Gain | None:
    """By replay. `at_most`: a fix leaves something of the cause; False: an estimate all the same.

    Where batches are often late, what is gained outside the loader is a bound too: whether a batch
    that comes late would still be in time is not in the record.
    """
    known = replayed(window)
    if at_most is None:
        at_most = kind != "input" and often_late(window)
    left = None if known is None else known.left((kind,), at_most)
    return None if left is None else Gain(1.0 / left, "bound" if at_most else "estimate")


def gain_of_one_call(window: StepWindow) -> Gain | None:
    """Of a net that is called for the parts of a batch one by one: called for all of it instead."""
    known = replayed(window)
    left = None if known is None else known.in_one_call()
    return None if left is None else Gain(1.0 / left, "estimate")


def gain_of_kernels(window: StepWindow, left: float) -> Gain | None:
    """Of kernels of the net that take this part of their time, 0 to 1. A bound where the GPU was
    never short of work: how long the host alone would take is not known then."""
    known = replayed(window)
    if known is None:
        return None
    unknown = not known.record.host_ns(_NET)
    return Gain(1.0 / known.with_kernels(left), "bound" if unknown else "estimate")


def gain_of_pauses(kind: Kind, window: StepWindow, found: Pauses) -> Gain | None:
    """The same for pauses that are rarer than a window is long, by the mean step over enough of
    them; without a GPU by what they take. Steps between them stay what they are at least, and
    workers that end with their epoch make no batches in the evaluation after it."""
    known = replayed(window)
    fed = kind == "evaluation" and training_restarts(window)
    left = None if known is None else known.within((kind,), fed=fed)
    if known is None or left is None or found.mean_ns <= 0:
        return gain_on_the_host(window, found.share.mean)
    after_ns = max(found.step_ns, left * known.record.step_ns)
    return Gain(max(1.0, found.mean_ns / after_ns), "estimate")


def gain_on_the_host(window: StepWindow, share: float, frees_cores: bool = False) -> Gain | None:
    """Without a GPU: the host's phases are the truth, and one after the other, so that what lies
    beside the cause is what is left. None with a GPU.

    `frees_cores`: the loader's work goes too, and with it the wait for cores that its processes
    have; else the loader may be the limit next.
    """
    if window.gpu_present:
        return None
    least, left = loader_floor(window), 1.0 - share
    if frees_cores:
        lack, workers = starved(window), window.loaders and window.loaders[0].num_workers
        own = 0.0
        if lack is not None and workers:
            # Without workers the threads of the net alone wait for each other, and go on to.
            own = lack.share - lack.by_quota - (lack.by_others or 0.0)
        own = max(own, taken_of_threads(window))
        least, left = 0.0, left * (1.0 - own)
    return Gain(1.0 / min(1.0, max(limits.LEAST_LEFT, least, left)), "estimate")


def either_of(top: Finding, others: Sequence[Finding], window: RunFacts) -> tuple[Kind, ...]:
    """The kinds among `others` of which each alone, as `top` alone, gives 70 % of what both give.
    Their gains are the same time, seen twice: never to be added."""
    known = replayed(window) if others else None
    alone = None if known is None else known.left((top.kind,))
    if known is None or alone is None:
        return ()
    found: list[Kind] = []
    for other in others:
        theirs = known.left((other.kind,))
        both = known.left((top.kind, other.kind))
        if theirs is None or both is None:
            continue
        joint = 1.0 - both
        if joint > limits.ENTER_SHARE and 1.0 - max(alone, theirs) >= limits.JOINT * joint:
            found.append(other.kind)
    return tuple(found)


def with_the_other_way(
    top: Finding, others: Sequence[Finding], either: tuple[Kind, ...]
) -> Finding:
    """`top` with the alternative right after its own first action."""
    ways = [
        f"or instead: {other.advice[0]} (either fix gives about the same, both hardly more)"
        for other in others
        if other.kind in either and other.advice and not _same(top, other)
    ]
    return replace(top, advice=(*top.advice[:1], *ways, *top.advice[1:]))


def _same(top: Finding, other: Finding) -> bool:
    """The same action removes both: launches that are the optimizer's."""
    return bool(top.advice) and top.advice[0] in other.advice[0]
