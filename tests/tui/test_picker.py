"""The picker: what can be watched, chosen with the keyboard."""

import asyncio
from collections.abc import Awaitable, Callable, Sequence

import msgspec
import pytest
from textual.pilot import Pilot

from gpuwatch.tui.discovery.candidates import Candidate, Launcher
from gpuwatch.tui.discovery.state_page import Words
from gpuwatch.tui.discovery.targets import Found
from gpuwatch.tui.screens.picker import PickerApp
from tests.tui.fake_run import HELLO
from tests.tui.golden_text import assert_golden, screen_text

SIZES = [(50, 20), (80, 24), (100, 30), (200, 60)]
TORCHRUN = Launcher(500, "torchrun")


def probed(
    pid: int, script: str, steps: int, rank: int | None = None, launcher: Launcher | None = None
) -> Candidate:
    hello = msgspec.structs.replace(HELLO, pid=pid, argv=[script], rank=rank, world_size=2)
    words = Words(0, 0, steps, 0, 0, 6 * steps, 1)
    return Candidate(pid, "ana", script, Found(pid, hello, words, "ana"), launcher)


EVERY = [
    probed(48213, "train.py", 18_204),
    probed(501, "finetune.py", 812, 0, TORCHRUN),
    probed(502, "finetune.py", 811, 1, TORCHRUN),
    Candidate(777, "bob", "notebook.py", None),
]

Do = Callable[[PickerApp, Pilot[int]], Awaitable[None]]


def picking(
    do: Do, candidates: Sequence[Candidate] = EVERY, size: tuple[int, int] = (80, 24)
) -> PickerApp:
    app = PickerApp(lambda: candidates)

    async def session() -> None:
        async with app.run_test(size=size, notifications=True) as pilot:
            await app.workers.wait_for_complete()
            await pilot.pause()
            await do(app, pilot)

    asyncio.run(session())
    return app


def text_after(
    *keys: str, candidates: Sequence[Candidate] = EVERY, size: tuple[int, int] = (80, 24)
) -> str:
    shown: list[str] = []

    async def do(app: PickerApp, pilot: Pilot[int]) -> None:
        await pilot.press(*keys)
        await pilot.pause()
        shown.append(screen_text(app))

    picking(do, candidates, size)
    return shown[0]


def pid_after(*keys: str) -> int | None:
    async def do(app: PickerApp, pilot: Pilot[int]) -> None:
        await pilot.press(*keys)
        await pilot.pause()

    return picking(do).picked


@pytest.mark.parametrize("size", SIZES)
def test_the_list(size: tuple[int, int]) -> None:
    text = text_after("down", size=size)
    assert all(len(line) <= size[0] for line in text.splitlines())
    assert_golden(f"picker_{size[0]}x{size[1]}", text)


@pytest.mark.parametrize("size", SIZES)
def test_with_nothing_to_pick_it_shows_what_to_do(size: tuple[int, int]) -> None:
    text = text_after(candidates=[], size=size)
    assert "probe.install()" in text
    assert_golden(f"picker_empty_{size[0]}x{size[1]}", text)


def test_ranks_stand_below_their_launcher() -> None:
    rows = text_after().splitlines()
    at = next(at for at, row in enumerate(rows) if "torchrun (pid 500)" in row)
    assert "501" in rows[at + 1]
    assert "1/2" in rows[at + 2]
    assert sum("torchrun" in row for row in rows) == 1


def test_enter_takes_the_chosen_one() -> None:
    assert pid_after("enter") == 48213
    assert pid_after("down", "down", "enter") == 502
    assert pid_after("up", "enter") == 48213


def test_letters_find_and_escape_forgets_them() -> None:
    assert pid_after(*"fine", "enter") == 501
    assert pid_after(*"torchrun", "down", "enter") == 502
    assert pid_after(*"fine", "escape", "enter") == 48213
    assert pid_after(*"finx", "backspace", "enter") == 501
    text = text_after(*"fine")
    assert "train.py" not in text
    assert " find fine" in text
    assert "none of them has 'zzz'" in text_after(*"zzz")


@pytest.mark.parametrize("keys", [["q"], ["escape"], ["ctrl+c"], [*"fine", "escape", "q"]])
def test_ways_out_without_a_pick(keys: list[str]) -> None:
    assert pid_after(*keys) is None


def test_a_question_mark_is_answered_and_not_looked_for() -> None:
    for size in SIZES[1:]:
        text = text_after("question_mark", size=size)
        assert "letters narrow the list, esc or q leaves" in text.splitlines()[-1]
        assert " find ?" not in text


def test_escape_closes_the_help_and_then_leaves() -> None:
    assert pid_after("question_mark", "escape", "enter") == 48213
    assert pid_after("question_mark", "escape", "escape", "enter") is None


def test_q_is_a_letter_where_something_was_typed() -> None:
    assert " find fq" in text_after("f", "q")


def test_one_without_a_probe_can_be_taken_too() -> None:
    assert pid_after("down", "down", "down", "enter") == 777


def test_the_choice_stays_while_others_come_and_go() -> None:
    candidates = list(EVERY)

    async def do(app: PickerApp, pilot: Pilot[int]) -> None:
        await pilot.press("down")
        candidates.insert(0, probed(9, "earlier.py", 1))
        candidates.remove(EVERY[0])
        candidates.insert(0, probed(10, "another.py", 1))
        app.look()
        await app.workers.wait_for_complete()
        await pilot.press("enter")
        await pilot.pause()

    assert picking(do, candidates).picked == 501


def test_a_long_list_keeps_the_choice_in_sight() -> None:
    many = [probed(1000 + at, f"run{at:02d}.py", at) for at in range(60)]
    text = text_after(*["down"] * 45, candidates=many, size=(60, 12))
    assert "▸ 1045" in text
    assert len(text.splitlines()) <= 12


@pytest.mark.parametrize("size", [(1, 1), (5, 2), (20, 5)])
def test_no_size_breaks_it(size: tuple[int, int]) -> None:
    text_after("down", size=size)
    text_after(candidates=[], size=size)
