"""The picture of the screen: every cell where it belongs, every word in it."""

import xml.etree.ElementTree as ET
from math import isclose

import pytest

from gpuwatch.tui.formats.svg import CELL_X, CELL_Y, Box, Cells, Ink, TextRun, shape_of, svg_of

PLAIN = Ink("#d0d0d0", "#121212")
BOLD = Ink("#ffffff", "#121212", bold=True)
MARKED = Ink("#000000", "#f0e442")
SVG = "{http://www.w3.org/2000/svg}"


def drawn(*rows: tuple[TextRun, ...]) -> ET.Element:
    return ET.fromstring(svg_of(Cells(rows, "#121212"), "a <title> & more"))


def rects(root: ET.Element) -> list[tuple[float, ...]]:
    """x, y, width, height of what is drawn in the cells."""
    inside = root.find(f"{SVG}g")
    assert inside is not None
    return [
        tuple(float(rect.attrib[name]) for name in ("x", "y", "width", "height"))
        for rect in inside.iter(f"{SVG}rect")
    ]


@pytest.mark.parametrize(
    ("character", "boxes"),
    [
        ("█", (Box(0, 0, 1, 1),)),
        ("▂", (Box(0, 0.75, 1, 0.25),)),
        ("▌", (Box(0, 0, 0.5, 1),)),
        ("░", (Box(0, 0, 1, 1, 0.25),)),
        ("▚", (Box(0, 0, 0.5, 0.5), Box(0.5, 0.5, 0.5, 0.5))),
        ("a", None),
        ("●", None),
    ],
)
def test_shapes(character: str, boxes: tuple[Box, ...] | None) -> None:
    assert shape_of(character) == boxes


def test_lines_meet_in_the_middle_and_at_the_edges() -> None:
    for character, arms in (("─", "lr"), ("┴", "lru"), ("╰", "ru"), ("│", "ud")):
        boxes = shape_of(character)
        assert boxes is not None
        assert any(box.x == 0 for box in boxes) is ("l" in arms)
        assert any(isclose(box.x + box.width, 1) for box in boxes) is ("r" in arms)
        assert any(box.y == 0 for box in boxes) is ("u" in arms)
        assert any(isclose(box.y + box.height, 1) for box in boxes) is ("d" in arms)
        assert all(box.x <= 0.5 <= box.x + box.width for box in boxes)
        assert all(box.y <= 0.5 <= box.y + box.height for box in boxes)


def test_every_dot_of_braille_is_in_its_place() -> None:
    assert shape_of("⠀") == ()
    eight = shape_of("⣿")
    assert eight is not None
    assert len(set(eight)) == 8
    assert all(0 <= box.x <= box.x + box.width <= 1 for box in eight)
    (top,) = shape_of("⠁") or ()
    (bottom,) = shape_of("⢀") or ()
    assert (top.x < 0.5, top.y < 0.25) == (True, True)
    assert (bottom.x > 0.5, bottom.y > 0.75) == (True, True)


def test_blocks_are_exact_and_neighbours_are_one() -> None:
    root = drawn((TextRun("ab██▄▌▌", PLAIN),), (TextRun("█", PLAIN),))
    assert rects(root) == [
        (2 * CELL_X, 0, 2 * CELL_X, CELL_Y),
        (4 * CELL_X, CELL_Y / 2, CELL_X, CELL_Y / 2),
        (5 * CELL_X, 0, CELL_X / 2, CELL_Y),
        (6 * CELL_X, 0, CELL_X / 2, CELL_Y),
        (0, CELL_Y, CELL_X, CELL_Y),
    ]


def test_words_keep_their_cells_whatever_font_there_is() -> None:
    root = drawn((TextRun("ab c   d█", PLAIN), TextRun("e", BOLD)))
    texts = list(root.iter(f"{SVG}text"))
    assert [text.text for text in texts] == ["ab c", "d", "e"]
    assert [float(text.attrib["x"]) for text in texts] == [0, 7 * CELL_X, 9 * CELL_X]
    assert [float(text.attrib["textLength"]) for text in texts] == [4 * CELL_X, CELL_X, CELL_X]


def test_a_background_of_its_own_is_painted_below() -> None:
    root = drawn((TextRun("ab", PLAIN), TextRun("cd", MARKED)))
    assert rects(root) == [(2 * CELL_X, 0, 2 * CELL_X, CELL_Y)]


def test_it_describes_what_it_shows_and_escapes_it() -> None:
    root = drawn((TextRun("a < b & c", PLAIN),), (TextRun("▂▄█ next", PLAIN),))
    title, description = root.find(f"{SVG}title"), root.find(f"{SVG}desc")
    assert title is not None
    assert title.text == "a <title> & more"
    assert description is not None
    assert description.text == "a < b & c\n▂▄█ next"


def test_an_empty_screen_is_a_picture_too() -> None:
    assert rects(drawn()) == []
