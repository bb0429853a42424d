"""Which rules judge which window, in which order: one table for steps, one for stack samples."""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Final, Generic

from .findings import Finding, Kind
from .no_probe import causes as no_probe
from .no_probe.causes import no_cause, too_early
from .no_probe.input import input_bound as input_by_samples
from .no_probe.stalled import stalled as unmoved
from .notes import NOTES, NoteRow
from .rules.allocator import allocator
from .rules.attention_weights import attention_weights
from .rules.checkpoint import checkpoint
from .rules.communication import communication
from .rules.compute import by_parts, compute, in_fp32, of_memory
from .rules.computed_anew import computed_anew
from .rules.contention import contention, core_contention
from .rules.diagonal_normal import diagonal_normal
from .rules.distances import distances
from .rules.double_precision import in_float64
from .rules.dropout import dropout
from .rules.evaluation import evaluation, evaluation_under_way
from .rules.frozen_net import frozen_net
from .rules.growing_graph import growing_graph
from .rules.h2d import h2d
from .rules.healthy import healthy
from .rules.host import host
from .rules.incomplete import idle_gpu, incomplete, unattributed
from .rules.input import input_bound
from .rules.launch import launch
from .rules.needless_products import needless_products
from .rules.on_cpu import beside_unused_gpu
from .rules.optimizer import optimizer
from .rules.padding import padding
from .rules.penalty import penalty
from .rules.recompile import recompile
from .rules.recomputation import recomputation
from .rules.repeated_backward import repeated_backward
from .rules.repeated_layer import repeated_layer
from .rules.singular_values import singular_values
from .rules.small_operations import small_operations_in_a_loop
from .rules.stalled import ended_stalled, stalled
from .rules.straggler import imbalance, straggler
from .rules.sync import sync
from .rules.throttled import throttled
from .rules.traced_operations import traced_loop, traced_operations, unfused
from .rules.tried_kernels import tried_kernels
from .rules.unused_gradients import unused_gradients
from .rules.warming_up import collectives_due, gpu_clock_due, paused_once, warming_up
from .scoring import held_by
from .thresholds.causes import MOST_OF_IT
from .thresholds.hysteresis import CONTRIBUTOR, ENTER_LOW, SWAP_RENEWED
from .thresholds.samples import SAMPLED_ENTER_LOW, SAMPLED_MOST_CONFIDENT, SAMPLED_SWAP_RENEWED
from .window import SampleWindow, StepWindow, WindowT

Rule = Callable[[WindowT], Finding | None]
"""Judges one window; None where it has nothing to report.

A rule fires from the share at which a cause is worth mentioning (CONTRIBUTOR); whether that makes
it the verdict is the engine's business."""


@dataclass(frozen=True, slots=True)
class Rulebook(Generic[WindowT]):
    """How one kind of window is judged."""

    stalled: Rule[WindowT]
    ended_stalled: Callable[[Finding, WindowT], Finding | None]
    """Given the last verdict's finding: the run hung, and has ended."""
    too_early: Rule[WindowT]
    pending: Rule[WindowT]
    """Something that the first verdict waits for."""
    once: Rule[WindowT]
    """A pause that came once so far, and may be the cause if it comes again."""
    read_soon: Rule[WindowT]
    """A signal that may still show a cause, where none is seen yet."""
    under_way: Rule[WindowT]
    """What holds up the training now, so that no step ends: beside the verdict."""
    causes: Mapping[Kind, Rule[WindowT]]
    """What can hold a share of the time."""
    unexplained: Rule[WindowT]
    """Time in no phase: outranks a cause that holds less."""
    limits: tuple[Rule[WindowT], ...]
    """The first that fires when no cause holds and memory does not grow."""
    at_work: Rule[WindowT]
    """What the GPU is busy with: with a sub or a share it is a verdict even in few steps."""
    notes: tuple[NoteRow[WindowT], ...]
    enter_low: float
    """The lower bound of a cause's share must exceed this for it to enter."""
    swap_renewed: float
    """Part of the window that must be new before another cause takes the headline."""
    most_confident: float
    """Cap on the confidence, 0 to 1; a stall that marks show is certain."""


def _never(*_: object) -> None:
    """For what a kind of window cannot show."""


