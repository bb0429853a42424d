"""What is reported of a run without a probe, from samples of its main thread alone."""

from collections.abc import Sequence

import pytest
from msgspec import structs

from gpuwatch.tui.model.observations import (
    Activity,
    ActivitySeen,
    AnyObservation,
    GpusSeen,
    Greeted,
    Missing,
    StacksSeen,
)
from gpuwatch.tui.model.snapshot import Snapshot
from gpuwatch.tui.verdict.forecast.interval import forecast_of
from gpuwatch.tui.verdict.thresholds.samples import SAMPLED_MOST_CONFIDENT
from tests.unit.session.making import HELLO, judged
from tests.unit.session.sampled_run import (
    NO_GPU,
    S,
    chunk,
    chunks,
    gpu,
    processes,
    session,
    watched,
)

TRAINS = {"forward": 0.3, "backward": 0.6, "optimizer": 0.1}


def snapshot_of(
    stacks: Sequence[StacksSeen],
    main: float = 100.0,
    workers: Sequence[float] = (),
    busy: float | None = None,
) -> Snapshot:
    seconds = 2 * len(stacks) + 1
    seen: list[AnyObservation] = [*stacks]
    seen += [processes(second * S, main, workers) for second in range(seconds)]
    if busy is not None:
        seen += [GpusSeen(t_ns=second * S, gpus=(gpu(),)) for second in range(seconds)]
        seen += [
            ActivitySeen(
                t_ns=tenth * S // 10,
                gpus=(Activity(index=0, source="gpm", interval_ns=S // 10, busy=busy, sm=busy),),
            )
            for tenth in range(10 * seconds)
        ]
    return watched(session(), seen, seconds)


def kinds(snapshot: Snapshot) -> tuple[str, str | None]:
    finding = snapshot.verdict.finding
    return finding.kind, finding.sub


def test_nothing_is_reported_before_there_are_samples() -> None:
    snapshot = snapshot_of([])
    assert kinds(snapshot)[0] == "warming-up"
    assert snapshot.status.mode == "no probe"
    assert snapshot.status.state == "live"


@pytest.mark.parametrize(
    ("shares", "workers", "expected"),
    [
        ({"serial": 0.6, **TRAINS}, (), ("input", "serial")),
        ({"data": 1.5, **TRAINS}, (100.0, 100.0), ("input", None)),
        ({"loads": 4.0, **TRAINS}, (), ("input", None)),
        ({"ahead": 0.6, **TRAINS}, (), ("input", None)),
        ({"joins": 0.6, **TRAINS}, (), ("host", "waits")),
        ({"ranks": 0.6, **TRAINS}, (), ("communication", "waiting")),
        ({"other": 0.6, **TRAINS}, (), ("host", None)),
        ({"checkpoint": 0.6, **TRAINS}, (), ("checkpoint", None)),
        ({"evaluation": 0.6, **TRAINS}, (), ("evaluation", None)),
        (TRAINS, (), ("healthy", None)),
        ({"other": 0.03, "data": 0.03, **TRAINS}, (50.0,), ("healthy", None)),
    ],
)
def test_without_a_gpu(
    shares: dict[str, float], workers: Sequence[float], expected: tuple[str, str | None]
) -> None:
    snapshot = snapshot_of(chunks(shares, 24), workers=workers)
    assert kinds(snapshot) == expected
    assert snapshot.verdict.confidence <= SAMPLED_MOST_CONFIDENT
    assert snapshot.verdict.since_step is None


def test_without_a_gpu_nothing_waits_for_one() -> None:
    """A line that reads a tensor is Python like any other there: "GPU wait ~63%" was shown beside
    "no NVIDIA driver"."""
    snapshot = snapshot_of(chunks({"printed": 0.6, **TRAINS}, 24))
    assert snapshot.sampled is not None
    assert snapshot.sampled.share("synchronisation").mean == 0.0
    assert snapshot.sampled.share("other").mean > 0.2
    assert kinds(snapshot)[0] == "host"


def test_what_waits_is_no_python() -> None:
    """And is on another thread already."""
    waits = snapshot_of(chunks({"joins": 0.6, **TRAINS}, 24)).verdict.finding
    ahead = snapshot_of(chunks({"ahead": 0.6, **TRAINS}, 24)).verdict.finding
    assert waits.headline.startswith("waits for another thread, a process or a server take ~")
    assert waits.speedup_is == "bound"
    for one in (waits, ahead):
        text = " ".join((one.headline, *one.advice))
        assert "Python" not in text
        assert "tensor expression" not in text


def test_a_wait_for_other_ranks_is_no_python() -> None:
    """Gradients averaged by hand over gloo: "Python between the phases, 4.4x by one tensor
    expression"."""
    finding = snapshot_of(chunks({"ranks": 0.6, "other": 0.2, **TRAINS}, 24)).verdict.finding
    assert finding.headline.startswith("waits for other ranks take ~")
    assert "average_gradients (train.py:15)" in finding.evidence[1].text
    assert finding.speedup_is == "bound"
    assert kinds(snapshot_of(chunks({"ranks": 1.0, **TRAINS}, 24), busy=40.0))[0] == "sync"


def test_batches_that_wait_need_workers_and_no_cores() -> None:
    finding = snapshot_of(chunks({"serial": 9.0, **TRAINS}, 24), main=15.0).verdict.finding
    assert (finding.kind, finding.sub) == ("input", "serial")
    assert "who waits needs no core" in finding.advice[0]
    assert finding.forecast is not None
    assert finding.forecast.low < finding.forecast.speedup / 2
    computes = snapshot_of(chunks({"serial": 9.0, **TRAINS}, 24), main=100.0).verdict.finding
    assert "who waits" not in " ".join(computes.advice)


@pytest.mark.parametrize("main", [15.0, 100.0], ids=["waits", "computes"])
def test_workers_of_a_stream_must_split_it(main: float) -> None:
    """ "num_workers 0 → 2" alone trains on every sample twice."""
    for name, split in (("stream", True), ("serial", False)):
        finding = snapshot_of(chunks({name: 3.0, **TRAINS}, 24), main=main).verdict.finding
        assert finding.advice[0].startswith("num_workers 0 → ")
        assert ("or each worker repeats it" in finding.advice[0]) == split


def test_a_main_thread_that_joins_another_is_reported_to_wait() -> None:
    """ "No sample of the training yet" was all that was shown, for ever."""
    snapshot = snapshot_of(chunks({"joins": 1.0}, 24))
    assert kinds(snapshot) == ("incomplete", "thread")
    assert "<module> (train.py:90)" in snapshot.verdict.finding.evidence[0].text


def test_what_is_named_beside_a_wait_is_where_it_waits() -> None:
    """And not where the main thread is most of the time."""
    finding = snapshot_of(chunks({"serial": 0.3, **TRAINS}, 24)).verdict.finding
    assert finding.kind == "input"
    named = [
        one.text for one in finding.evidence if " samples (" in one.text and " are in " in one.text
    ]
    assert len(named) == 1
    assert "Photos.__getitem__ (photos.py:20)" in named[0]
    assert any("Photos.__getitem__" in one for one in finding.advice)
    for evidence in snapshot_of(
        chunks({"data": 0.3, **TRAINS}, 24), workers=(50.0,)
    ).verdict.finding.evidence:
        assert "backward" not in evidence.text


def test_a_first_verdict_that_was_wrong_does_not_stand_for_a_minute() -> None:
    shown = [*chunks({"other": 0.5, **TRAINS}, 6), *chunks({"data": 1.0, **TRAINS}, 40, seed=1)]
    stacks = [
        structs.replace(one, t_ns=(2 * number + 2) * S, started_ns=2 * number * S)
        for number, one in enumerate(shown)
    ]
    assert kinds(snapshot_of(stacks[:4]))[0] == "host"
    assert kinds(snapshot_of(stacks[:15]))[0] == "input"


@pytest.mark.parametrize("seed", range(8))
def test_a_healthy_run_is_never_called_bound(seed: int) -> None:
    made = session()
    kinds_seen = set()
    seen: list[AnyObservation] = [
        *chunks({"data": 0.05, "other": 0.05, **TRAINS}, 80, seed),
        *(processes(second * S, 100.0, (60.0,)) for second in range(80)),
    ]
    for until in range(1, 81):
        due = [one for one in seen if (until - 1) * S < one.t_ns <= until * S]
        for one in due:
            made.ingest(one)
        kinds_seen.add(judged(made, until * S, 0.0).verdict.finding.kind)
    assert kinds_seen <= {"warming-up", "incomplete", "healthy"}
    assert judged(made, 80 * S, 0.0).verdict.finding.kind == "healthy"


def test_the_share_has_an_interval_and_every_figure_shows_that_it_is_an_estimate() -> None:
    snapshot = snapshot_of(chunks({"data": 1.0, **TRAINS}, 24))
    evidence = snapshot.sampled
    assert evidence is not None
    share = evidence.share("data")
    assert share.low < 0.5 < share.high
    assert sum(one.mean for one in evidence.shares.values()) == pytest.approx(1)
    finding = snapshot.verdict.finding
    assert "~" in finding.headline
    assert finding.evidence[0].source == "py-spy"
    assert f"of {evidence.samples} samples" in finding.evidence[0].text
    texts = [finding.headline, *finding.advice, *(one.text for one in finding.evidence)]
    assert not any(" ms" in text for text in texts), "nobody measured milliseconds of a step"


def test_with_a_gpu_only_what_it_idled_for_is_lost() -> None:
    stacks = chunks({"data": 1.0, **TRAINS}, 24)
    hidden, exposed = snapshot_of(stacks, busy=99.0), snapshot_of(stacks, busy=60.0)
    assert kinds(hidden)[0] == "compute"
    assert kinds(exposed)[0] == "input"
    assert exposed.verdict.finding.share == pytest.approx(0.4, abs=0.01)


def test_a_gpu_that_idles_for_no_known_reason_is_no_verdict() -> None:
    snapshot = snapshot_of(chunks(TRAINS, 24), busy=40.0)
    assert kinds(snapshot) == ("incomplete", "clock")
    assert snapshot.verdict.finding.advice[0].startswith("with the probe, GPU timing")


def test_the_main_thread_that_waits_for_a_busy_gpu_is_not_host_bound() -> None:
    assert kinds(snapshot_of(chunks({"other": 1.0, **TRAINS}, 24), busy=97.0))[0] == "compute"


class TestStalled:
    STUCK = ("data",) * 19

    def stuck(self, seconds: int, main: float, workers: Sequence[float]) -> Snapshot:
        before = chunks(TRAINS, 20)
        after = [chunk(10 + number, self.STUCK) for number in range(seconds // 2)]
        seen: list[AnyObservation] = [*before, *after]
        seen += [processes(second * S, 100.0, (50.0,)) for second in range(20)]
        seen += [processes((20 + second) * S, main, workers) for second in range(seconds)]
        return watched(session(), seen, 20 + seconds)

    def test_nothing_moves_and_nothing_runs(self) -> None:
        snapshot = self.stuck(30, 0.0, (0.0, 0.0))
        assert kinds(snapshot)[0] == "stalled"
        assert snapshot.verdict.confidence == SAMPLED_MOST_CONFIDENT
        assert snapshot.verdict.finding.severity == "critical"

    def test_workers_that_work_make_it_a_long_wait(self) -> None:
        assert kinds(self.stuck(30, 0.0, (80.0, 0.0)))[0] != "stalled"

    def test_a_step_now_and_then_that_no_sample_met_is_seen_by_its_cpu(self) -> None:
        assert kinds(self.stuck(30, 2.0, (0.0, 0.0)))[0] != "stalled"

    def test_not_before_twenty_seconds(self) -> None:
        assert kinds(self.stuck(14, 0.0, (0.0,)))[0] != "stalled"

    @pytest.mark.parametrize(
        ("before", "held", "expected"),
        [
            (None, "serves", ("healthy", "idle")),
            (TRAINS, "serves", ("healthy", "idle")),
            ({"forward": 1.0}, "serves", ("healthy", "idle")),
            (None, "locked", ("healthy", "idle")),
            (TRAINS, "locked", ("stalled", None)),
            (None, "data", ("stalled", None)),
            (None, "backward", ("stalled", None)),
        ],
    )
    def test_what_waits_for_work_is_idle(
        self, before: dict[str, float] | None, held: str, expected: tuple[str, str | None]
    ) -> None:
        """A model behind http.server, without a request for 21 s, was "STALLED, critical"."""
        stuck = [chunk(number, (held,) * 19) for number in range(10, 25)]
        seen: list[AnyObservation] = [*(chunks(before, 20) if before else ()), *stuck]
        seen += [processes(second * S, 100.0 if second < 20 else 0.0, ()) for second in range(50)]
        assert kinds(watched(session(), seen, 50)) == expected


def test_a_probe_that_comes_takes_over() -> None:
    made = session()
    watched(made, chunks({"data": 1.0, **TRAINS}, 24), 24)
    made.ingest(Missing(t_ns=25 * S, source="probe", reason=""))
    made.ingest(Greeted(t_ns=25 * S, hello=HELLO))
    snapshot = judged(made, 26 * S, 0.0)
    assert snapshot.status.mode == "hooks"
    assert snapshot.sampled is None
    assert kinds(snapshot)[0] == "warming-up"


def test_a_process_without_torch_is_reported_to_have_none() -> None:
    made = session()
    reason = "no torch loaded in it: it trains nothing, as far as can be seen"
    made.ingest(Missing(t_ns=5 * S, source="torch", reason=reason))
    snapshot = watched(made, [], 7)
    assert kinds(snapshot) == ("incomplete", "torch")
    assert reason in snapshot.verdict.finding.evidence[0].text


def test_what_trains_nothing_is_not_stalled() -> None:
    """ "STALLED, critical" came after 20 s of a `sleep`."""
    made = session()
    made.ingest(Missing(t_ns=5 * S, source="torch", reason="no torch loaded"))
    seen: list[AnyObservation] = [*chunks({"joins": 1.0}, 40)]
    seen += [processes(second * S, 0.0, ()) for second in range(41)]
    assert kinds(watched(made, seen, 41)) == ("incomplete", "torch")


def test_stacks_that_are_refused_leave_no_verdict_and_show_it() -> None:
    made = session()
    made.ingest(Missing(t_ns=S, source="stacks", reason="this user may not look into the process"))
    snapshot = watched(made, [], 7)
    assert kinds(snapshot) == ("incomplete", "stacks")


@pytest.mark.parametrize("before", ["other", "loads"])
def test_the_start_of_a_run_is_no_part_of_it(before: str) -> None:
    """Imports, the making of data and what is read would be "Python between the phases"."""
    start = [chunk(number, (before,) * 19) for number in range(4)]
    rest = [
        StacksSeen(
            t_ns=one.t_ns + 8 * S,
            started_ns=one.started_ns + 8 * S,
            samples=one.samples,
            stacks=one.stacks,
            moments_ms=one.moments_ms,
            seen=one.seen,
        )
        for one in chunks(TRAINS, 20)
    ]
    snapshot = snapshot_of([*start, *rest])
    assert kinds(snapshot)[0] == "healthy"
    assert snapshot.sampled is not None
    assert snapshot.sampled.share("other").mean == snapshot.sampled.share("data").mean == 0.0


def test_what_evaluates_and_never_trains_is_inference() -> None:
    snapshot = snapshot_of(chunks({"evaluation": 1.0, "data": 0.02}, 24))
    assert kinds(snapshot)[0] == "healthy"


def test_what_an_agent_does_in_its_environment_cannot_go() -> None:
    """PPO was told to evaluate less often, or on a part of the held-out set: 9.2x."""
    finding = snapshot_of(chunks({"acts": 2.0, **TRAINS}, 24)).verdict.finding
    assert (finding.kind, finding.sub) == ("evaluation", "rollout")
    assert finding.headline.startswith("rollouts take ~")
    assert "environments" in finding.advice[0]
    assert finding.speedup_is == "bound"
    forecast = forecast_of(finding)
    assert forecast is not None
    assert forecast.low == 1.0


def test_what_every_step_learns_from_is_no_evaluation() -> None:
    """Pseudo-labels, whose function is decorated without gradients: half of the time was
    "evaluate less often" without a probe, and a part of the forward with one."""
    taken = chunks({"evaluation": 0.5, "backward": 0.5}, 24)
    taught = [
        structs.replace(
            one, stacks=tuple(structs.replace(stack, in_step=True) for stack in one.stacks)
        )
        for one in taken
    ]
    assert kinds(snapshot_of(taken))[0] == "evaluation"
    snapshot = snapshot_of(taught)
    assert kinds(snapshot)[0] == "healthy"
    assert snapshot.sampled is not None
    assert snapshot.sampled.share("evaluation").mean == 0.0


def test_memory_that_grows_is_measured_by_seconds() -> None:
    made, grows = session(), 20 * 2**20
    for second in range(1, 420):
        made.ingest(processes(second * S, 100.0, (), rss_bytes=2**30 + grows * second))
        if second % 2 == 0:
            made.ingest(chunk(second // 2 - 1, ("forward", "backward") * 9))
        judged(made, second * S, 0.0)
    snapshot = judged(made, 420 * S, 0.0)
    assert kinds(snapshot)[0] == "memory-growth"
    assert snapshot.verdict.finding.headline.startswith("host memory grows 2.0 GiB per 100 s")
    texts = " ".join(one.text for one in snapshot.verdict.finding.evidence)
    assert "steps" not in texts
    assert snapshot.memory.slope_bytes_per_100_steps is None
    assert snapshot.trends[0].unit == "s"


def test_no_gpu_is_reported_beside() -> None:
    assert any(one.signal == "nvml" for one in snapshot_of([]).status.missing)
    assert NO_GPU.reason in " ".join(one.why for one in snapshot_of([]).status.missing)


@pytest.mark.parametrize("forks", [False, True], ids=["alone", "forks workers"])
def test_memory_that_is_asked_for_anew_is_seen_from_outside(forks: bool) -> None:
    """Nobody counts how often a process forks there, and each fork makes pages new as well."""
    looks = []
    for second in range(1, 31):
        seen = processes(second * S, 100.0, [40.0] if forks else [])
        main, *workers = seen.processes
        main = structs.replace(main, in_kernel_percent=28.0, page_faults_s=120_000.0)
        anew = [structs.replace(one, pid=one.pid + second // 5) for one in workers]
        looks.append(structs.replace(seen, processes=(main, *anew)))
    verdict = watched(session(), [*chunks(TRAINS, 30), *looks], 31).verdict
    assert verdict is not None
    expected = ("healthy", None) if forks else ("allocator", "page-faults")
    assert (verdict.finding.kind, verdict.finding.sub) == expected
