"""Communication that compute does not hide."""

from dataclasses import replace
from typing import Any

import msgspec
import pytest

from gpuwatch.tui.verdict.engine import Engine
from gpuwatch.tui.verdict.findings import Finding
from gpuwatch.tui.verdict.job.exchange import Fabric
from gpuwatch.tui.verdict.rules.communication import communication
from gpuwatch.tui.verdict.window import InCollectives, StepWindow
from tests.unit.verdict.jobs import ddp, exchange, job, rank
from tests.unit.verdict.on_gpu import activity, gpu_window
from tests.unit.verdict.windows import MS, even

STEPS = even(60, data_ms=0.1, forward_ms=1.2, backward_ms=9.1, optimizer_ms=0.6)
ON_GPU = {"data_ms": 0, "forward_ms": 1.2, "backward_ms": 9.1, "optimizer_ms": 0.6, "lag_ms": 75}


def seen(sm: float = 60.0, waiting: float = 0.0, **of_steps: Any) -> StepWindow:
    took = exchange(*[(0, 0.0)] * 60, step_ms=12.0, **of_steps)
    transfer = of_steps.get("transfer_ms", 0.7) / 12.0
    took = replace(took, fabric=of_steps.get("fabric"))
    return gpu_window(
        STEPS,
        ON_GPU,
        activity=activity(99.0, sm=sm, tensor=15, fp32=0, dram=20),
        world_size=2,
        job=replace(
            job(rank(0, target=True), rank(1), exchange=took),
            world_size=of_steps.get("world_size", 2),
        ),
        collectives=InCollectives(waiting, transfer),
    )


def test_what_ddp_has_measured_on_two_h200s() -> None:
    """Big layers with a tiny batch: 8.6 ms of which 3.4 are hidden, in steps of 12.0."""
    samples = ({0: ddp(8.6, 3.4), 1: ddp(8.7, 3.4)}, {0: ddp(8.6, 3.4), 1: ddp(8.59, 3.3)})
    window = seen(transfer_ms=8.59, ddp=samples)
    found = communication(window)
    assert found is not None
    assert found.share == pytest.approx(5.2 / 12.0, abs=0.01)
    assert found.speedup_is == "estimate"
    assert "39% of their time is hidden" in found.evidence[0].text
    assert "no_sync" in found.advice[0]
    assert Engine().judge(window).finding.kind == "communication"


def test_one_iteration_is_no_more_than_the_transfer_of_all_steps() -> None:
    """Others computed on both GPUs: in DDP's one sample 11.1 ms of 12 were exposed, and data moved
    for 3.5 ms of each step."""
    found = communication(seen(transfer_ms=3.5, ddp=({0: ddp(12.0, 0.9), 1: ddp(12.0, 0.9)},)))
    assert found is not None
    assert found.share == pytest.approx(3.5 / 12.0, abs=0.01)


def test_what_a_victim_waits_is_no_transfer() -> None:
    """Rank 1 is late: rank 0 spends 33 ms in collectives, of which it transfers 4."""
    window = seen(ddp=({0: ddp(33.0, 3.9), 1: ddp(4.3, 3.9)},))
    assert communication(window) is None


def test_an_iteration_of_the_warm_up_is_not_divided_by_a_later_step() -> None:
    """DistributedDataParallel's only sample so far, of 900 ms, over gloo, which times no transfer:
    "100% of each step", where it is 12 of 100 ms."""
    early = ddp(400, 60, iteration=3, forward_ns=150 * MS, backward_ns=410 * MS)
    took = exchange(*[(0, 0.1)] * 60, step_ms=100.0, ddp=({0: early, 1: early},))
    steps = tuple(msgspec.structs.replace(one, transfer_ns=None) for one in took.steps)
    assert replace(took, steps=steps).exposed is None
    usual = ddp(20, 8, forward_ns=40 * MS, backward_ns=58 * MS)
    later = replace(took, steps=steps, ddp=({0: early, 1: early}, {0: usual, 1: usual}))
    assert later.exposed is not None
    assert later.exposed.mean == pytest.approx(0.12, abs=0.02)


def test_hidden_communication_is_none() -> None:
    assert communication(seen(transfer_ms=8.0, ddp=({0: ddp(8, 7.9), 1: ddp(8, 7.9)},))) is None


@pytest.mark.parametrize(
    ("sm", "waiting", "share"), [(60.0, 0.0, 0.476), (20.0, 0.0, 0.583), (60.0, 0.3, 0.176)]
)
def test_without_ddps_own_times_it_is_a_bound(sm: float, waiting: float, share: float) -> None:
    """No more than the transfer (7 ms of 12), and than the time with empty multiprocessors."""
    found = communication(seen(sm, waiting, transfer_ms=7.0))
    assert found is not None
    assert found.share == pytest.approx(share, abs=0.002)
    assert found.speedup_is == "bound"
    assert "up to" in found.headline
    assert "fully_shard" in found.advice[1]


