"""TraceML beside us: its step around the loop, and its verdict in our words."""

import ast
from typing import Any

import pytest

from evaluation.catalogue import SCENARIOS, scenarios
from evaluation.traced_script import traced
from evaluation.under_traceml import look_of


def summary(kind: str, memory: str = "BALANCED") -> dict[str, Any]:
    """The parts of a final_summary.json of 0.5.0 that are read."""
    return {
        "duration_s": 20.0,
        "primary_diagnosis": {"kind": kind, "action": "do", "evidence": {"steps_analyzed": 300}},
        "step_memory": {"diagnosis": {"kind": memory}},
    }


@pytest.mark.parametrize(
    ("kind", "ours"),
    [
        ("INPUT_BOUND", "input"),
        ("RESIDUAL_HEAVY", "host"),
        ("NO_CLEAR_PERFORMANCE_BOTTLENECK", "healthy"),
        ("LOW_GPU_UTILIZATION_UNEXPLAINED", "incomplete"),
        ("INSUFFICIENT_STEP_TIME_DATA", "incomplete"),
    ],
)
def test_its_verdict_in_our_words(kind: str, ours: str) -> None:
    look = look_of(summary(kind))
    assert look.kind == ours
    assert look.step == 300
    assert look.advice == "do"


def test_growing_memory_counts_where_it_names_nothing_else() -> None:
    assert look_of(summary("COMPUTE_BOUND", "CREEP_CONFIRMED")).kind == "memory-growth"
    beside = look_of(summary("INPUT_BOUND", "CREEP_EARLY"))
    assert beside.kind == "input"
    assert not beside.leak
    assert look_of(summary("INPUT_BOUND", "CREEP_CONFIRMED")).leak
    assert beside.contributors == ("memory-growth",)


@pytest.mark.parametrize("scenario", scenarios(), ids=lambda each: each.name)
def test_every_scenario_can_be_instrumented(scenario: Any) -> None:
    assert traced((SCENARIOS / scenario.script).read_text()) is not None


def test_a_step_ends_where_the_run_is_asked() -> None:
    asks = "    if run.finished(1):\n        stop()\n"
    tree = traced(f"for batch in loader:\n    work(batch)\n    more()\n{asks}")
    assert tree is not None
    assert ast.unparse(tree).splitlines() == [
        "for batch in loader:",
        "    with _traced_step(locals()):",
        "        work(batch)",
        "        more()",
        "    if run.finished(1):",
        "        stop()",
    ]
    assert traced("for batch in loader:\n    work(batch)\n") is None
