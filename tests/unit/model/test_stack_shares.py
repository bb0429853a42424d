"""How much of the samples each place holds, and which samples are counted."""

from gpuwatch.tui.model.observations import StackCount, ThreadRole
from gpuwatch.tui.model.stack_shares import summarise
from gpuwatch.tui.verdict.stack_samples import StackPhase

LOOP = "train (train.py:30)"
NET = (LOOP, "_call_impl (torch/nn/modules/module.py:1790)", "forward (model.py:12)")


def test_stacks_that_were_seen_no_time_have_no_shares() -> None:
    stack = StackCount(role="main", pid=1, thread="t", frames=("f (a.py:1)",), count=0)
    assert summarise([stack]).main == ()


def test_threads_beside_the_training_are_parts_of_its_moments() -> None:
    def seen(role: ThreadRole, pid: int, count: int, *frames: str) -> StackCount:
        return StackCount(role=role, pid=pid, thread="t", frames=frames, count=count)

    found = summarise(
        [
            seen("main", 1, 12, LOOP, "step (torch/optim/adam.py:3)"),
            seen("main", 1, 8, LOOP, "Condition.wait (threading.py:327)"),
            seen("other", 1, 10, "run (t.py:9)", "corrupt (t.py:20)"),
            seen("other", 2, 20, "main (server.py:9)"),
        ]
    )
    assert [(one.frame, one.share, one.samples) for one in found.threads] == [
        ("corrupt (t.py:20)", 0.5, 20)
    ]
    assert found.main_waits == 0.4


def test_imports_are_no_part_of_the_training() -> None:
    """A first second of them made rollouts of a half a fifth, and the run healthy."""
    importing = ("<module> (train.py:1)", "<module> (torch/optim/adam.py:3)")
    phases: dict[tuple[str, ...], StackPhase] = {importing: "starting", NET: "forward"}
    seen = [StackCount(role="main", pid=1, thread="t", frames=frames, count=9) for frames in phases]
    found = summarise(seen, lambda stack: phases[stack.frames])
    assert [one.share for one in found.main] == [1.0]
    assert (found.main_samples, found.starting, found.main_unplaced) == (9, 9, 0.0)


def test_a_batch_of_a_stream_is_known_without_its_fetchers_class() -> None:
    """Before Python 3.11 both kinds of dataset are fetched from in a `fetch`."""
    fetch = "fetch (torch/utils/data/_utils/fetch.py:35)"

    def streams(*frames: str) -> bool:
        stack = StackCount(role="worker", pid=1, thread="t", frames=frames, count=9)
        return summarise([stack]).streams

    assert streams("_worker_loop (torch/utils/data/_utils/worker.py:3)", fetch, "__iter__ (a.py:9)")
    assert streams(f"_IterableDatasetFetcher.{fetch}", "generate (a.py:9)")
    assert not streams(fetch, "<listcomp> (torch/utils/data/_utils/fetch.py:54)")
    assert not streams(f"_MapDatasetFetcher.{fetch}", "Words.__getitem__ (a.py:9)")
