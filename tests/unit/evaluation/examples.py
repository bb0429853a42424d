"""Results made by hand."""

from typing import Any

from evaluation.result import OURS, Result
from evaluation.score import Score
from evaluation.truth import Truth

ROW: dict[str, Any] = {
    "name": "launch_layers",
    "script": "launch_layers.py",
    "title": "a hundred tiny layers",
    "shape": "MLP",
    "ids": ["S15"],
    "family": "steady",
    "half": "tune",
    "kind": "launch",
    "sub": None,
    "also_accept": ["sync"],
    "negative": False,
    "cpu": False,
    "kind_without_gpu": None,
    "sub_without_gpu": None,
    "also_accept_without_gpu": [],
    "switch": "CUDA graphs",
    "first_action": None,
    "causes": [],
    "from_step": 0,
    "scales": [1.0],
    "notes": "",
}
"""A row of the catalogue."""


def score_with(**parts: Any) -> Score:
    """A right verdict on a loader, but for `parts`."""
    fields: dict[str, Any] = {
        "kind": "input",
        "sub": "workers",
        "right": True,
        "sub_right": True,
        "right_or_second": True,
        "right_at_end": True,
        "false_alarm": False,
        "says_leak": False,
        "live": True,
        "first_right_steps": 12,
        "first_right_s": 3.0,
        "changes": 0,
        "steps_settled": 500,
        "confidence": 0.95,
        "forecast": 2.0,
        "forecast_is": "bound",
        "advice": "num_workers 2 → 8",
    }
    return Score(**{**fields, **parts})


def result_with(ours: Score, **parts: Any) -> Result:
    """A scenario with too few workers, but for `parts`."""
    truth = Truth(2.0, 1.9, 2.1, "bound", agrees=True, by_construction=False)
    fields: dict[str, Any] = {
        "scenario": "loader_workers",
        "seed": 0,
        "scale": 1.0,
        "gpu": None,
        "torch": "2.13.0",
        "negative": False,
        "kinds": ["input"],
        "sub": "workers",
        "family": "steady",
        "half": "report",
        "seconds": 60.0,
        "others_cores": None,
        "truth": truth,
        "step_ms": 40.0,
        "cost": 0.002,
        "cost_noise": 0.01,
        "data_wait": None,
        "action_is_the_switch": None,
        "tools": {OURS: ours},
    }
    return Result(**{**fields, **parts})


NEGATIVE = {
    "negative": True,
    "kinds": ["compute", "healthy"],
    "sub": None,
    "truth": Truth(1.0, 0.99, 1.01, "negative", agrees=True, by_construction=False),
}
"""What makes it a scenario without anything to fix."""
