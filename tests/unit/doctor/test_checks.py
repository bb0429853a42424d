"""The doctor's checks: what each says of a sound machine, of a fault, and of nothing."""

from dataclasses import replace

import msgspec
import pytest

from gpuwatch.tui.doctor.checks import Check, examine
from gpuwatch.tui.model.machine_facts import (
    CoresFact,
    DriverFact,
    GpuFact,
    MachineFacts,
    PtraceFact,
    TargetFact,
)
from gpuwatch.tui.model.snapshot import Snapshot
from gpuwatch.tui.verdict.findings import MissingSignal
from tests.tui import states
from tests.tui.fake_run import START, S, snapshot_at
from tests.unit.doctor.surroundings import FACTS, GIB

LIVE = snapshot_at(START + 400 * S)
IDS = (
    *("probe", "socket", "nvml", "gpm", "dcgm", "clock-alignment", "py-spy", "ptrace"),
    *("cores", "cgroup", "memory", "terminal", "versions"),
)


def one(about: str, facts: MachineFacts | None = FACTS, snapshot: Snapshot | None = None) -> Check:
    return next(check for check in examine(facts, snapshot) if check.id == about)


def without(*signals: MissingSignal) -> Snapshot:
    return replace(LIVE, status=replace(LIVE.status, missing=signals))


def test_the_ids_are_stable() -> None:
    assert tuple(check.id for check in examine(None, None)) == IDS
    assert tuple(check.id for check in examine(FACTS, LIVE)) == IDS


def test_nothing_is_claimed_before_anything_was_looked_at() -> None:
    assert {check.state for check in examine(None, None)} == {"unknown"}


def test_of_a_recording_this_machine_shows_nothing() -> None:
    replayed = replace(LIVE, status=replace(LIVE.status, replay="12s of 30s"))
    assert one("ptrace", None, replayed).text == "not in a recording"
    assert one("probe", None, replayed).state == "ok"


def test_a_sound_machine_without_a_process() -> None:
    checks = {check.id: check for check in examine(FACTS, None)}
    unknown = {name for name, check in checks.items() if check.state == "unknown"}
    assert unknown == {"probe", "socket", "clock-alignment"}
    assert {check.state for name, check in checks.items() if name not in unknown} == {"ok"}
    assert checks["nvml"].text == "driver 570.86: H200"
    assert "gpuwatch ls" in checks["probe"].fix


def test_a_run_that_is_watched() -> None:
    run = states.on_gpm(LIVE)
    assert one("probe", FACTS, run).text.startswith("steps and phases from within train.py")
    assert one("socket", FACTS, run).state == "ok"
    assert "[gpm 100 ms]" in one("gpm", FACTS, run).text
    assert "312 samples of the main thread" in one("py-spy", FACTS, run).text


def test_what_a_session_misses_is_reported_with_its_remedy() -> None:
    run = without(
        MissingSignal("stacks", "only what started a program may read it (yama 1)", "sysctl x"),
        MissingSignal("gpm", "needs Hopper or newer", instead="NVML stands in"),
        MissingSignal("nvml", "no NVIDIA driver (libnvidia-ml.so.1)"),
        MissingSignal("feed", "the probe's socket does not answer"),
    )
    run = replace(run, stacks=None, gpus=())
    assert one("py-spy", FACTS, run).fix == "sysctl x"
    assert one("py-spy", FACTS, run).text.endswith("(yama 1)")
    for name in ("py-spy", "gpm", "nvml", "socket"):
        assert one(name, FACTS, run).state == "missing"


def test_a_reason_of_two_sentences_is_whole() -> None:
    why = "/tmp/x cannot be trusted. It has to be a directory of user 7."
    check = one("socket", FACTS, without(MissingSignal("feed", why, "Remove it.")))
    assert (check.text, check.fix) == (why, "Remove it.")


def test_a_probe_that_gave_up() -> None:
    run = without(MissingSignal("probe", "a hook failed"))
    assert one("probe", FACTS, run).state == "missing"


def test_a_process_without_a_probe() -> None:
    target = TargetFact(7, "", "", None, "7 (python) has no probe in it", "import probe")
    check = one("probe", replace(FACTS, target=target))
    assert (check.state, check.text) == ("missing", "7 (python) has no probe in it")
    assert check.fix == "import probe"


def test_lost_messages_and_silence() -> None:
    lost = replace(LIVE, status=replace(LIVE.status, lost_messages=12))
    assert one("socket", FACTS, lost).state == "partly"
    silent = replace(LIVE, status=replace(LIVE.status, state="silent", freshness_s=42.0))
    assert "no message for 42 s" in one("socket", FACTS, silent).text


