"""Why the collectives of a job over several hosts are not known."""

import pytest

from gpuwatch.tui.model.observations import CollectivesSeen, Missing, RanksSeen
from gpuwatch.tui.remote import job
from gpuwatch.tui.remote.job import JobMerge
from gpuwatch.tui.remote.node import NodeReport, rows_of
from gpuwatch.tui.verdict.job.matching import Collective
from tests.unit.remote.jobs import STEP_NS, use
from tests.unit.session.making import MS, S


def reported(second: int, rank: int, a_step: int) -> NodeReport:
    """Of a host with one rank: ten steps of so many collectives, 1 ms apart."""
    steps = range(10 * (second - 1), 10 * second)
    rows = [
        Collective("0", step * a_step + at + 1, "nccl:all_gather", 8, step * STEP_NS + at * MS, MS)
        for step in steps
        for at in range(1, a_step + 1)
    ]
    seen = RanksSeen(t_ns=second * S, world_size=2, interval_ns=S, ranks=(use(rank, second),))
    bounds = [(one + 1, one * STEP_NS // 1_000, (one + 1) * STEP_NS // 1_000) for one in steps]
    return NodeReport(seen.t_ns, seen, [rows_of(rank, rows)] if a_step else [], bounds)


def told(second_host_sends: bool, a_step: int = 20) -> tuple[list[str], int]:
    """What is said to be missing in a minute, and how often collectives were known."""
    merge, known = JobMerge("node0"), 0
    missing: list[str] = []
    for second in range(1, 60):
        merge.add("node0", reported(second, 0, a_step), 0)
        merge.add("node1", reported(second, 1, a_step if second_host_sends else 0), 0)
        for seen in merge.take(second * S, {}):
            if isinstance(seen, Missing):
                missing.append(seen.reason)
            known += isinstance(seen, CollectivesSeen)
    return missing, known


def test_steps_that_are_longer_than_what_is_kept_are_a_reason(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """FSDP on 80 layers has 240 collectives a step; of 512 ranks 128 each are kept."""
    missing, known = told(second_host_sends=True)
    assert (missing, known > 20) == ([], True)
    monkeypatch.setattr(job, "SHARED_ROWS", 32)
    assert told(second_host_sends=True) == (
        ["a step has more collectives than are kept: 16 of each rank"],
        0,
    )


def test_a_host_that_sends_no_collectives_is_why_there_are_none() -> None:
    assert told(second_host_sends=False) == (["no collectives come of rank 1"], 0)
    assert told(second_host_sends=False, a_step=0) == ([], 0), "the job has none"