def test_full_multiprocessors_hide_it() -> None:
    assert communication(seen(97.0, transfer_ms=7.0)) is None


def test_small_buckets_want_to_be_larger() -> None:
    samples = ({0: ddp(8.6, 3.4), 1: ddp(8.7, 3.4)},)
    found = communication(seen(transfer_ms=8.5, ddp=samples, collectives=40, bytes=20 << 20))
    assert found is not None
    assert found.sub == "small-buckets"
    assert "bucket_cap_mb" in found.advice[0]


def test_few_large_buckets_want_to_be_more() -> None:
    samples = ({0: ddp(8.6, 0.1, buckets=1), 1: ddp(8.7, 0.1, buckets=1)},)
    found = communication(seen(transfer_ms=8.5, ddp=samples))
    assert found is not None
    assert any("bucket_cap_mb=100" in advice for advice in found.advice)


def test_ranks_that_are_not_seen_are_reported() -> None:
    window = seen(transfer_ms=7.0)
    assert window.job is not None
    wide = replace(window, now_ns=1, job=replace(window.job, world_size=16))
    found = communication(wide)
    assert found is not None
    assert found.evidence[-1].text.startswith("2 of 16 ranks are seen")


@pytest.mark.parametrize(
    ("at_best", "world_size", "sub"),
    [(0.9, 2, "bandwidth"), (0.6, 2, "exposed"), (0.4, 2, "exposed"), (0.4, 16, "waiting")],
)
def test_what_holds_the_exchange_up(at_best: float, world_size: int, sub: str) -> None:
    fabric = Fabric(1 << 30, 10 * MS, round(at_best * 10 * MS))
    found = communication(seen(transfer_ms=7.0, fabric=fabric, world_size=world_size))
    assert found is not None
    assert found.sub == sub
    at_highest = next(one.text for one in found.evidence if "highest rate" in one.text)
    assert f"{7.0 * at_best:.1f} ms at the highest rate measured here" in at_highest


def test_the_links_counters_are_evidence_where_they_are_read() -> None:
    window = seen(transfer_ms=7.0)
    assert window.activity is not None
    counted = replace(
        window.activity,
        nvlink_rx_mb_s=120_400.0,
        nvlink_tx_mb_s=119_600.0,
        pcie_rx_mb_s=300.0,
        pcie_tx_mb_s=100.0,
    )
    found = communication(replace(window, activity=counted))
    assert found is not None
    texts = [one.text for one in found.evidence]
    assert "NVLink carries 120 GB/s in and 120 GB/s out; PCIe 0.4 GB/s" in texts
    plain = communication(window)
    assert plain is not None
    assert not any("NVLink" in one.text for one in plain.evidence)


def test_communication_is_what_others_on_the_gpus_do_not_stretch() -> None:
    """A balanced job of two ranks on H200s, of which others used 68 and 50 %: DDP measured 47 % of
    a step exposed, and without the others it was 4 %."""
    window = seen(transfer_ms=7.0, ddp=({0: ddp(6.0, 0.4), 1: ddp(6.0, 0.4)},))
    run = window.job
    assert run is not None
    alone = communication(window)
    assert alone is not None
    assert alone.share == pytest.approx(0.47, abs=0.01)

    def found(*others_sm: float) -> Finding | None:
        ranks = (rank(at, at == 0, 100.0, 1, sm) for at, sm in enumerate(others_sm))
        return communication(replace(window, job=replace(run, ranks=tuple(ranks))))

    little = found(68.0, 50.0)
    assert little is not None
    assert little.share == pytest.approx(0.47 * 0.32 * 0.5, abs=0.01)
    assert any("others on the GPUs stretch" in one.text for one in little.evidence)
    assert found(80.0, 60.0) is None
    assert found(0.0, 0.0) == alone


def test_of_all_ranks_the_one_that_waits_least_bounds_the_transfer() -> None:
    """FSDP2 on two H200s: each monitor took its own GPU's counters, and one had 25 %, the other
    40 %. What the rank that waits least has is transfer."""
    shares = []
    for target in (0, 1):
        took = exchange(*[(1, 4.8)] * 60, step_ms=12.0, transfer_ms=9.0)
        first = rank(0, target=target == 0, active=98.1, sm=46.6)
        run = job(first, rank(1, target=target == 1, active=74.0, sm=39.8), exchange=took)
        found = communication(replace(seen(sm=46.6 - 7 * target), job=run))
        assert found is not None
        shares.append(found.share)
    assert shares == [pytest.approx((74.0 - 39.8) / 82, abs=0.001)] * 2
