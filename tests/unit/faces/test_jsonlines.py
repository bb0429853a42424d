"""The JSON contract."""

import json
import math
from dataclasses import replace
from typing import Any, get_args

import jsonschema
import pytest

from gpuwatch.tui.formats.jsonlines import line, record
from gpuwatch.tui.verdict.findings import EvidenceSource, Kind, Severity
from gpuwatch.tui.verdict.job.standing import Pending, StandingRank
from tests.tui.fake_run import FakeRun
from tests.tui.rank_states import a_rank, ranks_in_trouble
from tests.tui.states import ALLOCATOR, NOTES, ON_GPU, a_ledger
from tests.unit.faces.pictures import (
    BY_GPM,
    BY_NVML,
    GPU,
    INPUT,
    STATUS,
    STEPS,
    SUMMARY,
    TIMELINE,
    picture,
    young,
)
from tests.unit.faces.strict_schema import shipped, strict
from tests.unit.session.making import verdict
from tests.unit.verdict.jobs import late_each_step

RANK = a_rank(0, FakeRun().snapshot())


def check(one: dict[str, Any]) -> None:
    jsonschema.Draft202012Validator(strict()).validate(one)


def test_the_schema_is_a_schema_and_describes_every_field() -> None:
    schema = shipped()
    jsonschema.Draft202012Validator.check_schema(schema)

    def walk(node: dict[str, Any]) -> None:
        for name, child in node.get("properties", {}).items():
            assert "description" in child or "$ref" in child or name == "schema", name
            walk(child)
            walk(child.get("items", {}))

    walk(schema)


def test_the_schemas_words_are_the_codes_words() -> None:
    schema = shipped()
    assert schema["$defs"]["kind"]["enum"] == list(get_args(Kind))
    assert schema["$defs"]["severity"]["enum"] == list(get_args(Severity))
    evidence = schema["properties"]["verdict"]["properties"]["evidence"]["items"]
    assert evidence["properties"]["source"]["enum"] == list(get_args(EvidenceSource))
    notes = schema["properties"]["verdict"]["properties"]["notes"]["items"]
    assert notes["properties"]["source"]["enum"] == list(get_args(EvidenceSource))


@pytest.mark.parametrize("final", [False, True])
def test_whole_and_young_pictures_follow_the_contract(final: bool) -> None:
    by_gpm = picture(gpus=(GPU,), activity=(BY_GPM,))
    by_nvml = picture(gpus=(GPU,), activity=(BY_NVML,))
    clocked = picture(gpus=(GPU,), gpu_phases=ON_GPU, gpu_memory=(ALLOCATOR,))
    past = picture(timeline=TIMELINE, summary=SUMMARY, ledger=a_ledger())
    for snapshot in (picture(), young(), picture(gpus=(GPU,)), by_gpm, by_nvml, clocked, past):
        one = record(snapshot, final)
        check(one)
        assert one["final"] is final


def test_absent_is_null_and_never_zero() -> None:
    one = record(young(), False)
    assert one["steps"] is one["gpu"] is one["open"] is one["busy"] is None
    assert set(one["memory"].values()) == {None}
    assert one["status"]["cost_share"] is None
    assert one["target"]["cores"] is None
    assert one["verdict"]["share"] is None


def test_what_a_gpu_does_and_what_nothing_shows() -> None:
    (device,) = record(picture(gpus=(GPU,), activity=(BY_GPM,)), False)["gpu"]["devices"]
    does = device["activity"]
    assert (does["source"], does["over_ms"], does["sm_percent"]) == ("gpm", 1000.0, 34.2)
    assert (does["tensor_percent"], does["fp32_percent"]) == (0.0, None)
    assert (does["pcie_rx_mb_s"], does["nvlink_rx_mb_s"]) == (5900.0, None)
    assert (device["power_limit_w"], device["memory_clock_mhz"]) == (700.0, 3201)
    assert device["others"] == [
        {"pid": 991, "name": None, "memory_bytes": 20 * 1024**3, "sm_percent": 3.0}
    ]
    (device,) = record(picture(gpus=(GPU,)), False)["gpu"]["devices"]
    assert device["activity"] is None


