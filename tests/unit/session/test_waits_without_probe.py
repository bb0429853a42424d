"""What a run without a probe waits for, where that is no loader."""

import pytest
from msgspec import structs

from gpuwatch.tui.model.observations import AnyObservation
from gpuwatch.tui.verdict.findings import Finding
from tests.unit.session.sampled_run import S, chunk, chunks, processes, session, watched

TRAINS = {"forward": 0.3, "backward": 0.6, "optimizer": 0.1}


def beside_its_own(shares: dict[str, float], percent: float = 48.0) -> Finding:
    """With 16 processes that it has started, on eight cores that others use too."""
    looks = []
    for second in range(25):
        seen = processes(second * S, 5.0, (percent,) * 16)
        main, *others = seen.processes
        queue = [structs.replace(one, run_delay_percent=50.0) for one in others]
        seen = structs.replace(seen, processes=(main, *queue), machine_cpu_percent=98.0)
        looks.append(seen)
    return watched(session(), [*chunks(shares, 24), *looks], 25).verdict.finding


def test_who_only_collects_what_others_report_is_not_bound_by_data() -> None:
    """A3C's main process: "waiting for data takes ~100%, num_workers 8 → 4", without a loader."""
    finding = beside_its_own({"collects": 1.0})
    assert (finding.kind, finding.sub) == ("incomplete", "thread")
    assert "gpuwatch attach to that one" in finding.advice[1]


@pytest.mark.parametrize(("waits", "sub"), [("collects", None), ("data", "oversubscribed")])
def test_only_a_loader_has_workers(waits: str, sub: str | None) -> None:
    finding = beside_its_own({waits: 1.5, **TRAINS})
    assert (finding.kind, finding.sub) == ("input", sub)
    assert ("num_workers" in " ".join(finding.advice)) == (sub is not None)


@pytest.mark.parametrize(("data", "has_loader"), [(0.1, False), (2.0, True)])
def test_advice_for_a_loader_is_for_one_that_holds_most_of_the_waits(
    data: float, has_loader: bool
) -> None:
    """ "Workers wait for what they fetch" beside a `torch.load` in the loop."""
    finding = beside_its_own({"loads": 1.5, "data": data, **TRAINS})
    assert (finding.sub == "oversubscribed") is has_loader


def test_what_fills_all_cores_is_not_told_to_be_more() -> None:
    shares = {"ahead": 1.5, **TRAINS}
    idle, full = beside_its_own(shares, percent=10.0), beside_its_own(shares)
    assert (idle.sub, full.sub) == (None, None)
    assert "on another thread" in idle.advice[1]
    assert full.advice == ("make batches cheaper: store data at the size and type used",)


def test_a_rank_that_waits_for_another_is_not_stalled_so_soon() -> None:
    """ "STALLED, critical" whenever rank 0 evaluated, for other ranks are no children."""

    def waited(seconds: int) -> Finding:
        seen: list[AnyObservation] = [*chunks(TRAINS, 20)]
        seen += [chunk(10 + number, ("ranks",) * 19) for number in range(seconds // 2)]
        seen += [processes(at * S, 100.0 if at < 20 else 0.0, ()) for at in range(20 + seconds)]
        return watched(session(), seen, 20 + seconds).verdict.finding

    assert waited(30).kind == "communication"
    stalled = waited(130)
    assert stalled.kind == "stalled"
    assert ": waiting for other ranks in all_reduce (" in stalled.headline
    assert stalled.advice[0].startswith("look at the other ranks")


def test_a_wait_in_c_for_an_asynchronous_collective_is_no_wait_for_work() -> None:
    """`work.wait()` has no frame of its own, and was met by a monitor that saw no step before."""
    wait = structs.replace(chunk(10, ("other",)).stacks[0], line="for work in works: work.wait()")
    stuck = [
        structs.replace(one, stacks=(structs.replace(wait, count=19, moments=(1 << 19) - 1),))
        for one in (chunk(number, ("other",) * 19) for number in range(25))
    ]
    seen = [processes(at * S, 0.0, ()) for at in range(50)]
    finding = watched(session(), [*stuck, *seen], 50).verdict.finding
    assert finding.kind == "stalled"
