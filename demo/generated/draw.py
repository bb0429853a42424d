"""A seed to a run: every axis is drawn, and none, one or two causes are injected."""

import random
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Final, TypeVar

from generated.spec import (
    Cause,
    CauseName,
    Device,
    Evaluation,
    Family,
    Feed,
    Log,
    Optimizer,
    Precision,
    Size,
    Spec,
    Sync,
    Work,
)

Choice = TypeVar("Choice")

ON_ANY: Final[tuple[CauseName, ...]] = (
    "transform",
    "transform",
    "burst",
    "restarts",
    "draw",
    "logger",
    "checkpoints",
    "evaluations",
    "per_parameter",
    "dense_table",
    "recompiles",
)
ON_GPU: Final[tuple[CauseName, ...]] = (
    "statistics",
    "norms",
    "classes",
    "pieces",
    "pieces",
    "cells",
    "full_precision",
    "full_precision",
    "pageable",
    "tiny_copies",
    "empty_cache",
)
"""Causes that need a GPU to be one: there is nothing to wait for, to launch or to copy without."""
ON_CPU: Final[tuple[CauseName, ...]] = ("pieces", "cells")
ON_CPU_FROM: Final = 2001
"""Loops of small operations cost their calls on a CPU too. Runs of earlier seeds were drawn without
them, and stay as they are."""
SOUND_FROM: Final = 100_001
"""Runs that leave little to gain, from this seed on: no cause is injected, and the axes are those
of somebody who minded them. Of the others one in twenty is a negative, too few to count false
alarms; whether one of these is, its own truth says."""
SMALL_SOUND_FROM: Final = 200_001
"""Of those, on a GPU, nets that do not fill it, from this seed on: the earlier ones are all large.
They are replayed as CUDA graphs, or launching their kernels would be the cause."""
LEAST: Final = 0.25
MOST: Final = 0.7
"""Strengths. From a quarter on, a cause that nothing hides gives 1.33x when it is removed: clear of
the 1.15 from which a run counts as a positive."""
NONE_ONE_TWO: Final = (0.3, 0.55, 0.15)
"""How often so many causes are injected."""
RHYTHMS: Final[Mapping[Size, tuple[int, ...]]] = {
    "small": (20, 40, 80),
    "medium": (20, 40),
    "large": (10,),
}
"""Steps between events. Each divides the longest, so that a turn of whole periods has them all."""
COMPILES: Final = 0.3
"""Of the families that compile within seconds."""


def draw(seed: int, device: Device) -> Spec:
    """The run of this seed: the same on every machine, whatever its speed."""
    chance = random.Random(f"generated run {seed} on {device}")
    spec = _axes(chance, seed, device)
    if seed >= SOUND_FROM:
        if device == "cpu":
            return _in_rhythm(_minded(spec, spec.size))
        if seed < SMALL_SOUND_FROM:
            return _in_rhythm(_minded(spec, "large"))
        return _in_rhythm(_graphed(_minded(spec, "small" if spec.size == "small" else "medium")))
    count = chance.choices((0, 1, 2), NONE_ONE_TWO)[0]
    on_cpu = ON_CPU if seed >= ON_CPU_FROM else ()
    possible = [*ON_ANY, *(ON_GPU if device == "cuda" else on_cpu)]
    while len(spec.causes) < count:
        name = chance.choice(possible)
        if spec.cause(name) is None and not _conflicts(spec, name):
            spec = _with(chance, spec, name)
    return _in_rhythm(spec)


def _axes(chance: random.Random, seed: int, device: Device) -> Spec:
    gpu = device == "cuda"
    families: dict[Family, float] = {
        "mlp": 2,
        "conv": 2,
        "encoder": 1.5,
        "gpt": 3,
        "lstm": 1.5,
        "recommender": 1.5,
        "pointwise": 1 if gpu else 0.5,
    }
    family = _weighted(chance, families)
    size = _weighted(chance, _SIZES[device])
    precisions: dict[Precision, float] = {"tf32": 2, "bf16": 5} if gpu else {"fp32": 1}
    feeds: dict[Feed, float] = {"loader": 6, "function": 3, "resident": 1}
    syncs: dict[Sync, float] = {"none": 4, "item": 5, "finite": 1, "synchronize": 1}
    logs: dict[Log, float] = {"none": 2, "print": 5, "file": 2}
    evaluations: dict[Evaluation, float] = {"none": 5, "loader": 2, "function": 2}
    optimizers: dict[Optimizer, float] = {"sgd": 2, "adamw": 4, "adamw-fused": 4, "hand": 1.5}
    rhythm = RHYTHMS[size]
    workers = chance.choice((0, 0, 1, 2) if not gpu else (0, 2, 4, 4, 8))
    return Spec(
        seed=seed,
        device=device,
        family=family,
        size=size,
        precision=_weighted(chance, precisions),
        compiled=gpu and family in ("mlp", "pointwise") and chance.random() < COMPILES,
        feed=_weighted(chance, feeds),
        workers=workers,
        whole_batches=family in ("mlp", "recommender", "pointwise") or chance.random() < 0.3,
        pinned=gpu and chance.random() < 0.7,
        varied=family in ("gpt", "lstm") and chance.random() < 0.2,
        sync=_weighted(chance, syncs),
        sync_every=chance.choice((1, 1, 10, *rhythm)),
        log=_weighted(chance, logs),
        log_every=chance.choice((10, *rhythm)),
        evaluation=_weighted(chance, evaluations),
        evaluate_every=rhythm[-1],
        evaluate_batches=1,
        checkpoint_every=chance.choice((0, 0, 0, rhythm[-1])),
        optimizer=_weighted(chance, optimizers),
        accumulation=chance.choice((1, 1, 1, 1, 2, 4)),
        clip=chance.random() < 0.3,
        causes=(),
    )


