"""Colour behind the shades of a phase, and behind nothing else: a blank beside them is empty."""

import asyncio
from collections.abc import Callable

import pytest

from gpuwatch.tui.app import GpuwatchApp
from gpuwatch.tui.formats.svg import Cells
from gpuwatch.tui.model.snapshot import Snapshot
from gpuwatch.tui.screens.export import cells_of
from tests.tui import states
from tests.tui.fake_run import FakeRun


def cells_after(
    key: str, size: tuple[int, int], change: Callable[[Snapshot], Snapshot] | None = None
) -> Cells:
    run = FakeRun()
    if change is not None:
        run.change = change

    async def session() -> Cells:
        app = GpuwatchApp(run)
        async with app.run_test(size=size) as pilot:
            await app.begun.wait()
            await pilot.press(key)
            await pilot.pause()
            return cells_of(app)

    return asyncio.run(session())


@pytest.mark.parametrize("size", [(50, 20), (80, 24), (100, 36), (200, 60)])
@pytest.mark.parametrize("key", ["1", "3"])
def test_no_blank_has_a_colour_behind_it(key: str, size: tuple[int, int]) -> None:
    cells = cells_after(key, size, states.short_steps)
    coloured = [
        (y, piece.text)
        for y, row in enumerate(cells.rows)
        for piece in row
        if piece.ink.background != cells.background
    ]
    assert any("░" in text for _, text in coloured)
    assert [(y, text) for y, text in coloured if " " in text] == []


def test_the_legend_of_the_two_clocks_has_the_colours_of_its_lanes() -> None:
    cells = cells_after("3", (100, 30))
    (legend,) = (row for row in cells.rows if "wait  ▒ fwd  █ bwd" in "".join(p.text for p in row))
    lane = next(row for row in cells.rows if row[0].text.startswith(" host"))
    for fill in "░▒█▓":
        of_lane = {piece.ink for piece in lane if fill in piece.text}
        assert {piece.ink for piece in legend if fill in piece.text} == of_lane
