"""Steps so long that a verdict by them would take minutes, and a process that somebody stopped."""

from msgspec import structs

from gpuwatch.tui.model.observations import Activity, ActivitySeen, GpusSeen, Greeted
from gpuwatch.tui.model.snapshot import Snapshot
from gpuwatch.tui.session.session import Session
from gpuwatch.tui.verdict.engine import Engine
from tests.unit.session.making import HELLO, delivered, judged, open_at, step
from tests.unit.session.sampled_run import NO_GPU, S, chunks, gpu, processes

STEP_S = 9
SHARES = {"serial": 1.2, "forward": 0.6, "backward": 0.9, "optimizer": 0.1}


def session() -> Session:
    made = Session(48213, "train.py", 0, Engine())
    made.ingest(Greeted(t_ns=0, hello=HELLO))
    made.ingest(NO_GPU)
    return made


def until(made: Session, seconds: int, step_s: int = STEP_S) -> list[Snapshot]:
    """A look a second at steps of `step_s`, of which nearly half waits for data."""
    seen = {one.t_ns // S: one for one in chunks(SHARES, seconds)}
    looks = []
    for second in range(1, seconds + 1):
        if second % step_s == 0:
            number = second // step_s
            parts = {"data_ms": 430.0 * step_s, "forward_ms": 220.0 * step_s}
            row = step(number, (second - step_s) * 1e3, backward_ms=350.0 * step_s, **parts)
            opened = open_at(second * 1e3)
            made.ingest(delivered([row], second * 1e3, open=opened))
        if second in seen:
            made.ingest(seen[second])
        looks.append(judged(made, second * S, 0.0))
    return looks


def test_samples_fill_in_until_long_steps_are_enough() -> None:
    """Twenty steps of 9 s are three minutes: in one there is a verdict."""
    looks = until(session(), 60)
    kinds = [look.verdict.finding.kind for look in looks]
    assert "input" in kinds
    last = looks[4 * STEP_S]
    assert (last.verdict.finding.kind, last.verdict.finding.sub) == ("input", "serial")
    assert "samples" in last.verdict.finding.evidence[0].text
    assert last.steps is not None
    assert last.steps.total == 4
    assert last.sampled is None, "there are steps to show"


def test_a_gpu_that_idles_in_few_long_steps_wants_more_of_them_and_no_probe() -> None:
    """PhyCRNet on an H200: after two steps of 5.5 s the probe was told to be put in, which ran."""
    made = Session(48213, "train.py", 0, Engine())
    made.ingest(Greeted(t_ns=0, hello=HELLO))
    seen = {one.t_ns // S: one for one in chunks({"forward": 0.6, "backward": 0.4}, 30)}
    for second in range(1, 31):
        made.ingest(GpusSeen(t_ns=second * S, gpus=(gpu(),)))
        use = Activity(index=0, source="gpm", interval_ns=S, busy=26.0, sm=10.0)
        made.ingest(ActivitySeen(t_ns=second * S, gpus=(use,)))
        if second % STEP_S == 0:
            row = step(second // STEP_S, (second - STEP_S) * 1e3, forward_ms=STEP_S * 1e3)
            made.ingest(delivered([row], second * 1e3, open=open_at(second * 1e3)))
        if second in seen:
            made.ingest(seen[second])
        finding = judged(made, second * S, 0.0).verdict.finding
    assert (finding.kind, finding.sub) == ("incomplete", "clock")
    assert finding.advice[0].startswith("with more of its long steps, GPU timing")


def test_steps_judge_once_there_are_enough() -> None:
    """Three after the warm-up."""
    last = until(session(), 5 * STEP_S + 1)[-1].verdict.finding
    assert last.kind == "input"
    assert "per step spent waiting for the loader" in last.evidence[0].text


def test_short_steps_are_waited_for() -> None:
    """No sample stands in for steps of a second, which are soon enough."""
    looks = [look.verdict.finding for look in until(session(), 12, step_s=1)]
    assert {finding.kind for finding in looks[:5]} == {"warming-up"}
    assert looks[-1].kind == "input"
    assert "per step spent waiting for the loader" in looks[-1].evidence[0].text


def test_a_process_in_state_t_is_stopped() -> None:
    made = session()
    until(made, 12, step_s=1)
    seen = processes(13 * S, 0.0, ())
    main = structs.replace(seen.processes[0], status="T")
    made.ingest(structs.replace(seen, processes=(main,)))
    finding = judged(made, 13 * S, 0.0).verdict.finding
    assert (finding.kind, finding.sub) == ("stalled", "stopped")
    made.ingest(processes(14 * S, 90.0, ()))
    assert judged(made, 14 * S, 0.0).verdict.finding.kind != "stalled"
