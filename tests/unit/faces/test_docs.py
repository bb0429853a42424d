"""The documents: their links exist, the README is short, and the tables are those of the code."""

import os
import re
from pathlib import Path
from typing import get_args

import pytest

from gpuwatch.tui.cli.main import COMMANDS
from gpuwatch.tui.verdict.findings import Kind
from gpuwatch.tui.widgets.keys import ACTIONS

ROOT = Path(__file__).parents[3]
PAGES = sorted(ROOT.glob("docs/*.md"))
ALL = (ROOT / "README.md", ROOT / "CONTRIBUTING.md", *PAGES)
LINK = re.compile(r"\]\(([^)#]+)(?:#[^)]*)?\)")
MOST_README_WORDS = 700


def keys_page() -> str:
    """docs/keys.md, from the table of keys."""
    lines = ["# Keys", "", "`?` on the screen shows those of the focused panel.", ""]
    lines += ["| keys | where | what |", "| --- | --- | --- |"]
    for action in ACTIONS:
        keys = " ".join(f"`{key}`" for key in action.shown.split())
        lines.append(f"| {keys} | {action.panel or 'everywhere'} | {action.description} |")
    return "\n".join(lines) + "\n"


@pytest.mark.parametrize(
    "page", [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *PAGES], ids=lambda page: page.name
)
def test_every_link_leads_somewhere(page: Path) -> None:
    for target in LINK.findall(page.read_text("utf-8")):
        assert (page.parent / target).exists(), f"{page.name}: {target}"


def test_the_index_names_every_page() -> None:
    index = (ROOT / "docs" / "README.md").read_text("utf-8")
    assert [page.name for page in PAGES if f"]({page.name})" not in index] == ["README.md"]


def test_the_readme_is_short_and_names_every_verdict() -> None:
    text = (ROOT / "README.md").read_text("utf-8")
    assert len(text.split()) <= MOST_README_WORDS
    named = set(re.findall(r"`([a-z0-9-]+)`", text.partition("## Verdicts")[2].partition("##")[0]))
    assert named == set(get_args(Kind))


def test_the_map_of_the_house_names_places_that_exist() -> None:
    text = (ROOT / "CONTRIBUTING.md").read_text("utf-8")
    places = set(re.findall(r"`((?:tui|probe|demo|tests|docs)/[\w./]*)`", text))
    names = [place for place in places if not re.search(r"KIND|NAME|SUBJECT", place)]
    assert [place for place in sorted(names) if not (ROOT / place).exists()] == []


def test_every_command_is_documented() -> None:
    text = (ROOT / "docs" / "running.md").read_text("utf-8")
    assert [name for name in COMMANDS if f"gpuwatch {name}" not in text] == []


def test_the_page_of_keys_is_the_table_of_keys() -> None:
    page = ROOT / "docs" / "keys.md"
    if os.environ.get("GPUWATCH_UPDATE_GOLDEN"):
        page.write_text(keys_page(), "utf-8")
    assert page.read_text("utf-8") == keys_page(), "GPUWATCH_UPDATE_GOLDEN=1 writes it anew"
