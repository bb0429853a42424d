"""Stacks for speedscope: what its format asks for, by state."""

import json
from typing import Any

from gpuwatch.tui.formats.speedscope import speedscope_of
from gpuwatch.tui.model.stack_trees import Merged, StacksOf, StackTrees
from gpuwatch.tui.verdict.stack_samples import Stacks

NOTHING = Stacks(0, (), 0, (), None)
WAITING = Merged("main", ("train (train.py:8)", "wait (threading.py:359)"), 30)
COMPUTING = Merged("main", ("train (train.py:9)", "forward (net.py:3)"), 10)
DECODING = Merged("workers", ("_worker_loop (torch/utils/data/_utils/worker.py:3)",), 40)


def of(*merged: Merged) -> StacksOf:
    return StacksOf(NOTHING, (), merged)


def written() -> dict[str, Any]:
    trees = StackTrees("gpu", True, of(WAITING, COMPUTING, DECODING), of(WAITING), of(COMPUTING))
    made: dict[str, Any] = json.loads(speedscope_of(trees, "train.py"))
    return made


def test_each_state_and_role_is_a_profile() -> None:
    names = {one["name"]: one["endValue"] for one in written()["profiles"]}
    assert names == {
        "main, GPU idle": 30,
        "main, GPU busy": 10,
        "main, at any time": 40,
        "workers, at any time": 40,
        "main, waiting": 30,
    }


def test_samples_point_to_frames_and_weights_add_up() -> None:
    made = written()
    frames = made["shared"]["frames"]
    for profile in made["profiles"]:
        assert profile["type"] == "sampled"
        assert len(profile["samples"]) == len(profile["weights"])
        assert sum(profile["weights"]) == profile["endValue"] - profile["startValue"]
        assert all(0 <= at < len(frames) for stack in profile["samples"] for at in stack)
    assert {"name": "wait", "file": "threading.py", "line": 359} in frames