def test_the_verdict_is_what_the_architecture_promises() -> None:
    shown = record(picture(), False)["verdict"]
    assert shown["kind"], shown["sub"] == ("input", "workers")
    assert (shown["severity"], shown["confidence"], shown["since_step"]) == ("critical", 0.92, 240)
    assert (shown["share"], shown["speedup"], shown["speedup_is"]) == (0.57, 2.5359, "bound")
    assert shown["evidence"][0] == {
        "text": "706 of 1,240 ms/step is spent waiting for the loader",
        "source": "hook",
        "value": 706.0,
        "unit": "ms",
    }
    assert shown["advice"][0].startswith("num_workers")
    assert shown["contributors"][0]["kind"] == "memory-growth"
    assert shown["missing"] == ["nvml: no NVIDIA driver", *(one.text for one in STATUS.missing)]


def test_the_gpus_time_adds_up_to_one() -> None:
    ledger = record(picture(ledger=a_ledger()), False)["ledger"]
    assert sum(ledger["parts"].values()) == pytest.approx(1.0, abs=1e-5)
    assert ledger["busy"] == pytest.approx(0.421)
    assert ledger["source"] == "gpm"
    assert record(picture(), False)["ledger"] is None


def test_phases_add_up_to_one() -> None:
    phases = record(picture(), False)["steps"]["phases"]
    assert sum(phase["share"] for phase in phases.values()) == pytest.approx(1.0)


def test_what_is_no_number_is_absent() -> None:
    broken = replace(INPUT, share=math.nan, speedup=math.inf)
    one = record(picture(verdict=replace(verdict("input"), finding=broken)), False)
    assert one["verdict"]["share"] is one["verdict"]["speedup"] is None


def test_a_line_is_one_line_whatever_a_script_is_called() -> None:
    text = line(picture(script="tra\nin\u2028.py"), True)
    assert len(text.splitlines()) == 1
    assert json.loads(text)["target"]["script"] == "tra\nin\u2028.py"


def test_inference_is_reported() -> None:
    one = record(picture(steps=replace(STEPS, inference=True, samples_s=None)), False)
    check(one)
    assert one["steps"]["inference"] is True
    assert one["steps"]["samples_s"] is None


def test_the_gpus_own_clock_and_its_allocator() -> None:
    reported = record(picture(gpus=(GPU,), gpu_phases=ON_GPU, gpu_memory=(ALLOCATOR,)), False)[
        "gpu"
    ]
    assert reported["clock"]["exposed_wait_ms"] == 410.0
    assert reported["clock"]["lag_ms"]["optimizer"] == 119.0
    assert reported["clock"]["every"] == 3
    assert reported["allocator"]["reserved_bytes"] == 66 * 2**30
    assert record(picture(gpus=(GPU,)), False)["gpu"]["clock"] is None


def test_the_last_line_shows_what_was_reported_over_the_run() -> None:
    snapshot = picture(timeline=TIMELINE, summary=SUMMARY)
    assert record(snapshot, False)["timeline"] is record(snapshot, False)["summary"] is None
    one = record(snapshot, True)
    assert one["summary"][0] == {
        "kind": "input",
        "sub": "workers",
        "share_of_time": 0.74813,
        "seconds": 300.0,
        "cost_seconds": 171.0,
    }
    assert one["summary"][1]["cost_seconds"] is None
    assert one["timeline"]["dropped"] == 2
    assert [entry["kind"] for entry in one["timeline"]["entries"]] == [
        *("warming-up", "healthy", "input"),
    ]
    assert one["timeline"]["entries"][2] == {
        "kind": "input",
        "sub": "workers",
        "t": 1_700_000_101.0,
        "seconds": 300.0,
        "since_step": 4_100,
        "until_step": 18_204,
        "share": 0.57,
        "speedup": 2.3,
        "headline": "data wait is 57%",
    }


