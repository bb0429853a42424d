"""What a frame says of itself, whatever somebody has called a file, and who called it."""

import pytest

from gpuwatch.tui.model.frames import place_of, worth_naming
from gpuwatch.tui.model.observations import StackCount
from gpuwatch.tui.model.stack_shares import summarise
from gpuwatch.tui.verdict.code_origin import NOWHERE
from gpuwatch.tui.verdict.code_places import is_users
from gpuwatch.tui.verdict.stack_samples import FrameShare


@pytest.mark.parametrize(
    ("frame", "place"),
    [
        ("forward (conv.py:12)", ("conv.py", 12)),
        ("forward (conv.py)", ("conv.py", 0)),
        ("forward (conv.py:²)", ("conv.py:²", 0)),
        ("", ("", 0)),
    ],
)
def test_where_a_frame_is(frame: str, place: tuple[str, int]) -> None:
    assert place_of(frame) == place


LOOP = "train (train.py:30)"
FETCH = (
    "__next__ (torch/utils/data/dataloader.py:701)",
    "fetch (torch/utils/data/_utils/fetch.py:52)",
)


def place(*frames: str, line: str = "for x in loader:") -> FrameShare:
    stack = StackCount(role="main", pid=1, thread="t", frames=frames, count=1, line=line)
    return summarise([stack]).main[0]


def test_what_makes_a_batch_was_not_called_by_the_loop_that_fetches_it() -> None:
    made = place(LOOP, *FETCH, "__getitem__ (torchvision/datasets/folder.py:245)")
    assert (made.caller, made.line) == (None, "")
    mine = ("D.__getitem__ (data.py:9)", "load (PIL/Image.py:3)")
    own = place(LOOP, *FETCH, *mine, line="x = open()")
    assert (own.caller, own.line) == ("D.__getitem__ (data.py:9)", "x = open()")


def test_a_wait_for_a_batch_is_the_loops() -> None:
    waits = place(LOOP, FETCH[0], "get (multiprocessing/queues.py:113)")
    assert waits.caller == LOOP


def test_a_stack_that_could_not_be_read_is_no_place_of_the_users() -> None:
    """ "or on another thread: ?" stood beside single slow steps."""
    assert worth_naming(()) == NOWHERE
    assert not is_users(FrameShare(0.1, NOWHERE, None, phase="other"))
