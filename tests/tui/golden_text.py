"""Golden text of the screen: what a person would see, as a file that a diff can be read of.

GPUWATCH_UPDATE_GOLDEN=1 writes the files anew; look at the diff before you keep them.
"""

import asyncio
import os
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from textual.app import App

from gpuwatch.tui.app import GpuwatchApp
from gpuwatch.tui.model.snapshot import Snapshot
from gpuwatch.tui.screens.textual_private import rendered_rows
from tests.tui.fake_run import FakeRun

GOLDEN = Path(__file__).parent / "golden"
UPDATE = "GPUWATCH_UPDATE_GOLDEN"


def screen_text(app: App[int]) -> str:
    """The screen's rows, cell for cell: Textual's public exports are SVG only."""
    rows = ["".join(segment.text for segment in row).rstrip() for row in rendered_rows(app)]
    return "\n".join(rows).rstrip() + "\n"


def picture_of(
    size: tuple[int, int],
    change: Callable[[Snapshot], Snapshot] | None = None,
    keys: Sequence[str] = (),
    later_ns: int = 0,
    **options: Any,
) -> str:
    """The screen's text at a size, after some keys and some time."""
    run = FakeRun()
    if change is not None:
        run.change = change

    async def session() -> str:
        app = GpuwatchApp(run, **options)
        async with app.run_test(size=size) as pilot:
            await app.begun.wait()
            await pilot.pause()
            await pilot.press(*keys)
            run.now_ns += later_ns
            app.frame()
            await pilot.pause()
            return screen_text(app)

    return asyncio.run(session())


def assert_golden(name: str, text: str) -> None:
    """The text is the one on file."""
    path = GOLDEN / f"{name}.txt"
    if os.environ.get(UPDATE):
        path.write_text(text, encoding="utf-8")
    assert path.exists(), f"no {path.name}: run with {UPDATE}=1 and look at it"
    assert text == path.read_text(encoding="utf-8"), f"{path.name} differs"
