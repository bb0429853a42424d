"""What a person could change in a run, each change alone: how the truth about it is measured."""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Final

from generated.spec import Cause, CauseName, Spec

RARELY: Final = 20
"""Steps between two waits from which they cannot cost a twentieth. Nor can an evaluation that no
cause makes longer: it is one forward in ten steps or more."""
WORKERS: Final = "workers"
"""The switch to one more worker: an advice of another number is held against it alone."""
UNREAD: Final = "unread graphs"
"""The switch to a CUDA graph of a net that reads numbers of its layers, without those reads: two
changes, and right is who names the better of the two alone as well."""
STEADY: Final = "steady graphs"
"""Likewise of a net that is compiled anew now and then, without what changes."""
TOGETHER: Final[dict[str, CauseName]] = {UNREAD: "statistics", STEADY: "recompiles"}
"""These, and the cause that each is without."""
NET_GRAPH: Final = "graphs"
PADDED: Final = "padded"
"""The switch to CUDA graphs of the net; and that of one whose sequences differ in length."""
STEP_GRAPH: Final = "step graph"
"""The switch to CUDA graphs of the whole step: far more of a program changes than by any other."""
BESIDES: Final = frozenset({*TOGETHER, STEP_GRAPH})
"""Who names one of these is right where it is the best; no other verdict is wrong for it."""
KEPT: Final = "freed memory kept"
"""The switch by which glibc's allocator gives no memory back to the kernel."""
KEEP: Final = {"MALLOC_MMAP_MAX_": "0", "MALLOC_TRIM_THRESHOLD_": str(16 << 30)}
ENOUGH: Final = 2
"""Workers on a CPU, beyond which none are added."""
SPARSE: Final = ("sgd", "adamw", "adamw-fused")
"""Optimizers of which there is one for sparse gradients."""
FEEDING: Final[frozenset[CauseName]] = frozenset({"transform", "burst", "restarts", "draw"})

UNCAPTURED: Final[tuple[CauseName, ...]] = (
    "cells",
    "classes",
    "dense_table",
    "empty_cache",
    "norms",
    "per_parameter",
    "pieces",
    "recompiles",
    "statistics",
)
"""Causes with which no graph holds a whole step, or which are better removed first. Nets that are
large fill the GPU, and are not captured either."""


@dataclass(frozen=True)
class Switch:
    """One change, and the verdicts that ask for it."""

    name: str
    kinds: tuple[str, ...]
    """Kinds of verdict that are right where this change is worth most."""
    advice: str
    """Regular expression of a first action that says to make this change."""
    changed: Spec
    """The run with it."""
    environment: Mapping[str, str] = field(default_factory=dict)
    """Variables that make the change, as a process starts: it takes turns of whole processes."""


INPUT_ADVICE: Final = (
    r"num_workers|worker|prefetch|cache|once|storage|local|read|persistent|transform|decod|vectori"
    r"|augment|loader|batch(es)? ahead|fetch|token"
)
LAUNCH_ADVICE: Final = r"torch\.compile|CUDA graph|reduce-overhead|vectori|nn\.LSTM|fewer.*kernels"
OPTIMIZER_ADVICE: Final = r"fused|foreach|sparse|optimizer"
SYNC_ADVICE: Final = r"\.item|sync|on the GPU|every .* steps|detach|non_blocking|wait|finite|NaN"
HOST_ADVICE: Final = r"log|thread|between|every .* steps|less often|write|metric|process"


