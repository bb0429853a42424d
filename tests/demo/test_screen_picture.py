"""The command that makes the README's picture: the real screen on a real recording."""

import asyncio
import xml.etree.ElementTree as ET
from pathlib import Path

from screen_picture import picture

ROOT = Path(__file__).parents[2]
SVG = "{http://www.w3.org/2000/svg}"


def description_of(svg: str) -> list[str]:
    """The rows of the screen, as the picture says them in words."""
    description = ET.fromstring(svg).find(f"{SVG}desc")
    assert description is not None
    assert description.text is not None
    return description.text.splitlines()


def test_a_recording_becomes_a_picture_that_is_the_same_every_time() -> None:
    file = ROOT / "demo" / "recordings" / "loader_storage.gpuwatch"
    made = [asyncio.run(picture(file, (100, 30), 6.0, (), "dark")) for _ in range(2)]
    assert made[0] == made[1]
    rows = description_of(made[0])
    assert len(rows) == 30
    assert "loader_storage.py" in rows[0]
    assert "REPLAY" in rows[0]
    assert any("INPUT-BOUND" in row for row in rows)
    assert rows[-1].rstrip().endswith("q quit")


def test_keys_are_pressed_before() -> None:
    file = ROOT / "demo" / "recordings" / "loader_storage.gpuwatch"
    rows = description_of(asyncio.run(picture(file, (100, 30), 2.0, ["question_mark"], "light")))
    assert any("── Help" in row for row in rows)


def test_the_picture_of_the_readme_is_one_of_them() -> None:
    text = (ROOT / "README.md").read_text(encoding="utf-8")
    assert "](docs/screen.svg)" in text
    rows = description_of((ROOT / "docs" / "screen.svg").read_text(encoding="utf-8"))
    assert "H200" in rows[0]
    assert "INPUT-BOUND" in rows[2]
