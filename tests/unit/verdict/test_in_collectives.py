"""No rule for one process claims time that its rank spends, or may spend, in collectives."""

from dataclasses import replace
from typing import Any

import pytest

from gpuwatch.tui.verdict.engine import Engine
from gpuwatch.tui.verdict.findings import MissingSignal
from gpuwatch.tui.verdict.gpu_clock import copies
from gpuwatch.tui.verdict.idle_ledger import idle_ledger
from gpuwatch.tui.verdict.rules.compute import compute
from gpuwatch.tui.verdict.rules.host import host
from gpuwatch.tui.verdict.rules.optimizer import optimizer
from gpuwatch.tui.verdict.window import InCollectives, StepWindow
from tests.unit.verdict import jobs
from tests.unit.verdict.on_gpu import activity, gpu_window
from tests.unit.verdict.windows import even, stacks, window

WAITS = {"data_ms": 0.1, "forward_ms": 3, "backward_ms": 5.5, "optimizer_ms": 3, "lag_ms": 60}
EMPTY = activity(97.0, sm=18, tensor=3, fp32=2, dram=9)
FULL = activity(99.0, sm=96, tensor=60, fp32=0, dram=17)
MOSTLY_OWN = InCollectives(waiting=0.01, transfer=0.03)
WAITING = InCollectives(waiting=0.55, transfer=0.05)


def rank(**fields: Any) -> StepWindow:
    given: dict[str, Any] = {"world_size": 2, "activity": EMPTY, **fields}
    return gpu_window(even(60, **{k: v for k, v in WAITS.items() if k != "lag_ms"}), WAITS, **given)


@pytest.mark.parametrize(
    ("collectives", "sub"), [(None, None), (WAITING, None), (MOSTLY_OWN, "underfilled")]
)
def test_an_empty_gpu_is_underfilled_only_where_it_is_known_to_work(
    collectives: InCollectives | None, sub: str | None
) -> None:
    found = compute(rank(collectives=collectives))
    assert found is not None
    assert found.sub == sub
    assert any("larger batch" in advice for advice in found.advice) == (sub is not None)


def test_one_process_is_judged_as_before() -> None:
    found = compute(rank(world_size=1))
    assert found is not None
    assert found.sub == "underfilled"


def test_a_gpu_in_collectives_is_not_called_well_used() -> None:
    unknown = compute(rank(activity=FULL))
    known = compute(rank(activity=FULL, collectives=MOSTLY_OWN))
    assert unknown is not None
    assert known is not None
    assert (unknown.sub, known.sub) == (None, "saturated")
    assert "not known" in unknown.headline
    assert "TORCH_FR_BUFFER_SIZE" in unknown.advice[0]


def test_waiting_is_named_where_it_is_measured() -> None:
    found = compute(rank(collectives=WAITING))
    assert found is not None
    assert found.headline == "the GPU is busy, 60% of the time in collectives"
    assert found.evidence[0].text == ("it waits for another rank 55% of the time; 5% is transfer")


@pytest.mark.parametrize(
    ("collectives", "share"), [(None, None), (MOSTLY_OWN, 3 / 11.6), (InCollectives(0.8, 0.1), 0.1)]
)
def test_the_optimizer_holds_no_more_than_the_ranks_own_time(
    collectives: InCollectives | None, share: float | None
) -> None:
    found = optimizer(rank(collectives=collectives))
    assert (found and found.share) == (share and pytest.approx(share, abs=0.01))


def test_waits_for_ranks_are_not_python_between_the_phases() -> None:
    rows = even(60, data_ms=0.2, forward_ms=4, backward_ms=5, optimizer_ms=0.5, other_ms=20)
    call = (0.66, "all_reduce (torch/distributed/distributed_c10d.py:2806)", "train (train.py:9)")
    mine = (0.66, "metrics (train.py:70)", None)
    assert host(window(rows, stacks=stacks(main=[mine]))) is not None
    assert host(window(rows, stacks=stacks(main=[call]))) is None


def test_the_ledger_has_collectives_as_their_own_part() -> None:
    ledger = idle_ledger(rank(collectives=WAITING))
    assert ledger is not None
    assert ledger.shares["collectives"] == pytest.approx(0.6)
    unknown = idle_ledger(rank())
    assert unknown is not None
    assert unknown.shares["underfilled"] == 0.0


def test_what_nccl_moves_over_the_link_is_no_copy() -> None:
    """FSDP on two H200s: 1 GB/s on the link, and no line that copies."""
    moves = activity(80.0, sm=60, tensor=3, fp32=2, dram=9, pcie_rx_mb_s=2_000.0)
    assert copies(rank(activity=moves, world_size=1)).share > 0.05  # type: ignore[union-attr]
    assert copies(rank(activity=moves)).share == 0.0  # type: ignore[union-attr]


def test_a_job_whose_collectives_are_being_read_has_no_verdict_on_its_gpu_yet() -> None:
    ranks = (jobs.rank(0, target=True), jobs.rank(1))
    reads = replace(jobs.job(*ranks, exchange=None), reading=True)
    judged = Engine().judge(rank(activity=FULL, job=reads)).finding
    assert (judged.kind, judged.headline) == ("warming-up", "reading the collectives of 2 ranks")
    ended = MissingSignal("collectives", "PyTorch's flight recorder is off", "", "")
    for run in (
        rank(activity=FULL, job=replace(reads, reading=False)),
        rank(activity=FULL, job=reads, missing=(ended,)),
    ):
        assert Engine().judge(run).finding.kind == "compute"


def test_a_cause_is_named_while_the_collectives_are_being_read() -> None:
    ranks = (jobs.rank(0, target=True), jobs.rank(1))
    reads = replace(jobs.job(*ranks, exchange=None), reading=True)
    slow = even(60, data_ms=30, forward_ms=3, backward_ms=5)
    assert Engine().judge(window(slow, job=reads, world_size=2)).finding.kind == "input"
