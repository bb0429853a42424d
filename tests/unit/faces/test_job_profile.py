"""The windows on all ranks of a job, as text and as JSON."""

import json

from gpuwatch.tui.formats.job_profile_report import (
    JobReport,
    job_profile_json,
    job_profile_lines,
)
from gpuwatch.tui.trace.against import against_job
from gpuwatch.tui.trace.job import JobProfile, job_profile_of
from gpuwatch.tui.verdict.scoring import state
from tests.unit.trace.job_traces import on_cpu, recorded


def report(profile: JobProfile) -> JobReport:
    return JobReport(
        script="train.py",
        world_size=2,
        pids=(701, 702),
        profile=profile,
        verdict=None,
        finding=state("straggler", "data", "critical", "rank 1 waits for its loader"),
        comparison=against_job("straggler", 1, profile),
        pause_ns=120_000_000,
        torn_down=True,
        traces=("t.0.json", "t.1.json"),
    )


def test_the_report_names_transfer_waiting_and_the_verdict() -> None:
    lines = job_profile_lines(report(job_profile_of(recorded([2_000, 5_000]))), 110)
    text = "\n".join(lines)
    assert lines[0] == "profile of train.py · 2 ranks · 4 steps on all of them · NVIDIA H200"
    assert "42% of each step   collectives that no kernel hides" in text
    assert "17% of each step   data moves" in text
    assert "25% of each step   a rank waits for later ones" in text
    assert "which the traces confirm: all others wait for rank 1 50% of each step" in text
    (head,) = (line.split() for line in lines if "late by" in line)
    assert head[-5:] == ["waiting", "late", "by", "last", "in"]
    (row,) = (line.split("  ") for line in lines if " r1 " in line)
    assert [cell.strip() for cell in row if cell][1:] == [
        *("1.0 ms", "1.0 ms", "1.0 ms", "0.0 ms", "3.0 ms", "100%"),
    ]
    assert "1.0x  all_reduce fp32: transfer 1.0 ms, waiting 1.5 ms" in text
    assert all(len(line) <= 110 for line in lines)


def test_ranks_on_a_cpu_have_sizes_and_say_what_was_read() -> None:
    text = "\n".join(job_profile_lines(report(on_cpu([2_000, 5_000], 1_000)), 110))
    assert "no GPU" in text
    assert "the backend's threads while PyTorch computes nothing" in text
    assert "1.0x  all_reduce fp32 of 1 KiB: transfer 1.0 ms (0.0 GB/s)" in text


def test_json_has_the_shares_and_each_ranks_part() -> None:
    found = json.loads(job_profile_json(report(job_profile_of(recorded([2_000, 5_000])))))
    assert (found["schema"], found["late_rank"]) == ("gpuwatch-job-profile-1", 1)
    assert round(found["late_share"], 2) == 0.5
    assert [round(one["waiting_ns"] / 1e6, 1) for one in found["profile"]["ranks"]] == [3.0, 0.0]
    assert found["comparison"]["says"] == "confirms"
    assert found["traces"] == ["t.0.json", "t.1.json"]
