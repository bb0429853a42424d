"""What a frame says of itself, whatever somebody has called a file."""

import pytest

from gpuwatch.tui.model.frames import place_of, summarise
from gpuwatch.tui.model.observations import StackCount


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


def test_stacks_that_were_seen_no_time_have_no_shares() -> None:
    stack = StackCount(role="main", pid=1, thread="t", frames=("f (a.py:1)",), count=0)
    assert summarise([stack]).main == ()