def _compute(window: StepWindow) -> Finding | None:
    """What is not needed at all comes before what could be done in another type. Dropout lies
    beside them, and so do products that need not be, a GPU that nobody uses and, on a GPU, a net
    that does not learn: its share is an estimate there."""
    frozen = frozen_net(window)
    unneeded = growing_graph(window) or unused_gradients(window)
    unneeded = unneeded or (None if window.gpu_present else frozen)
    of_net = unneeded or in_float64(window) or in_fp32(window) or by_parts(window)
    needless = needless_products(window), recomputation(window), repeated_backward(window)
    beside = dropout(window), penalty(window), beside_unused_gpu(window), frozen
    large = (
        *(attention_weights(window), distances(window), diagonal_normal(window)),
        singular_values(window),
    )
    operations = traced_operations(window)
    found = of_net, *beside, *needless, *large, *operations
    most, general = max(filter(None, found), key=held_by, default=None), unfused(window)
    if general is None or (most is not None and held_by(most) >= MOST_OF_IT * held_by(general)):
        others = *needless, *large, *operations
        return None if most is None else _with_next(most, filter(None, others))
    return general


def _with_next(most: Finding, others: Iterable[Finding]) -> Finding:
    """With what to do about the next one: half of a step in fp32 hides that a third of it need not
    be computed at all."""
    rest = [one for one in others if one.sub != most.sub and held_by(one) >= CONTRIBUTOR]
    if not rest:
        return most
    largest = max(rest, key=held_by)
    text = f"{largest.headline}: {largest.advice[0]}"
    return replace(most, advice=(*most.advice, text))


def _launch(window: StepWindow) -> Finding | None:
    """What is called, on a GPU and without one."""
    found = [computed_anew(window)]
    if window.gpu_present:
        found += [launch(window)]
    else:
        found += [small_operations_in_a_loop(window), repeated_layer(window)]
    most = max(filter(None, found), key=held_by, default=None)
    least = 0.0 if most is None else MOST_OF_IT * held_by(most)
    # What is launched so, or which line launches most, says more than that it is launched.
    known = filter(None, (tried_kernels(window), traced_loop(window)))
    return next((one for one in known if held_by(one) >= least), most)


BY_STEPS: Final[Rulebook[StepWindow]] = Rulebook(
    stalled=stalled,
    ended_stalled=ended_stalled,
    too_early=warming_up,
    pending=gpu_clock_due,
    once=paused_once,
    read_soon=collectives_due,
    under_way=evaluation_under_way,
    causes={
        "input": input_bound,
        "h2d": h2d,
        "sync": sync,
        "allocator": allocator,
        "launch": _launch,
        "host": host,
        "optimizer": optimizer,
        "checkpoint": checkpoint,
        "evaluation": evaluation,
        "recompile": recompile,
        "contention": contention,
        "throttled": throttled,
        "straggler": straggler,
        "imbalance": imbalance,
        "communication": communication,
        "compute": _compute,
        "memory-bandwidth": of_memory,
        "padding": padding,
    },
    unexplained=unattributed,
    limits=(unattributed, incomplete, healthy, idle_gpu, compute),
    at_work=compute,
    notes=NOTES,
    enter_low=ENTER_LOW,
    swap_renewed=SWAP_RENEWED,
    most_confident=1.0,
)
"""With a probe."""
BY_SAMPLES: Final[Rulebook[SampleWindow]] = Rulebook(
    stalled=unmoved,
    ended_stalled=_never,
    too_early=too_early,
    pending=_never,
    once=_never,
    read_soon=_never,
    under_way=_never,
    causes={
        "input": input_by_samples,
        "sync": no_probe.sync,
        "allocator": no_probe.allocator,
        "host": no_probe.host,
        "optimizer": no_probe.optimizer,
        "checkpoint": no_probe.checkpoint,
        "evaluation": no_probe.evaluation,
        "recompile": no_probe.recompile,
        "communication": no_probe.communication,
        "contention": core_contention,
        "throttled": throttled,
    },
    unexplained=_never,
    limits=(no_cause,),
    at_work=_never,
    notes=(),
    enter_low=SAMPLED_ENTER_LOW,
    swap_renewed=SAMPLED_SWAP_RENEWED,
    most_confident=SAMPLED_MOST_CONFIDENT,
)
"""Without a probe: the rules whose signals are there."""
