"""Stacks as text that flame graphs are made of."""

from gpuwatch.tui.model.stack_trees import Merged, collapsed, with_text

STACKS = [
    Merged("main", ("<module> (train.py:1)", "wait (queue.py:3)"), 3, "for x in loader:"),
    Merged("workers", ("_worker_loop (w.py:1)", "f;g (odd.py:2)"), 40),
    Merged("main", ("<module> (train.py:1)", "wait (queue.py:3)"), 4, "for y in loader:"),
]


def test_a_line_a_stack_the_most_samples_first() -> None:
    assert collapsed(STACKS) == (
        "workers;_worker_loop (w.py:1);f,g (odd.py:2) 40\n"
        "main;<module> (train.py:1);wait (queue.py:3) 7\n"
    )
    assert collapsed([]) == ""


def test_stacks_with_a_text_in_a_frame_or_their_line() -> None:
    assert with_text(STACKS, "QUEUE") == [STACKS[0], STACKS[2]]
    assert with_text(STACKS, "for y") == [STACKS[2]]
    assert with_text(STACKS, "nowhere") == []
