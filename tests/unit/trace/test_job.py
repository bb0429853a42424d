"""The recordings of several ranks: transfer, waiting and what compute hides, where the truth is
known."""

from dataclasses import replace
from typing import Any

import pytest

from gpuwatch.tui.trace.against import against_job
from gpuwatch.tui.trace.collectives import dtype_of, kind_of
from gpuwatch.tui.trace.job import (
    JobProfile,
    NoCommonStepsError,
    RankRecorded,
    job_profile_of,
)
from gpuwatch.tui.trace.profile import Recorded
from gpuwatch.tui.verdict.findings import Kind
from gpuwatch.tui.verdict.job.matching import Collective
from tests.unit.trace.job_traces import ALL_REDUCE, FIRST, STEPS, on_cpu, recorded
from tests.unit.trace.traces import Steps


def ms(value: float | None) -> float | None:
    return None if value is None else round(value / 1e6, 2)


def test_ranks_that_are_alike_have_transfer_alone() -> None:
    found = job_profile_of(recorded([3_000, 3_000]))
    assert (found.steps, ms(found.step_ns)) == (STEPS - 1, 4.0)
    assert [ms(one.exposed_ns) for one in found.ranks] == [1.0, 1.0]
    assert [ms(one.transfer_ns) for one in found.ranks] == [1.0, 1.0]
    assert [ms(one.waiting_ns) for one in found.ranks] == [0.0, 0.0]
    assert found.transfer == pytest.approx(0.25, abs=0.01)
    (one,) = found.collectives
    assert (one.kind, one.dtype, one.bytes, one.a_step) == ("all_reduce", "fp32", None, 1.0)
    assert (ms(one.transfer_ns), ms(one.waiting_ns), ms(one.exposed_ns)) == (1.0, 0.0, 1.0)


def test_what_others_wait_for_a_late_rank_is_no_transfer() -> None:
    found = job_profile_of(recorded([2_000, 5_000, 2_000]))
    assert [ms(one.exposed_ns) for one in found.ranks] == [4.0, 1.0, 4.0]
    assert [ms(one.transfer_ns) for one in found.ranks] == [1.0, 1.0, 1.0]
    assert [ms(one.waiting_ns) for one in found.ranks] == [3.0, 0.0, 3.0]
    assert found.latest is not None
    assert (found.latest.rank, found.latest.late_in) == (1, STEPS - 1)
    assert found.latest.late == pytest.approx(0.5, abs=0.01)
    (one,) = found.collectives
    assert (ms(one.transfer_ns), ms(one.waiting_ns)) == (1.0, 2.0), "the mean of three ranks"


def test_what_compute_hides_costs_nothing() -> None:
    """600 of 1,000 us of the transfer lie under a kernel."""
    found = job_profile_of(recorded([3_000, 3_000], beside_us=600))
    assert [ms(one.collectives_ns) for one in found.ranks] == [1.0, 1.0]
    assert [ms(one.exposed_ns) for one in found.ranks] == [0.4, 0.4]
    assert [ms(one.transfer_ns) for one in found.ranks] == [0.4, 0.4]
    assert found.exposed == pytest.approx(0.1, abs=0.01)


def test_the_steps_are_those_that_all_ranks_recorded() -> None:
    found = job_profile_of(recorded([2_000, 4_000], starts=[0, 2]))
    assert found.steps == STEPS - 1, "rank 0 recorded two more"
    assert [ms(one.waiting_ns) for one in found.ranks] == [2.0, 0.0]
    first, second = recorded([2_000, 4_000], starts=[0, 2])
    apart = [replace(first, issued=first.issued[:3]), second]
    with pytest.raises(NoCommonStepsError, match="no step in common"):
        job_profile_of(apart)
    without = [replace(one, issued=({},) * 6) for one in recorded([1.0, 1.0])]
    with pytest.raises(NoCommonStepsError, match="no process group"):
        job_profile_of(without)


