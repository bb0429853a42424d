"""Stacks merged into trees, in which only what shows something has a row."""

from gpuwatch.tui.model.observations import StacksSeen
from gpuwatch.tui.model.stack_trees import Branch, Merged
from gpuwatch.tui.session.stacks import branches_of
from gpuwatch.tui.session.stacks_by_gpu_state import stacks_of, threads_of
from tests.unit.sources.test_stacks import chunk

TRAIN = ("<module> (train.py:1)", "main (train.py:9)")
NEXT = ("__next__ (torch/utils/data/dataloader.py:7)", "_get (torch/utils/data/dataloader.py:8)")


def stacks(*rows: tuple[tuple[str, ...], int]) -> list[Merged]:
    return [Merged("main", frames, samples) for frames, samples in rows]


def texts(branches: tuple[Branch, ...], depth: int = 0) -> list[str]:
    reported = []
    for branch in branches:
        names = ">".join(frame.partition(" ")[0] for frame in branch.frames)
        reported.append(f"{' ' * depth}{branch.samples} {names}")
        reported += texts(branch.branches, depth + 1)
    return reported


def test_what_begins_alike_is_one_branch_and_chains_are_one_row() -> None:
    branches = branches_of(
        stacks(
            ((*TRAIN, *NEXT, "wait (threading.py:3)"), 60),
            ((*TRAIN, *NEXT, "poll (select.py:3)"), 20),
            ((*TRAIN, "step (train.py:12)", "mm (torch/functional.py:4)"), 20),
        )
    )
    assert texts(branches) == [
        "100 <module>>main",
        " 80 __next__>_get",
        "  60 wait",
        "  20 poll",
        " 20 step",
        "  20 mm",
    ]
    assert branches[0].own
    assert not branches[0].branches[0].own
    assert branches[0].branches[0].share == 0.8


def test_branches_below_a_hundredth_are_left_out_and_do_not_break_a_chain() -> None:
    branches = branches_of(
        stacks(((*TRAIN, "f (train.py:3)"), 1_000), ((*TRAIN, "g (train.py:4)"), 9))
    )
    assert texts(branches) == ["1009 <module>>main>f"]
    assert branches[0].share == 1.0


def test_what_only_calls_on_has_no_row() -> None:
    called = ("Module._call_impl (torch/nn/modules/module.py:9)", "Net.forward (model.py:3)")
    branches = branches_of(stacks(((*TRAIN, *called, *called), 10)))
    assert texts(branches) == ["10 <module>>main>Net.forward>Net.forward"]


def test_samples_that_end_in_a_frame_keep_its_row() -> None:
    branches = branches_of(stacks((TRAIN, 50), ((*TRAIN, "f (train.py:3)"), 50)))
    assert texts(branches) == ["100 <module>>main", " 50 f"]


def test_the_line_stands_at_the_users_innermost_frame() -> None:
    stack = Merged("main", (*TRAIN, *NEXT), 5, "for batch in loader:")
    (own,) = branches_of([stack])
    assert own.line == "for batch in loader:"
    assert own.branches[0].line == ""


def test_roles_threads_and_samples() -> None:
    stacks_seen = chunk().stacks
    seen = StacksSeen(t_ns=0, started_ns=0, samples=20, stacks=stacks_seen)
    reported = stacks_of(stacks_seen, threads_of([seen], ()))
    assert [(tree.role, tree.threads, tree.samples) for tree in reported.trees] == [
        ("main", 1, 20),
        ("workers", 1, 20),
    ]
    assert reported.summary.main_samples == 20
    assert sum(one.samples for one in reported.merged) == reported.samples == 40
