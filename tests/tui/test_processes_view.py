"""The view of processes and events at every size and in every state, as golden text."""

import pytest

from tests.tui import process_states
from tests.tui.golden_text import assert_golden, picture_of

SIZES = [(50, 20), (80, 24), (100, 30), (200, 60)]
TO_PROCESSES = ("6",)
"""The verdict has the focus first."""


@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize("state", ["launched", "many_workers"])
def test_processes_view(state: str, size: tuple[int, int]) -> None:
    text = picture_of(size, getattr(process_states, state), ["6"])
    assert all(len(line) <= size[0] for line in text.splitlines())
    assert_golden(f"processes_{state}_{size[0]}x{size[1]}", text)


@pytest.mark.parametrize(
    ("name", "keys"),
    [
        ("scrolled", ["down"] * 40),
        ("sorted", ["o"]),
        ("filtering", ["slash", *"48231"]),
        ("filtered", ["slash", *"worker", "enter"]),
    ],
)
def test_processes_chosen(name: str, keys: list[str]) -> None:
    text = picture_of((100, 30), process_states.many_workers, [*TO_PROCESSES, *keys])
    assert_golden(f"processes_{name}_100x30", text)


def test_events_scrolled_and_filtered() -> None:
    keys = [*TO_PROCESSES, "tab", "tab", "slash", *"check", "enter"]
    text = picture_of((100, 30), process_states.launched, keys)
    assert_golden("events_filtered_100x30", text)
