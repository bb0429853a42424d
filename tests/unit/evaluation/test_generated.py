"""Generated runs: what a seed stands for, and which changes to it are measured."""

from collections import Counter
from dataclasses import replace
from typing import get_args

import msgspec
import pytest

from evaluation.examined import advised_switch
from evaluation.verdict_track import Judgement
from generated.draw import LEAST, MOST, RHYTHMS, draw
from generated.spec import CauseName, Device, Spec, half_of
from generated.switches import KEPT, STEADY, STEP_GRAPH, UNCAPTURED, UNREAD, WORKERS, switches
from generated.turns import Gain
from gpuwatch.tui.verdict.findings import Kind

DEVICES: tuple[Device, ...] = ("cpu", "cuda")
SEEDS = range(400)


@pytest.mark.parametrize("device", DEVICES)
def test_a_seed_always_stands_for_the_same_run(device: Device) -> None:
    assert [draw(seed, device) for seed in SEEDS] == [draw(seed, device) for seed in SEEDS]
    assert len({draw(seed, device) for seed in SEEDS}) == len(SEEDS)


def test_even_seeds_are_for_development_and_odd_ones_for_the_report() -> None:
    assert {half_of(seed) for seed in range(0, 100, 2)} == {"development"}
    assert {half_of(seed) for seed in range(1, 100, 2)} == {"report"}
    assert draw(7, "cpu").half == "report"


@pytest.mark.parametrize("device", DEVICES)
def test_every_cause_of_a_device_and_every_value_of_an_axis_is_drawn(device: Device) -> None:
    specs = [draw(seed, device) for seed in SEEDS]
    causes = {cause.name for spec in specs for cause in spec.causes}
    without_gpu = {"statistics", "norms", "classes", "pieces", "cells", "full_precision"}
    without_gpu |= {"pageable", "tiny_copies", "empty_cache"}
    assert causes == set(get_args(CauseName)) - (without_gpu if device == "cpu" else set())
    for axis, least in (("family", 7), ("size", 3), ("feed", 3), ("sync", 4), ("optimizer", 4)):
        assert len({getattr(spec, axis) for spec in specs}) == least, axis
    counts = Counter(len(spec.causes) for spec in specs)
    assert set(counts) == {0, 1, 2}
    assert counts[0] >= len(specs) // 5, "negatives are needed too"


def test_a_net_that_reads_numbers_is_graphed_without_them() -> None:
    """Three of 88 positives named launching, and no change that launches less was measured."""
    reading = [spec for seed in SEEDS if (spec := draw(seed, "cuda")).cause("statistics")]
    compiled = [spec for spec in reading if spec.cause("recompiles") or spec.cause("cells")]
    assert len(reading) > len(compiled)
    for spec in reading:
        found = {switch.name: switch for switch in switches(spec)}
        assert "graphs" not in found
        assert (UNREAD in found) is (spec not in compiled and not spec.cause("pieces"))
        if UNREAD in found:
            changed = found[UNREAD].changed
            assert changed.graphed
            assert changed.cause("statistics") is None


def test_a_net_that_is_compiled_anew_is_graphed_without_what_changes() -> None:
    """Two of 88 positives named launching beside recompiles, which nobody had measured."""
    anew = [spec for seed in SEEDS if (spec := draw(seed, "cuda")).cause("recompiles")]
    found = [{each.name: each for each in switches(spec)}.get(STEADY) for spec in anew]
    assert any(found)
    for spec, switch in zip(anew, found, strict=True):
        other = [name for name in ("pieces", "statistics", "cells") if spec.cause(name)]
        assert (switch is None) is bool(other)
        assert switch is None or (switch.changed.graphed and not switch.changed.cause("recompiles"))


def test_a_whole_step_is_captured_where_a_graph_can_hold_it() -> None:
    for seed in SEEDS:
        spec = draw(seed, "cuda")
        found = {each.name: each.changed for each in switches(spec)}.get(STEP_GRAPH)
        held = spec.size != "large" and not any(map(spec.cause, UNCAPTURED))
        assert (found is not None) is held
        assert found is None or (found.whole_step and not found.varied)


@pytest.mark.parametrize("device", DEVICES)
def test_the_axes_of_a_run_leave_room_for_its_causes(device: Device) -> None:
    for seed in SEEDS:
        spec = draw(seed, device)
        assert all(LEAST <= cause.strength <= MOST for cause in spec.causes)
        assert spec.evaluate_every <= RHYTHMS[spec.size][-1]
        if spec.cause("transform") or spec.cause("burst") or spec.cause("restarts"):
            assert spec.feed == "loader"
        if spec.cause("restarts"):
            assert spec.workers > 0
        if spec.cause("draw"):
            assert spec.feed == "function"
        if spec.cause("evaluations"):
            assert spec.evaluation != "none"
        if spec.cause("cells"):
            assert spec.family == "lstm"
        if spec.cause("dense_table"):
            assert spec.family == "recommender"
        if spec.cause("per_parameter"):
            assert spec.optimizer == "adamw"