def test_the_ranks_of_this_host_show_which_is_late() -> None:
    one = record(ranks_in_trouble(FakeRun().snapshot()), False)
    check(one)
    assert (one["target"]["rank"], one["target"]["world_size"], len(one["ranks"])) == (3, 8, 8)
    late = one["ranks"][3]
    assert [rank["is_target"] for rank in one["ranks"]] == [rank is late for rank in one["ranks"]]
    assert late["shares"] == {"data": 0.57, "forward": 0.14, "backward": 0.23, "optimizer": 0.04}
    assert late["open"] == {"phase": "backward", "age_s": 41.0}
    assert (late["step_ms"], late["device"], late["steps"]) == (1240.0, 3, 18_204)
    reported = [(rank["state"], rank["last_message_age_s"]) for rank in one["ranks"][5:7]]
    assert reported == [("ended", 44.0), ("silent", 12.0)]
    young_rank = replace(RANK, step_ms=None, data_share=None, device=None, open_since_ns=None)
    (unknown,) = record(picture(ranks=(young_rank,)), False)["ranks"]
    assert unknown["step_ms"] is unknown["shares"]["data"] is unknown["device"] is None
    assert unknown["open"]["age_s"] is None
    assert record(picture(), False)["ranks"] is None, "one process alone has no ranks"


def test_notes_and_their_costs() -> None:
    shown = replace(
        picture().verdict, notes=(NOTES[1], replace(NOTES[0], cost=None, urgent=True, gain=1.5))
    )
    one = record(picture(verdict=shown), False)
    check(one)
    assert one["verdict"]["notes"] == [
        {
            "text": "a GradScaler with bfloat16, which needs none: GradScaler(enabled=False)",
            "cost": "3% of main-thread samples are in it",
            "source": "py-spy",
            "urgent": False,
            "speedup": None,
        },
        {
            "text": NOTES[0].text,
            "cost": None,
            "source": "hook",
            "urgent": True,
            "speedup": 1.5,
        },
    ]
    assert record(picture(), False)["verdict"]["notes"] == []


def test_the_job_has_one_verdict_and_what_its_collectives_took() -> None:
    seen = ranks_in_trouble(FakeRun().snapshot())
    assert seen.job is not None
    took = late_each_step(1, 29.0)
    run = replace(seen, job=replace(seen.job, job=replace(seen.job.job, exchange=took)))
    one = record(run, False)
    check(one)
    job = one["job"]
    assert (job["world_size"], job["late_rank"]) == (8, 3)
    assert (job["verdict"]["kind"], job["verdict"]["sub"]) == ("straggler", "data")
    assert job["collectives"]["per_step"] == 4
    assert [rank["waiting_share"] for rank in job["collectives"]["ranks"]] == pytest.approx(
        [29 / 37, 0.0], abs=1e-4
    )
    assert record(seen, False)["job"]["collectives"] is None
    assert record(picture(), False)["job"] is None


def test_what_stands_and_each_ranks_place() -> None:
    seen = ranks_in_trouble(FakeRun().snapshot())
    assert seen.job is not None
    pending = Pending(
        431,
        "all_reduce",
        12,
        inside=(0, 1),
        outside=(2,),
        ranks=(StandingRank(2, ("main (train.py:9)",), silent=True),),
    )
    run = replace(seen, job=replace(seen.job, job=replace(seen.job.job, pending=pending)))
    one = record(run, False)
    check(one)
    standing = one["job"]["standing"]
    assert (standing["collective"], standing["inside"], standing["outside"]) == (
        "all_reduce",
        [0, 1],
        [2],
    )
    assert standing["ranks"] == [
        {
            "rank": 2,
            "collective": None,
            "bytes": None,
            "frames": ["main (train.py:9)"],
            "silent": True,
        },
    ]
    assert record(seen, False)["job"]["standing"] is None