def switches(spec: Spec) -> tuple[Switch, ...]:
    """Every change that could make this run faster, injected causes first."""
    found = [_remove(spec, cause.name) for cause in spec.causes]
    names = {cause.name for cause in spec.causes}
    if spec.feed != "resident" and not names & FEEDING:
        found.append(_ready(spec))
    gpu = spec.device == "cuda"
    if not gpu and spec.workers < ENOUGH and names & {"transform", "burst"}:
        # The same work for each batch: a cause is made for the workers that the run has.
        more = replace(spec, more_workers=1)
        advice = rf"^num_workers {spec.workers} → {spec.workers + 1}\b"
        found.append(Switch(WORKERS, ("input",), advice, more))
    by_graph = gpu and not spec.graphed
    if by_graph and not names & {"cells", "recompiles", "pieces", "statistics"}:
        # A graph takes one shape: sequences that differ in length are padded for it.
        graphed = replace(spec, graphed=True, varied=False)
        name = PADDED if spec.varied else NET_GRAPH
        found.append(Switch(name, ("launch",), LAUNCH_ADVICE, graphed))
    if gpu and spec.size != "large" and names.isdisjoint(UNCAPTURED):
        whole = replace(spec, graphed=False, whole_step=True, varied=False)
        found.append(Switch(STEP_GRAPH, ("launch",), "whole step", whole))
    for name, cause in TOGETHER.items():
        if by_graph and names & {"cells", "pieces", *TOGETHER.values()} == {cause}:
            both = replace(spec, causes=_without(spec, cause), graphed=True, varied=False)
            found.append(Switch(name, ("launch",), LAUNCH_ADVICE, both))
    if gpu and spec.precision == "tf32":
        lower = replace(spec, precision="bf16")
        found.append(Switch("bf16", ("compute",), "bf16|autocast|bfloat16", lower))
    if gpu and spec.feed != "resident" and not spec.varied and not names & {"pageable"}:
        there = replace(spec, copies=False)
        found.append(Switch("copies", ("h2d",), r"pin_memory|non_blocking|copy|uint8", there))
    if spec.optimizer == "adamw" and "per_parameter" not in names:
        fused = replace(spec, optimizer="adamw-fused")
        found.append(Switch("fused", ("optimizer",), "fused|foreach", fused))
    rows = spec.family == "recommender" and not names & {"dense_table", "per_parameter"}
    if rows and spec.optimizer in SPARSE and not spec.clip:
        sparse = replace(spec, table="sparse")
        found.append(Switch("sparse", ("optimizer",), "sparse", sparse))
    if spec.optimizer == "hand":
        by_torch = replace(spec, optimizer="sgd")
        found.append(Switch("fused", ("optimizer",), OPTIMIZER_ADVICE, by_torch))
    if gpu and spec.family == "pointwise" and not spec.compiled:
        compiled = replace(spec, compiled=True)
        kinds = ("memory-bandwidth", "launch")
        found.append(Switch("compile", kinds, "compile|fuse", compiled))
    if gpu and spec.sync != "none" and spec.sync_every < RARELY:
        free = replace(spec, sync="none")
        found.append(Switch("sync", ("sync",), SYNC_ADVICE, free))
    if spec.checkpoint_every:
        unsaved = replace(spec, checkpoint_every=0)
        found.append(Switch("checkpoint", ("checkpoint",), "checkpoint|save", unsaved))
    if not gpu:
        found.append(Switch(KEPT, ("allocator",), "MALLOC_|jemalloc|tcmalloc", spec, KEEP))
    return tuple(found)


def _ready(spec: Spec) -> Switch:
    # A function that draws batches in the loop is Python between the phases as well as input; and
    # workers on few cores take them from the training.
    also = ("host",) if spec.feed == "function" else ("contention",) if spec.workers else ()
    return Switch("ready", ("input", *also), INPUT_ADVICE, replace(spec, ready=True))


def _remove(spec: Spec, name: CauseName) -> Switch:
    without = replace(spec, causes=_without(spec, name))
    kinds, advice = _CAUSES[name]
    match name:
        case "per_parameter":
            without = replace(without, optimizer="adamw-fused")
        case "dense_table":
            # The table stays as large as it is: its gradients become sparse.
            without = replace(spec, table="sparse")
        case "full_precision":
            without = replace(without, precision="bf16")
        case "recompiles":
            # It stays compiled: a net that is not would be another change, and faster than this
            # backend.
            without = replace(spec, steady=True)
        case _:
            pass
    return Switch(name, kinds, advice, without)


def _without(spec: Spec, name: str) -> tuple[Cause, ...]:
    return tuple(each for each in spec.causes if each.name != name)


_CAUSES: Final[dict[CauseName, tuple[tuple[str, ...], str]]] = {
    "transform": (("input",), INPUT_ADVICE),
    "burst": (("input",), INPUT_ADVICE),
    "restarts": (("input",), INPUT_ADVICE),
    "draw": (("input", "host"), INPUT_ADVICE),
    "logger": (("host",), HOST_ADVICE),
    "checkpoints": (("checkpoint",), "checkpoint|save"),
    "evaluations": (("evaluation",), "evaluat|validat"),
    "per_parameter": (("optimizer",), OPTIMIZER_ADVICE),
    "dense_table": (("optimizer",), "sparse"),
    "recompiles": (("recompile",), "dynamic|pad|recompil|shape|tensor"),
    "statistics": (("sync",), SYNC_ADVICE),
    # Who reads every gradient waits in clipping, which is the optimizer's.
    "norms": (("sync", "optimizer"), SYNC_ADVICE + "|clip_grad_norm|foreach"),
    "classes": (("sync", "host"), SYNC_ADVICE + "|metric"),
    # On a GPU that they keep busy, pieces and cells one by one are slower kernels.
    "pieces": (("launch", "compute"), LAUNCH_ADVICE + r"|one call of the net"),
    "cells": (("launch", "compute"), LAUNCH_ADVICE),
    "full_precision": (("compute",), "bf16|autocast|bfloat16|TF32|tf32|matmul_precision"),
    "pageable": (("h2d", "sync"), r"pin_memory|non_blocking|copy|uint8"),
    "tiny_copies": (("h2d", "launch", "sync"), r"one copy|pack|pin_memory|copies|together"),
    "empty_cache": (("allocator",), "empty_cache"),
}
"""Kinds that are right, and what the first action says then."""