@pytest.mark.parametrize("device", DEVICES)
def test_a_switch_changes_the_run_and_asks_for_a_verdict_that_there_is(device: Device) -> None:
    for seed in SEEDS:
        spec = draw(seed, device)
        found = switches(spec)
        assert len({switch.name for switch in found}) == len(found)
        assert {cause.name for cause in spec.causes} <= {switch.name for switch in found}
        for switch in found:
            assert (switch.changed == spec) is bool(switch.environment)
            assert switch.changed.seed == spec.seed
            assert set(switch.kinds) <= set(get_args(Kind))


def test_a_switch_removes_its_cause_and_leaves_the_others() -> None:
    spec = next(draw(seed, "cpu") for seed in SEEDS if len(draw(seed, "cpu").causes) == 2)
    for cause in spec.causes:
        (switch,) = [each for each in switches(spec) if each.name == cause.name]
        (other,) = [each for each in spec.causes if each != cause]
        assert other in switch.changed.causes
        missing = switch.changed.cause(cause.name) is None
        assert missing or switch.changed.table == "sparse"


def test_no_switch_waits_for_a_gpu_where_there_is_none() -> None:
    names = {switch.name for seed in SEEDS for switch in switches(draw(seed, "cpu"))}
    assert not names & {"sync", "graphs", "padded", "bf16", "copies", "compile"}
    assert KEPT in names, "a tensor on a GPU is not of memory that the kernel is asked for"
    assert not any(each.name == KEPT for seed in SEEDS for each in switches(draw(seed, "cuda")))


def test_sequences_that_differ_in_length_are_padded_for_a_graph() -> None:
    spec = replace(draw(0, "cuda"), causes=(), family="gpt", varied=True)
    (padded,) = [switch for switch in switches(spec) if switch.name == "padded"]
    assert (padded.kinds, padded.changed.varied, padded.changed.graphed) == (
        ("launch",),
        False,
        True,
    )
    assert "graphs" not in {switch.name for switch in switches(spec)}


def test_what_a_person_could_change_by_nature_is_measured_too() -> None:
    spec = replace(draw(0, "cuda"), causes=(), feed="loader", precision="tf32", optimizer="adamw")
    spec = replace(spec, varied=False, sync="item", sync_every=1, family="pointwise")
    spec = replace(spec, compiled=False, checkpoint_every=10)
    assert {switch.name for switch in switches(spec)} == {
        *("ready", "graphs", "step graph", "bf16", "copies", "fused", "compile", "sync"),
        "checkpoint",
    }


def test_a_spec_survives_being_kept() -> None:
    spec = draw(3, "cuda")
    assert msgspec.convert(msgspec.to_builtins(spec), Spec) == spec


def test_a_run_is_described_by_all_of_its_axes() -> None:
    shown = draw(0, "cpu").describe()
    assert "family " in shown
    assert "causes " in shown
    assert "draw 0." in shown


def test_without_recompiling_a_net_stays_compiled() -> None:
    """To train it uncompiled was measured once: another change, and twice the gain."""
    spec = next(draw(seed, "cpu") for seed in SEEDS if draw(seed, "cpu").cause("recompiles"))
    changed = next(each.changed for each in switches(spec) if each.name == "recompiles")
    assert changed == replace(spec, steady=True)


def test_one_more_worker_is_measured_as_it_is_advised() -> None:
    specs = [draw(seed, "cpu") for seed in SEEDS]
    spec = next(each for each in specs if each.cause("transform") and not each.workers)
    found = {each.name: each for each in switches(spec)}
    # A cause is made for `workers`: made anew for one more, a batch took longer, and 0.45x was
    # measured of it.
    assert found[WORKERS].changed == replace(spec, more_workers=1)
    gains = [Gain(name, ("input",), 2.0, 1.9, 2.1) for name in found]
    look = Judgement(1.0, 9, "input", advice="num_workers 0 → 1, about 1.5x (a batch takes 2 ms)")
    advice = {name: each.advice for name, each in found.items()}
    assert advised(look, gains, advice) == WORKERS
    two = replace(look, advice="num_workers 0 → 2, about 1.5x (a batch takes 2 ms)")
    assert advised(two, gains, advice) == "transform"


def advised(look: Judgement, gains: list[Gain], advice: dict[str, str]) -> str | None:
    found = advised_switch(look, gains, advice)
    return None if found is None else found.name
