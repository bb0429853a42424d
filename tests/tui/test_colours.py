"""The themes: every role has a colour in each, and eyes of all kinds can distinguish them."""

import re
from itertools import combinations, pairwise
from pathlib import Path

import pytest

from gpuwatch.tui.terminal import THEMES, after
from gpuwatch.tui.widgets.panel import ROLES
from tests.tui.colour_vision import MACHADO, apart, contrast, mixed

STYLES = Path(__file__).parents[2] / "tui" / "screens" / "styles" / "themes"
OURS = [theme for theme in THEMES if theme != "terminal"]
EYES = tuple(MACHADO)
VERDICTS = ("critical", "warning", "info")
"""That of a healthy run stands alone, and is green beside a word."""
PHASES = (("data", 0.25), ("forward", 0.5), ("backward", 1.0), ("optimizer", 0.75))
"""In the order of a step, with what the glyph of each covers of a cell."""


def style_of(theme: str) -> str:
    return (STYLES / f"{theme}.tcss").read_text(encoding="utf-8")


def roles_of(theme: str) -> dict[str, tuple[str, str | None]]:
    """Colour and background by role."""
    text = style_of(theme)
    start = text.index("\nScreen {" if theme == "dark" else f"\n.-{theme} Screen {{")
    block = text[start : text.index("\n}", start)]
    return {
        found[1]: (found[2], found[3])
        for found in re.finditer(
            r"\.role--([\w-]+) \{ color: ([#\w]+);(?: background: ([#\w]+);)?", block
        )
    }


def ground_of(theme: str) -> str:
    """What stands behind everything."""
    prefix = "App" if theme == "dark" else rf"App\.-{theme}"
    found = re.search(rf"^{prefix}, [^{{]*\{{ background: (#\w+); \}}", style_of(theme), re.M)
    assert found is not None
    return found[1]


def phase_colours(theme: str) -> list[str]:
    """What the eye makes of each phase's cells."""
    roles = roles_of(theme)
    colours = []
    for name, part in PHASES:
        front, back = roles[name]
        colours.append(mixed(front, back or ground_of(theme), part))
    return colours


def nearest(colours: list[tuple[str, str]], eye: str) -> float:
    return min(apart(one, other, eye) for one, other in colours)


def test_the_arithmetic_is_that_of_the_published_table() -> None:
    # Okabe-Ito's vermillion, yellow and sky blue, measured when the colours were chosen.
    colours = list(combinations(("#d55e00", "#f0e442", "#56b4e9"), 2))
    found = {eye: nearest(colours, eye) for eye in (*EYES, "grey")}
    assert found == pytest.approx(
        {"normal": 68, "deutan": 33, "protan": 46, "tritan": 64, "grey": 16}, abs=4.5
    )


@pytest.mark.parametrize("theme", THEMES)
def test_every_theme_colours_every_role(theme: str) -> None:
    assert set(ROLES) <= set(roles_of(theme))


@pytest.mark.parametrize("theme", OURS)
def test_verdicts_are_distinguished_by_all_eyes(theme: str) -> None:
    roles = roles_of(theme)
    pairs = list(combinations([roles[role][0] for role in VERDICTS], 2))
    for eye in EYES:
        assert nearest(pairs, eye) >= 20, eye


@pytest.mark.parametrize("theme", OURS)
def test_neighbouring_phases_are_distinguished_by_all_eyes(theme: str) -> None:
    colours = phase_colours(theme)
    pairs = list(pairwise(colours))
    for eye in (*EYES, "grey"):
        assert nearest(pairs, eye) >= 14, eye


@pytest.mark.parametrize("theme", OURS)
def test_text_can_be_read(theme: str) -> None:
    roles = roles_of(theme)
    for role in ("text", "dim", "strong", "title", "focus", "key", "good", *VERDICTS):
        assert contrast(roles[role][0], ground_of(theme)) >= 4.5, role
    if theme == "contrast":
        assert contrast(roles["dim"][0], ground_of(theme)) >= 7


def test_the_terminals_own_palette_has_no_colour_of_ours() -> None:
    for front, back in roles_of("terminal").values():
        assert front.startswith("ansi_")
        assert back is None or back in ("ansi_default", "transparent")


def test_the_key_goes_through_all_of_them() -> None:
    seen = [THEMES[0]]
    for _ in THEMES:
        seen.append(after(seen[-1]))
    assert seen == [*THEMES, THEMES[0]]
