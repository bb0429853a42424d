"""A picture of the screen, made from a recording: `python -m demo.screen_picture FILE -o OUT.svg`.

Nothing is drawn by hand: the recording is played to the real screen at a size, on a held clock,
and its cells become an SVG. The picture at the top of the README is made so:

    python -m demo.screen_picture demo/recordings/loader_workers.gpuwatch -o docs/screen.svg
"""

import argparse
import asyncio
from collections.abc import Sequence
from pathlib import Path

from gpuwatch.tui.app import GpuwatchApp
from gpuwatch.tui.formats.svg import svg_of
from gpuwatch.tui.recording.reader import Recording
from gpuwatch.tui.screens.export import cells_of
from gpuwatch.tui.session.replay import ReplayProvider
from gpuwatch.tui.terminal import THEMES
from gpuwatch.tui.verdict.engine import Engine

LOOK_NS = 200_000_000
"""As often as a live run is looked at."""


class HeldClock:
    """A clock that is moved on by hand."""

    def __init__(self) -> None:
        self.ns = 0

    def now_ns(self) -> int:
        """Where it was moved to."""
        return self.ns


async def picture(
    file: Path, size: tuple[int, int], at_s: float, keys: Sequence[str], theme: str
) -> str:
    """The SVG of the screen `at_s` seconds into a recording, after some keys."""
    clock = HeldClock()
    recording = Recording(file)
    replay = ReplayProvider(recording, Engine(), clock)
    app = GpuwatchApp(replay, theme=theme)
    async with app.run_test(size=size) as pilot:
        await app.begun.wait()
        while clock.ns < at_s * 1e9:
            clock.ns += LOOK_NS
            replay.snapshot()
        await pilot.press(*keys)
        app.frame()
        await pilot.pause()
        drawn = svg_of(cells_of(app), f"gpuwatch, replaying {file.name}")
    replay.close()
    return drawn


def main() -> None:
    """Make the picture."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument("file", type=Path, help="a recording (.gpuwatch)")
    parser.add_argument("-o", "--output", type=Path, required=True, help="the SVG to write")
    parser.add_argument("--size", default="110x36", help="columns x rows (110x36)")
    parser.add_argument("--at", type=float, default=20.0, metavar="S", help="seconds in (20)")
    parser.add_argument("--keys", default="", help='pressed before, by name: "3 tab z"')
    parser.add_argument("--theme", choices=THEMES, default=THEMES[0])
    given = parser.parse_args()
    columns, _, rows = given.size.partition("x")
    drawn = asyncio.run(
        picture(given.file, (int(columns), int(rows)), given.at, given.keys.split(), given.theme)
    )
    given.output.parent.mkdir(parents=True, exist_ok=True)
    given.output.write_text(drawn, encoding="utf-8")
    print(f"{given.output}: {len(drawn) / 1000:.0f} KB")


if __name__ == "__main__":
    main()
