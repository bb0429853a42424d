"""What a wait for data is told without a probe: workers that start anew, and none at all."""

from collections.abc import Sequence

from msgspec import structs

from gpuwatch.tui.model.observations import AnyObservation, ProcessesSeen
from gpuwatch.tui.verdict.findings import Finding
from tests.unit.session.sampled_run import S, Seen, chunk, drawn, processes, session, watched
from tests.unit.stack_phases.real_stacks import BACKWARD, FETCH, FORWARD, TRAIN, WAIT

LOOP = "_worker_loop (torch/utils/data/_utils/worker.py:349)"
STACKS = {
    "waits": Seen((*TRAIN, *WAIT), "for x, y in loader:"),
    "loads": Seen((*TRAIN, *FETCH, "collate (data.py:9)"), "return torch.stack(rows)"),
    "forward": Seen((*TRAIN, *FORWARD), "loss = net(x)"),
    "backward": Seen((*TRAIN, *BACKWARD), "loss.backward()"),
    "decodes": Seen((LOOP, "Photos.__getitem__ (data.py:12)", "load (PIL/ImageFile.py:300)"),
                    "img.load()", "worker"),
    "idles": Seen((LOOP, "Queue.get (multiprocessing/queues.py:113)"), "", "worker"),
    "starts": Seen(("spawn_main (multiprocessing/spawn.py:122)", "<module> (data.py:3)"),
                   "import torchvision", "other"),
}  # fmt: skip


LOADS = {"loads": 0.45, "forward": 0.25, "backward": 0.3}


def on_cores(cores: float, main: float) -> list[ProcessesSeen]:
    looks = (processes(second * S, main, ()) for second in range(1, 52))
    return [structs.replace(one, cores=cores) for one in looks]


def in_epochs(t_s: int, cpu: float) -> ProcessesSeen:
    """Two workers, others every 14 seconds."""
    seen = processes(t_s * S, 30.0, (cpu, cpu))
    main, *workers = seen.processes
    anew = (structs.replace(one, pid=one.pid + 10 * (t_s // 14)) for one in workers)
    return structs.replace(seen, processes=(main, *anew))


def found_in(shares: dict[str, float], looks: Sequence[ProcessesSeen]) -> Finding:
    seen: list[AnyObservation] = [*drawn(STACKS, shares, 52), *looks]
    finding = watched(session(), seen, 52).verdict.finding
    assert finding.kind == "input"
    return finding


WAITS = {"waits": 0.4, "forward": 0.05, "backward": 0.1}


def test_workers_that_make_batches_all_the_time_are_not_late_by_their_start() -> None:
    """Two that decoded at 98 % of a core in epochs of 14 s: "persistent_workers=True, 3.8x"."""
    looks = [in_epochs(second, 98.0) for second in range(1, 52)]
    finding = found_in({**WAITS, "decodes": 0.45}, looks)
    assert finding.sub != "epoch-start"
    assert not any("persistent_workers" in advice for advice in finding.advice)
    assert any("load (PIL/ImageFile.py:300)" in advice for advice in finding.advice)


def test_workers_that_hardly_make_any_are() -> None:
    looks = [in_epochs(second, 20.0) for second in range(1, 52)]
    finding = found_in({**WAITS, "decodes": 0.1, "idles": 0.35}, looks)
    assert finding.sub == "epoch-start"
    assert finding.advice[0].startswith("persistent_workers=True")
    assert finding.forecast is not None
    assert finding.forecast.speedup < 3.0, "a worker that persists makes its batches too"


def test_workers_that_import_for_longer_than_they_work_are_late_by_their_start() -> None:
    looks = [in_epochs(second, 98.0) for second in range(1, 52)]
    assert found_in({**WAITS, "decodes": 0.15, "starts": 0.3}, looks).sub == "epoch-start"


def test_workers_do_not_come_first_where_the_net_uses_all_cores() -> None:
    """ "num_workers 0 → 1, about 1.03x" was the first advice."""
    finding = found_in({**LOADS, "loads": 0.2}, on_cores(2.0, 195.0))
    first, second = finding.advice
    assert first.startswith("make it cheaper")
    assert second == "workers will not help: batches and training need the 2 cores"


def test_what_a_worker_gives_to_steps_that_no_sample_follows_is_a_bound() -> None:
    """A worker made a table's training 0.3 to 0.5x as fast, of which 1.4x was said."""
    finding = found_in(LOADS, on_cores(8.0, 100.0))
    assert finding.advice[0].startswith("num_workers 0 → 1, about ")
    assert "if making a batch takes much longer than the 1 to 2 ms of rec" in finding.advice[0]
    assert finding.forecast is not None
    assert finding.forecast.kind == "bound"


def test_what_it_gives_to_long_steps_is_an_estimate() -> None:
    cycle = ["serial"] * 6 + ["forward"] * 2 + ["backward"] * 4
    stacks = [chunk(n, [cycle[(20 * n + at) % 12] for at in range(19)]) for n in range(26)]
    finding = watched(session(), [*stacks, *on_cores(8.0, 100.0)], 52).verdict.finding
    assert finding.advice[0].startswith("num_workers 0 → 1, about 2.0x")
    assert "receiving" not in finding.advice[0]
    assert finding.forecast is not None
    assert finding.forecast.kind == "estimate"