def _minded(spec: Spec, size: Size) -> Spec:
    """The same run with little to gain: a GPU that its kernels fill, one fused update, batches that
    are cheap or made ahead, and nothing read, evaluated or saved more often than its rhythm asks.
    """
    gpu = spec.device == "cuda"
    seldom = RHYTHMS[size][-1]
    optimizer: Optimizer = "sgd" if spec.optimizer in ("sgd", "hand") else "adamw-fused"
    return replace(
        spec,
        # The table of a recommender is updated whole, which its sparse gradients would spare.
        family="encoder" if spec.family == "recommender" else spec.family,
        size=size,
        precision="bf16" if gpu else spec.precision,
        compiled=spec.family in ("mlp", "pointwise") if gpu else spec.compiled,
        workers=max(4, spec.workers) if gpu else 0,
        whole_batches=not gpu or spec.whole_batches,
        pinned=gpu,
        varied=False,
        sync="none" if spec.sync == "synchronize" else spec.sync,
        sync_every=seldom,
        log_every=max(seldom, spec.log_every),
        evaluation="none",
        checkpoint_every=0,
        optimizer=optimizer,
    )


def _graphed(spec: Spec) -> Spec:
    """The same replayed as CUDA graphs; a pointwise net is fused by the compiler instead, which no
    graph does. No loader keeps up with small nets: their batches lie on the GPU."""
    compiled = spec.family == "pointwise"
    return replace(
        spec,
        compiled=compiled,
        graphed=not compiled,
        feed="resident" if spec.size == "small" else spec.feed,
        whole_batches=True,
    )


def _in_rhythm(spec: Spec) -> Spec:
    """A cause may have changed the size: what comes now and then comes as often as fits it."""
    most = RHYTHMS[spec.size][-1]
    return replace(
        spec,
        sync_every=min(spec.sync_every, most),
        log_every=min(spec.log_every, most),
        evaluate_every=min(spec.evaluate_every, most),
        checkpoint_every=min(spec.checkpoint_every, most),
    )


_SIZES: Final[Mapping[Device, dict[Size, float]]] = {
    "cpu": {"small": 3, "medium": 4, "large": 1},
    "cuda": {"small": 2, "medium": 3, "large": 4},
}


def _conflicts(spec: Spec, name: CauseName) -> bool:
    """Whether it cannot be in this run: another cause that was injected needs the same part."""
    feeding: tuple[CauseName, ...] = ("transform", "burst", "restarts", "draw")
    precise: tuple[CauseName, ...] = ("full_precision", "dense_table", "cells", "recompiles")
    families: tuple[CauseName, ...] = ("dense_table", "cells", "recompiles", "pieces")
    updates: tuple[CauseName, ...] = ("per_parameter", "dense_table")
    looks: tuple[CauseName, ...] = ("norms", "classes", "statistics")
    groups = (feeding, families, precise, updates, looks)
    return any(name in group and any(spec.cause(each) for each in group) for group in groups)


def _with(chance: random.Random, spec: Spec, name: CauseName) -> Spec:
    """The run with a cause, its axes such that the cause can be there."""
    strength = round(chance.uniform(LEAST, MOST), 2)
    works: Sequence[Work] = ("python", "arrays", "sleep")
    cause = Cause(name, strength, chance.choice(works))
    gpu = spec.device == "cuda"
    match name:
        case "transform":
            most = chance.choice((0, 0, 1, 2)) if not gpu else chance.choice((0, 0, 2, 4))
            spec = replace(spec, feed="loader", workers=most)
        case "burst":
            spec = replace(spec, feed="loader", workers=chance.choice((0, 0, 1)))
        case "restarts":
            spec = replace(
                spec, feed="loader", workers=chance.choice((1, 2) if not gpu else (2, 4))
            )
        case "draw":
            spec = replace(spec, feed="function")
        case "checkpoints":
            spec = replace(spec, checkpoint_every=0)
        case "evaluations":
            spec = replace(spec, evaluation=chance.choice(("loader", "function")))
        case "per_parameter":
            spec = replace(spec, optimizer="adamw", accumulation=1)
        case "dense_table":
            spec = replace(spec, family="recommender", optimizer="adamw", varied=False, clip=False)
        case "recompiles":
            # By the cause itself, for a backend that needs no other compiler.
            spec = replace(spec, family="mlp", varied=False, compiled=False, size="small")
        case "cells":
            spec = replace(spec, family="lstm", varied=False, compiled=False)
        case "full_precision":
            heavy: tuple[Family, ...] = ("mlp", "gpt", "encoder")
            family = spec.family if spec.family in heavy else chance.choice(heavy)
            spec = replace(spec, family=family, size="large", precision="fp32", varied=False)
        case "pageable" | "tiny_copies":
            feed: Feed = "loader" if spec.feed == "resident" else spec.feed
            spec = replace(spec, feed=feed, varied=False)
        case "pieces" | "statistics":
            spec = replace(spec, compiled=False)
        case _:
            pass
    return replace(spec, causes=(*spec.causes, cause))


def _weighted(chance: random.Random, weights: Mapping[Choice, float]) -> Choice:
    return chance.choices(list(weights), list(weights.values()))[0]