def test_steps_without_a_collective_belong_to_those_that_have_one() -> None:
    """Gradients of two batches are summed: every second step has an exchange."""
    made = []
    for rank, own_us in enumerate((2_000.0, 3_000.0)):
        one, issued = Steps(), []
        for step in range(8):
            one.launch(own_us)
            if step % 2:
                end_us = 10_000.0 * (step + 1)
                one.collective(ALL_REDUCE, one.free_us, end_us)
                one.free_us = one.now_us = end_us
            one.end()
            issued.append({"0": FIRST + (step + 1) // 2})
        made.append(RankRecorded(rank, one.recorded(), tuple(issued), on_device=True))
    found = job_profile_of(made)
    assert (found.steps, ms(found.step_ns)) == (6, 10.0)
    assert found.collectives[0].a_step == 0.5


def test_collectives_that_are_not_the_same_are_not_compared() -> None:
    one, other = recorded([2_000, 4_000])
    data = b"AllGather".join(other.recorded.data.rsplit(b"AllReduce_Sum_f32", 1))
    odd = RankRecorded(1, Recorded(data, *_rest(other)), other.issued, on_device=True)
    found = job_profile_of([one, odd])
    assert found.unlike == "all_reduce: 4 on rank 0, 3 on rank 1"
    assert found.collectives == ()
    assert (found.transfer, found.waiting, found.latest) == (None, None, None)
    assert [ms(rank.exposed_ns) for rank in found.ranks] == [3.0, 1.0]


def _rest(one: RankRecorded) -> Any:
    return one.recorded.ends_ns, one.recorded.marks, one.recorded.anchor


def test_sizes_are_those_of_the_flight_recorder_where_it_has_as_many() -> None:
    entries = tuple(
        Collective("0", number, "nccl:all_reduce", 25 << 20, number, None)
        for number in range(FIRST - 10, FIRST + 20)
    )
    ranks = [replace(one, entries=entries) for one in recorded([3_000, 3_000])]
    (one,) = job_profile_of(ranks).collectives
    assert one.bytes == 25 << 20
    fewer = [replace(one, entries=entries[:13]) for one in ranks]
    assert job_profile_of(fewer).collectives[0].bytes is None
    other = tuple(replace(one, name="nccl:_all_gather_base") for one in entries)
    odd = [replace(one, entries=other) for one in ranks]
    assert job_profile_of(odd).collectives[0].bytes is None


def later_entries(sizes: tuple[int, ...], steps: int) -> tuple[Collective, ...]:
    """Those of steps long after the recorded ones, `sizes` a step, as a recorder of 2,000 holds."""
    first = FIRST + 1_000 * len(sizes)
    numbers = range(first, first + steps * len(sizes))
    return tuple(
        Collective(
            "0", number, "nccl:all_reduce", sizes[(number - FIRST - 1) % len(sizes)], number, None
        )
        for number in numbers
    )


def in_two(sizes: tuple[int, int], steps: int) -> JobProfile:
    """Two ranks that make two collectives a step, as they are known of later steps."""
    made = []
    for rank in range(2):
        one, issued = Steps(), []
        for step in range(STEPS + 1):
            one.launch(1_000.0)
            for part in (1, 2):
                end_us = 4_000.0 * (step + 1) + 1_000.0 * part
                one.collective(ALL_REDUCE, max(one.free_us, end_us - 500), end_us)
                one.free_us = one.now_us = end_us
            one.end()
            issued.append({"0": FIRST + 2 * (step + 1)})
        ready = later_entries(sizes, steps)
        made.append(RankRecorded(rank, one.recorded(), tuple(issued), True, ready))
    return job_profile_of(made)


def test_sizes_that_the_recorder_has_overwritten_are_those_of_later_steps_all_alike() -> None:
    """Two H200s: of seven jobs five had steps of 9 to 30 ms, and 2,000 entries are 2.6 s of them:
    their collectives had no sizes."""
    found = in_two((64 << 20, 16 << 10), steps=20)
    assert [(one.bytes, one.a_step) for one in found.collectives] == [(64 << 20, 1), (16 << 10, 1)]
    few = in_two((64 << 20, 16 << 10), steps=2)
    assert [one.bytes for one in few.collectives] == [None], "two steps show no rule"


def test_sizes_of_later_steps_that_differ_are_no_sizes_of_earlier_ones() -> None:
    one, other = recorded([3_000, 3_000])
    uneven = tuple(
        Collective("0", number, "nccl:all_reduce", number << 10, number, None)
        for number in range(FIRST + 1_000, FIRST + 1_030)
    )
    ranks = [replace(one, entries=uneven), replace(other, entries=uneven)]
    assert job_profile_of(ranks).collectives[0].bytes is None


def test_gloos_collectives_are_its_annotations() -> None:
    found = on_cpu([2_000, 5_000], 1_000)
    assert (found.on_device, found.steps, ms(found.step_ns)) == (False, STEPS - 2, 6.0)
    assert [ms(one.waiting_ns) for one in found.ranks] == [3.0, 0.0]
    assert [ms(one.transfer_ns) for one in found.ranks] == [1.0, 1.0]
    (one,) = found.collectives
    assert (one.kind, one.dtype, one.bytes) == ("all_reduce", "fp32", 1024)
    hidden = on_cpu([2_000, 2_000], 1_000, hidden_us=700)
    assert [ms(one.transfer_ns) for one in hidden.ranks] == [0.3, 0.3]


@pytest.mark.parametrize(
    ("name", "kind", "dtype"),
    [
        (ALL_REDUCE, "all_reduce", "fp32"),
        ("ncclDevKernel_AllGather_RING_LL(ncclDevKernelArgsStorage<4096ul>)", "all_gather", ""),
        ("ncclDevKernel_ReduceScatter_Sum_bf16_RING_LL(nccl)", "reduce_scatter", "bf16"),
        ("ncclDevKernel_SendRecv(ncclDevKernelArgsStorage<4096ul>)", "send_recv", ""),
        ("ncclKernel_AllReduce_RING_LL_Sum_float(ncclDevComm*)", "all_reduce", "fp32"),
        ("ncclDevKernel_Broadcast_RING_LL(x)", "broadcast", ""),
        ("ncclDevKernel_Generic_4(x)", "", ""),
        ("nccl:_reduce_scatter_base", "reduce_scatter", ""),
    ],
)
def test_a_kernels_name_says_which_collective_it_is(name: str, kind: str, dtype: str) -> None:
    assert (kind_of(name), dtype_of(name)) == (kind, dtype)


TWO = "all others wait for rank 1 67% of each step, the last in 10 of 10"


@pytest.mark.parametrize(
    ("verdict", "late", "own_us", "says", "text"),
    [
        (
            *("communication", None, (3_000, 3_000), "confirms"),
            "transfer that nothing hides 25% of each step",
        ),
        (
            *("communication", None, (2_000, 8_000), "corrects"),
            f"communication has 11% of each step; they show {TWO}",
        ),
        ("straggler", 1, (2_000, 8_000), "confirms", TWO),
        ("straggler", 0, (2_000, 8_000), "corrects", f"not rank 0: {TWO}"),
        (
            *("straggler", 1, (20_000, 20_000), "corrects"),
            "straggler has 0% of each step; no collective holds 10% of a step",
        ),
        (
            *("compute", None, (20_000, 20_000), "confirms"),
            "no more than that: collectives stand alone 5% of each step",
        ),
        ("input", None, (2_000, 8_000), "cannot say", f"of collectives alone, they show {TWO}"),
    ],
)
def test_the_jobs_verdict_beside_the_traces(
    verdict: Kind, late: int | None, own_us: tuple[float, ...], says: str, text: str
) -> None:
    found = against_job(verdict, late, job_profile_of(recorded(own_us, steps=11)))
    assert (found.says, found.text) == (says, text)


def test_three_steps_do_not_overrule_the_verdict() -> None:
    """A host with other work makes any rank the last in three steps of three, one time in four."""
    found = against_job("straggler", 0, job_profile_of(recorded([2_000, 8_000], steps=4)))
    assert found.says == "cannot say"
    assert "rank 1 is the last in 3 of 3" in found.text


def test_all_that_traces_show_instead_is_named() -> None:
    """FSDP2 on two H200s: transfer 32 %, rank 0 late 32 %, and the text named the one alone."""
    found = against_job("imbalance", None, job_profile_of(recorded([2_000, 3_200], steps=11)))
    assert (found.says, found.kind) == ("corrects", "straggler")
    assert found.text == (
        "imbalance has 0% of each step; they show all others wait for rank 1 29% of each step, the "
        "last in 10 of 10, and transfer that nothing hides 24% of each step"
    )


def test_ranks_that_take_turns_are_imbalance() -> None:
    found = job_profile_of(recorded([2_000, 5_000], steps=11, turns=True))
    assert [one.late_in for one in found.ranks] == [5, 5]
    compared = against_job("imbalance", None, found)
    assert (compared.says, compared.kind) == ("confirms", "imbalance")
