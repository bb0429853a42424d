"""A loop of bare hook calls: `python -m tests.bench.cost.hook_calls STEPS_S SECONDS`.

Torch itself does not train as fast. It makes one step, says "ready", makes the others at a line,
and says at the end how many marks those were.
"""

import json
import sys
from collections.abc import Callable
from time import monotonic, sleep
from types import SimpleNamespace
from typing import Any, Final

import torch
import torch.optim.optimizer

import probe
from gpuwatch.probe import api
from gpuwatch.probe.hooks import backward, dataloader
from gpuwatch.probe.loaders import LoaderWatch
from gpuwatch.probe.recorder import Recorder
from gpuwatch.probe.wire.marks import FETCH_ENTER, word_of
from tests.bench.cost.marks import STEP

BURST_S: Final = 0.001


def hook_calls(recorder: Recorder) -> Callable[[], None]:
    """A step of the installed hooks around nothing: six marks."""
    nothing = SimpleNamespace(backward=lambda: None)
    backward._attach(recorder, nothing.backward, [(nothing, "backward")], always=True)
    batches = type("Batches", (), {"__next__": lambda self: None})
    iterator: Any = batches()
    watch = LoaderWatch()
    watch.known[id(iterator)] = word_of(FETCH_ENTER, id(iterator))
    dataloader._patch_next(recorder, watch, batches)
    hooks: Any = sys.modules["torch.optim.optimizer"]
    before = list(hooks._global_optimizer_pre_hooks.values())
    after = list(hooks._global_optimizer_post_hooks.values())
    optimizer = torch.optim.SGD([torch.zeros(1, requires_grad=True)])

    def step() -> None:
        next(iterator)
        nothing.backward()
        for hook in (*before, *after):
            hook(optimizer, (), {})

    return step


def main() -> None:
    """At that pace, catching up after a pause."""
    steps_s, seconds = float(sys.argv[1]), float(sys.argv[2])
    probe.install()
    assert api._installed is not None
    recorder = api._installed.recorder
    step = hook_calls(recorder)
    step()
    print("ready", flush=True)
    sys.stdin.readline()
    steps, began_s = 0, monotonic()
    while (passed_s := monotonic() - began_s) < seconds:
        for _ in range(int(passed_s * steps_s) - steps):
            step()
            steps += 1
        sleep(BURST_S)
    assert recorder.on, "a hook has failed"
    print(json.dumps({"marks": len(STEP) * steps, "steps_s": steps / seconds}), flush=True)
    sys.stdin.readline()


if __name__ == "__main__":
    main()
