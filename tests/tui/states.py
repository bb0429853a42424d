"""The same run in every state that the screen knows."""

from dataclasses import replace

from tests.tui.fake_run import NO_GPU_NOTE, S
from tui.snapshot import MemoryView, Snapshot, Status
from tui.verdict.findings import Evidence, Finding, Kind, Verdict

NOTHING_KNOWN = MemoryView((), None, None, None, None, None, False)


def _says(kind: Kind, headline: str, *advice: str, evidence: tuple[Evidence, ...] = ()) -> Finding:
    severity = "critical" if kind == "stalled" else "info"
    return Finding(
        kind=kind,
        sub=None,
        severity=severity,  # type: ignore[arg-type]
        share=None,
        share_low=None,
        share_high=None,
        speedup=None,
        speedup_is=None,
        headline=headline,
        evidence=evidence,
        advice=advice,
    )


def connecting(snapshot: Snapshot) -> Snapshot:
    """Nothing was heard yet."""
    finding = _says("warming-up", "waiting for the first steps")
    return replace(
        snapshot,
        hello=None,
        attached_s=0.2,
        status=Status("no probe", "connecting", None, None, 0, 0, None, None, ()),
        verdict=Verdict(finding, 0.0, None, None, (), ()),
        steps=None,
        recent=(),
        open_step=None,
        sawtooth=None,
        memory=NOTHING_KNOWN,
        stacks=None,
        processes=(),
        cores=None,
        gpus=(),
        events=(),
    )


def warming_up(snapshot: Snapshot) -> Snapshot:
    """Too few steps for a verdict."""
    finding = _says("warming-up", "4 of 10 steps seen")
    assert snapshot.steps is not None
    assert snapshot.sawtooth is not None
    saw = snapshot.sawtooth
    return replace(
        snapshot,
        verdict=Verdict(finding, 0.0, None, None, (), ()),
        steps=replace(snapshot.steps, total=4, in_window=4, window_s=5.0),
        sawtooth=replace(saw, samples=saw.samples[-60:], step_starts_ns=saw.step_starts_ns[-5:]),
        memory=replace(
            snapshot.memory,
            host=snapshot.memory.host[-5:],
            slope_bytes_per_100_steps=None,
            growing=False,
        ),
        stacks=None,
        events=(),
    )


def stalled(snapshot: Snapshot) -> Snapshot:
    """No step for a while."""
    evidence = (
        Evidence("31 s in DataLoader.__next__, a step took 1.24 s", "hook", 31.0, "s"),
        Evidence("main thread in select.poll ← _try_get_data (dataloader.py:1133)", "py-spy"),
    )
    advice = "worker 48233 waits for a disk: look at the mount that it reads from"
    finding = _says("stalled", "no step for 31 s", advice, evidence=evidence)
    return replace(snapshot, verdict=Verdict(finding, 0.9, None, snapshot.t_ns - 31 * S, (), ()))


def ended(snapshot: Snapshot) -> Snapshot:
    """The target was killed."""
    status = replace(snapshot.status, state="ended", ended="killed by SIGKILL 12 s ago")
    return replace(snapshot, t_ns=snapshot.t_ns + 12 * S, status=status)


def incomplete(snapshot: Snapshot) -> Snapshot:
    """Signals are missing: no probe, no stacks."""
    finding = _says(
        "incomplete",
        "no probe in the process",
        "add `import probe; probe.install()` to train.py, or start it with gpuwatch run",
    )
    missing = (
        "feed: no probe in process 48213",
        "stacks: ptrace refused (yama ptrace_scope=1). sudo -E gpuwatch attach 48213",
    )
    status = Status("no probe", "live", None, None, 0, 0, None, 2.2, missing)
    verdict = Verdict(finding, 0.0, None, None, (), missing)
    return replace(
        snapshot, status=status, verdict=verdict, steps=None, recent=(), stacks=None, events=()
    )


def healthy_without_gpu(snapshot: Snapshot) -> Snapshot:
    """Nothing above the threshold, on a machine without a GPU."""
    saw = snapshot.sawtooth
    assert saw is not None
    own = replace(saw, title="process computes %", source="hook, 100 ms", note=NO_GPU_NOTE)
    missing = ("nvml: no NVIDIA driver found (libnvidia-ml.so.1)",)
    evidence = (Evidence("data wait 2% and Python between the phases 3% of a step", "hook"),)
    finding = replace(
        _says("healthy", "no cause holds 10% of a step", evidence=evidence), severity="info"
    )
    memory = replace(snapshot.memory, growing=False, slope_bytes_per_100_steps=None)
    return replace(
        snapshot,
        gpus=(),
        sawtooth=own,
        memory=memory,
        verdict=Verdict(finding, 0.85, 10, snapshot.t_ns - 95 * S, (), missing),
    )
