"""What the parts of a run take on this machine, before its causes are made from that."""

import tempfile
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import torch
from torch.nn import functional

from generated.feeding import Pace, seconds_to_restart
from generated.models import Model, Models
from generated.spec import Spec
from generated.training import Speed, Training


def measured_speed(spec: Spec, models: Models, pace: Pace) -> Speed:
    """What the run without its causes takes on this machine."""
    bare = replace(spec, causes=(), feed="resident", sync="none", log="none", evaluation="none")
    bare = replace(bare, checkpoint_every=0, varied=False)
    guess = Speed(step_s=1.0, forward_s=1.0, pace=pace)
    with tempfile.TemporaryDirectory() as folder:
        training = Training(bare, models, guess, Path(folder))
        steps = training.steps()
        step_s = _seconds(lambda: next(steps), bare)
        with torch.no_grad():
            forward_s = _seconds(lambda: training.forward(training.resident[0]), bare)
        restart_s = compile_s = 0.0
        if spec.cause("restarts"):
            restart_s = min(seconds_to_restart(spec, training.pool) for _ in range(3))
        if spec.cause("recompiles"):
            compile_s = _compilation(models.model(spec), training)
    return Speed(step_s, forward_s, pace, restart_s, compile_s)


def _compilation(model: Model, training: Training) -> float:
    took = []
    inputs, targets = training.resident
    for _ in range(3):
        model.change_temperature()
        began = time.perf_counter()
        functional.cross_entropy(model(inputs).float(), targets).backward()
        took.append(time.perf_counter() - began)
    return min(took[1:])


def _seconds(work: Callable[[], object], spec: Spec) -> float:
    """What one call of it takes: the median of many, GPU and all."""
    for _ in range(3):
        work()
    took: list[float] = []
    began = time.perf_counter()
    while len(took) < 3 or (time.perf_counter() - began < 0.4 and len(took) < 50):
        wait_for(spec)
        turn = time.perf_counter()
        for _ in range(2):
            work()
        wait_for(spec)
        took.append((time.perf_counter() - turn) / 2)
    return sorted(took)[len(took) // 2]


def wait_for(spec: Spec) -> None:
    """Return when the GPU has done all its work."""
    if spec.device == "cuda":
        torch.cuda.synchronize()
