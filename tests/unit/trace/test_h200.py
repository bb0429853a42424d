"""Windows of an H200 (torch 2.11, CUDA 13): what the reader says of scenarios whose cause is known.

Trimmed by `tests.gpu.deep` to what the reader uses: two steps, and one with operators.
"""

import json
from collections import defaultdict
from itertools import pairwise

import pytest

from gpuwatch.tui.trace.against import against
from gpuwatch.tui.trace.events import ACTIVITIES
from gpuwatch.tui.trace.file import CATEGORY, ROWS, file_of
from gpuwatch.tui.trace.profile import Pattern, Profile, profile_of
from gpuwatch.tui.verdict.findings import Kind
from tests.gpu.by_hand import by_hand
from tests.unit.trace.h200_windows import window

TRUTH: dict[str, tuple[Kind, Pattern | None]] = {
    "sync_items": ("sync", "sync"),
    "launch_layers": ("launch", "launch"),
    "loader_serial": ("input", "input"),
    "precision_fp32": ("compute", None),
    "pointwise_unfused": ("memory-bandwidth", None),
    "hidden_wait": ("compute", None),
    "host_metrics": ("host", "host"),
    "launch_graphed": ("launch", "launch"),
}
WITHIN = 0.03
"""Of the step: what the reader may differ from a trace read by hand."""


@pytest.fixture(scope="module")
def profiles() -> dict[str, Profile]:
    return {name: profile_of(window(name)) for name in TRUTH}


@pytest.mark.parametrize("name", TRUTH)
def test_the_cause_is_confirmed_and_others_are_not(name: str, profiles: dict[str, Profile]) -> None:
    kind, pattern = TRUTH[name]
    found = profiles[name]
    assert against(kind, found).says == "confirms"
    wrong: tuple[Kind, ...] = ("input", "sync", "launch", "h2d", "host")
    for other in wrong:
        if other != kind:
            assert against(other, found).says == "corrects", other
    if pattern is not None:
        assert found.patterns[0].pattern == pattern


@pytest.mark.parametrize("name", TRUTH)
def test_milliseconds_are_those_of_the_trace_read_by_hand(
    name: str, profiles: dict[str, Profile]
) -> None:
    times = window(name).times
    hand = by_hand(times.data, list(times.ends_ns), list(times.marks), times.anchor)
    assert hand is not None
    found = profiles[name]
    limit_ms = WITHIN * hand["step_ms"]
    inputs = [one.ns_a_step for one in found.patterns if one.pattern == "input"]
    assert found.step_ns / 1e6 == pytest.approx(hand["step_ms"], abs=limit_ms)
    assert found.compute_ns_a_step / 1e6 == pytest.approx(hand["compute_ms"], abs=limit_ms)
    assert sum(inputs) / 1e6 == pytest.approx(hand["input_ms"], abs=limit_ms)


def test_kernels_are_named_by_what_they_are(profiles: dict[str, Profile]) -> None:
    first = {name: found.kernels[0] for name, found in profiles.items()}
    assert (first["hidden_wait"].sort, first["hidden_wait"].dtype) == ("matrix product", "bf16")
    assert "8192x32768 · 32768x8192" in first["hidden_wait"].shape
    assert (first["precision_fp32"].sort, first["precision_fp32"].dtype) == (
        "matrix product",
        "fp32",
    )
    assert (first["sync_items"].sort, first["sync_items"].dtype) == ("matrix product", "tf32")
    attention = [one for one in profiles["loader_serial"].kernels if one.sort == "attention"]
    assert {one.dtype for one in attention} == {"bf16"}


def test_products_outside_of_the_tensor_cores_are_found(profiles: dict[str, Profile]) -> None:
    shares = {
        name: found.fp32_products_ns_a_step / found.step_ns for name, found in profiles.items()
    }
    assert shares["precision_fp32"] > 0.7
    assert shares["hidden_wait"] == 0
    assert shares["sync_items"] < 0.01
    assert shares["pointwise_unfused"] < 0.1, "its transposes are no products"


def test_elementwise_kernels_in_a_row_are_found(profiles: dict[str, Profile]) -> None:
    found = profiles["pointwise_unfused"]
    assert found.fusable.kernels_a_step == 24
    assert found.fusable.ns_a_step / found.step_ns > 0.4


def test_the_line_that_waits_is_named(profiles: dict[str, Profile]) -> None:
    (data,) = [one for one in profiles["loader_serial"].patterns if one.pattern == "input"]
    assert data.ns_a_step > 25e6


def test_both_recordings_are_one_file_for_perfetto() -> None:
    seen = window("launch_layers")
    assert seen.operators is not None
    made = json.loads(file_of(seen))
    parts = [json.loads(one.data)["traceEvents"] for one in (seen.operators, seen.times)]
    count = sum(map(len, parts))
    assert all(one.get("cat") != CATEGORY for one in made["traceEvents"][:count])
    first = {one["args"].get("correlation") for one in made["traceEvents"][: len(parts[0])]}
    second = {one["args"].get("correlation") for one in made["traceEvents"][len(parts[0]) : count]}
    assert not (first & second) - {None, 0}
    ours = [one for one in made["traceEvents"][count:] if one.get("cat") == CATEGORY]
    assert {one["tid"] for one in ours} == set(ROWS)


@pytest.mark.parametrize("name", TRUTH)
def test_activities_of_one_row_never_overlap(name: str) -> None:
    """Perfetto drops one that begins before the last of its row has ended."""
    rows: defaultdict[int, list[tuple[int, int]]] = defaultdict(list)
    for one in json.loads(file_of(window(name)))["traceEvents"]:
        if one["ph"] == "X" and one["cat"] in ACTIVITIES:
            start_ns = round(one["ts"] * 1e3)
            rows[one["tid"]].append((start_ns, start_ns + round(one["dur"] * 1e3)))
    for spans in rows.values():
        spans.sort()
        assert all(end_ns <= start_ns for (_, end_ns), (start_ns, _) in pairwise(spans))
    if name == "loader_serial":
        assert len(rows) == 2, "cuBLAS's split-K products overlap by 160 ns"
