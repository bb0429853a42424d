"""Snapshots as metrics."""

import re
from dataclasses import replace
from pathlib import Path

import pytest

from gpuwatch.tui.fleet.catalogue import CATALOGUE
from gpuwatch.tui.fleet.metrics import MOST_OWN_PHASES, OTHERS, PhaseNames, label_text
from gpuwatch.tui.model.snapshot import JobVerdict, PhaseStats, Snapshot, as_ended
from tests.processes.command_line import ROOT
from tests.tui.fake_run import FakeRun
from tests.tui.rank_states import eight_ranks
from tests.tui.states import ALLOCATOR, ON_GPU, a_ledger
from tests.unit.faces.pictures import BY_GPM, GPU, INPUT, STEPS, picture, young
from tests.unit.fleet.making import HISTOGRAM, as_rank, exported, values, watched
from tests.unit.verdict.jobs import job, late_each_step, rank

FLEET = ROOT / "docs" / "fleet"


def on_gpu() -> Snapshot:
    return picture(
        gpus=(GPU,),
        activity=(BY_GPM,),
        gpu_phases=ON_GPU,
        gpu_memory=(ALLOCATOR,),
        ledger=a_ledger(),
    )


def test_units_are_the_base_ones() -> None:
    found = exported(watched(on_gpu()))
    assert values(found, "gpuwatch_gpu_busy_ratio") == [pytest.approx(0.42)]
    lags = values(found, "gpuwatch_gpu_lag_seconds", phase="optimizer")
    assert lags == [pytest.approx((ON_GPU.lag_ms[3] or 0.0) / 1000)]
    assert sum(values(found, "gpuwatch_gpu_time_ratio")) == pytest.approx(1.0)
    step_ms = sum(phase.mean_ms for phase in ON_GPU.phases)
    exposed = values(found, "gpuwatch_exposed_wait_ratio")
    assert exposed == [pytest.approx(ON_GPU.exposed_ms / step_ms)]


def test_absent_is_absent_and_never_zero() -> None:
    names = {family.metric.name for family in exported(watched(young()))}
    assert "gpuwatch_steps_total" not in names
    assert "gpuwatch_verdict_share_ratio" not in names
    assert not any("memory" in name or "gpu_" in name.removeprefix("gpuwatch_") for name in names)


def test_a_gpu_without_its_clock_has_no_exposed_wait_and_a_run_without_gpu_has() -> None:
    assert values(exported(watched(picture(gpus=(GPU,)))), "gpuwatch_exposed_wait_ratio") == []
    found = exported(watched())
    assert values(found, "gpuwatch_exposed_wait_ratio") == [pytest.approx(0.57)]


def test_no_two_samples_have_the_same_labels() -> None:
    two_jobs = [
        watched(as_rank(number, 2), job=("a",), run=run)
        for run in ("one", "two")
        for number in (0, 1)
    ]
    families = exported(*two_jobs, watched(on_gpu(), run="three"))
    assert len(families) > 10
    for family in families:
        labels = [sample.labels for sample in family.samples]
        assert len(labels) == len(set(labels)), family.metric.name


def test_a_process_that_ended_shows_that_and_has_no_verdict_any_more() -> None:
    ended = as_ended(picture(histogram=HISTOGRAM), "exited normally")
    found = exported(watched(ended))
    assert values(found, "gpuwatch_target_up") == [0.0]
    assert values(found, "gpuwatch_target_state", state="ended") == [1.0]
    assert values(found, "gpuwatch_steps_total") == [STEPS.total]
    assert values(found, "gpuwatch_verdict_info") == []


def test_a_programs_own_phases_are_bounded_and_the_rest_is_one() -> None:
    names = PhaseNames()
    for epoch in range(100):
        own = tuple(PhaseStats(f"epoch {epoch} part {part}", 1.0, 0.1) for part in range(3))
        seen = picture(steps=replace(STEPS, phases=(*STEPS.phases, *own)))
        found = exported(watched(seen, phases=names))
    phases = {
        dict(sample.labels)["phase"]
        for family in found
        if family.metric.name == "gpuwatch_phase_ratio"
        for sample in family.samples
    }
    assert len(phases) <= len(STEPS.phases) + MOST_OWN_PHASES + 1
    assert values(found, "gpuwatch_phase_ratio", phase=OTHERS) == [pytest.approx(0.3)]


def test_the_jobs_verdict_comes_once_from_its_lowest_rank() -> None:
    seen = eight_ranks(FakeRun().snapshot())
    assert seen.job is not None
    exchange = late_each_step(1, 3.0)
    of_two = job(rank(0), rank(1), exchange=exchange)
    verdict = JobVerdict(of_two, seen.job.late, INPUT)
    ranks = [watched(as_rank(number, 2, job=verdict), job=("a",)) for number in (1, 0)]
    found = exported(*ranks)
    assert values(found, "gpuwatch_job_verdict_info", rank="0", kind="input") == [1]
    assert values(found, "gpuwatch_job_verdict_info", rank="1") == []
    late = values(found, "gpuwatch_late_ratio", rank="1")
    assert late == [pytest.approx(exchange.late(1).mean)]
    waiting = values(found, "gpuwatch_communication_ratio", rank="0", part="waiting")
    assert waiting == [pytest.approx(exchange.waiting(0).mean)]
    assert exchange.late(1).mean > 0 < exchange.waiting(0).mean


def test_what_a_process_calls_itself_is_no_text_of_ours() -> None:
    text = label_text('a"b\\c\nd\x1b[31m\udcff' + "x" * 999)
    assert "\n" not in text
    assert "\x1b" not in text
    assert len(text) <= 128
    text.encode()


@pytest.mark.parametrize("name", ["dashboard.json", "alerts.yml", "README.md"])
def test_the_documents_name_metrics_that_there_are(name: str) -> None:
    text = (FLEET / name).read_text()
    named = set(re.findall(r"\bgpuwatch_[a-z_]+[a-z]\b", text))
    there = {*CATALOGUE, *(f"gpuwatch_step_seconds_{end}" for end in ("bucket", "sum", "count"))}
    assert named
    assert named <= there


def test_the_documents_list_every_metric() -> None:
    text = Path(FLEET / "README.md").read_text()
    assert [name for name in CATALOGUE if f"`{name}`" not in text] == []