def test_phases_that_are_not_left() -> None:
    unended = replace(LIVE, status=replace(LIVE.status, unended_phases=12))
    check = one("socket", FACTS, unended)
    assert (check.state, "12 phases" in check.text) == ("partly", True)


def test_the_drivers_faults() -> None:
    faulty = replace(FACTS, driver=DriverFact(fault="no NVIDIA driver (libnvidia-ml.so.1)"))
    assert one("nvml", faulty).state == "missing"
    assert "--gpus all" in one("nvml", faulty).fix
    assert one("nvml", replace(FACTS, driver=DriverFact("570"))).state == "missing"
    older = (GpuFact("NVIDIA A100", False), GpuFact("NVIDIA A100", False))
    check = one("gpm", replace(FACTS, driver=DriverFact("570", older)))
    assert check.state == "missing"
    assert check.text.startswith("2x A100: no such counters")


def test_a_dcgm_engine_matters_where_the_counters_are_missing() -> None:
    facts = replace(FACTS, engine=("nv-hostengine", 991))
    assert one("dcgm", facts).state == "ok"
    check = one("dcgm", facts, without(MissingSignal("gpm", "not refreshed")))
    assert check.state == "partly"
    assert check.fix.startswith("dcgmi profile --pause")


def test_the_two_clocks() -> None:
    assert one("clock-alignment", FACTS, LIVE).state == "missing"
    run = states.on_gpm(LIVE)
    assert run.gpu_phases is not None
    aligned = replace(run, gpu_phases=replace(run.gpu_phases, uncertain_ms=0.012, every=5))
    assert "1 step in 5 on the GPU's clock" in one("clock-alignment", FACTS, aligned).text
    assert "±0.012 ms" in one("clock-alignment", FACTS, aligned).text
    adrift = replace(run, gpu_phases=replace(run.gpu_phases, uncertain_ms=None))
    assert one("clock-alignment", FACTS, adrift).state == "partly"


@pytest.mark.parametrize(
    ("scope", "capable", "container", "state", "word"),
    [
        (None, False, False, "ok", "own programs"),
        (0, False, False, "ok", "ptrace_scope=0"),
        (1, True, False, "ok", "CAP_SYS_PTRACE"),
        (1, False, False, "missing", "only what started a program"),
        (1, False, True, "missing", "in this container"),
        (3, False, False, "missing", "until a reboot"),
    ],
)
def test_ptrace(scope: int | None, capable: bool, container: bool, state: str, word: str) -> None:
    check = one("ptrace", replace(FACTS, ptrace=PtraceFact(scope, capable, container)))
    assert check.state == state
    assert word in check.text
    if state == "missing" and scope == 1:
        assert ("cap-add" in check.fix) is container


def test_stacks_that_arrive_are_proof_enough() -> None:
    facts = replace(FACTS, ptrace=PtraceFact(1, False, False))
    assert one("ptrace", facts, LIVE).state == "ok"


def test_a_quota_and_a_limit() -> None:
    tight = CoresFact(allowed=2.5, machine=16, quota_periods=1000, quota_cut=340)
    facts = replace(FACTS, cores=tight, memory=replace(FACTS.memory, total=32 * GIB))
    assert one("cores", facts).text == "2.50 may be used, of 16 in the machine"
    check = one("cgroup", facts)
    assert check.state == "partly"
    assert "a CPU quota of 2.50 cores and a memory limit of 32 GiB" in check.text
    assert "340 of 1,000 periods (34%)" in check.text
    assert one("cgroup", replace(facts, cores=replace(tight, quota_cut=3))).state == "ok"


def test_terminals() -> None:
    plain = replace(FACTS.terminal, charset="ascii", tmux=True)
    assert "tmux -u" in one("terminal", replace(FACTS, terminal=plain)).fix
    few = replace(FACTS.terminal, colours="16")
    assert one("terminal", replace(FACTS, terminal=few)).state == "partly"
    none = replace(FACTS.terminal, screen="no terminal")
    assert "lines of text" in one("terminal", replace(FACTS, terminal=none)).text


def test_two_versions_of_the_wire() -> None:
    assert LIVE.hello is not None
    newer = replace(LIVE, hello=msgspec.structs.replace(LIVE.hello, schema=99))
    assert one("versions", FACTS, newer).state == "partly"
    assert one("versions", FACTS, LIVE).text == "python 3.12.4, gpuwatch 0.1.0"
