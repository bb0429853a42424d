"""The report as a page: whole, escaped, and in need of nothing."""

import re
from dataclasses import replace
from html.parser import HTMLParser

from gpuwatch.tui.formats.html import Line, Part, bar, chart, height_of, thinned
from gpuwatch.tui.formats.html_report import report_page
from gpuwatch.tui.model.snapshot import Event, GpuPhases, unseen
from gpuwatch.tui.verdict.history import Held
from gpuwatch.tui.wording.words import lost_words
from tests.unit.compare.runs import of_times
from tests.unit.faces.pictures import INPUT, picture


class Tags(HTMLParser):
    """Collects the tags of a page, and checks that they close."""

    VOID = ("meta", "rect", "line", "polyline", "polygon", "br")

    def __init__(self) -> None:
        super().__init__()
        self.open: list[str] = []
        self.seen: list[tuple[str, dict[str, str | None]]] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.seen.append((tag, dict(attrs)))
        if tag not in self.VOID:
            self.open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        if tag not in self.VOID:
            assert self.open.pop() == tag


def tags_of(page: str) -> Tags:
    tags = Tags()
    tags.feed(page)
    assert tags.open == []
    return tags


def test_a_page_has_the_verdict_and_loads_nothing() -> None:
    page = report_page(picture(), of_times([50.0] * 90 + [400.0]).steps)
    tags = tags_of(page)
    assert "INPUT-BOUND" in page
    assert "num_workers 4 → 10" in page
    assert "Step time over the run" in page
    names = {name for name, _ in tags.seen}
    assert not names & {"script", "link", "img", "iframe", "object", "form", "a"}
    held = [value or "" for _, attributes in tags.seen for value in attributes.values()]
    assert not [value for value in held if "//" in value]
    assert not re.search(r"url\(|@import", page)
    assert "width=device-width" in page


def test_a_legend_does_not_break_within_an_entry_and_shows_what_is_little() -> None:
    """On a phone the square stood on one line and its name on the next; 0.2% was "0%"."""
    drawn = bar([Part("data wait", 0.998, "red"), Part("other", 0.002, "grey")], "phases")
    assert "other &lt;1%</span>" in drawn
    assert drawn.count("white-space:nowrap") == 2


def test_a_run_without_a_gpu_has_no_empty_column_for_its_clock() -> None:
    steps, seen = of_times([50.0] * 90).steps, picture()
    assert seen.steps is not None
    on_gpu = GpuPhases(90, seen.steps.phases, 1.0, 1.0, (None, None, None, None), None, 1, None)
    assert "s clock</th>" not in report_page(replace(seen, gpu_phases=None), steps)
    assert "s clock</th>" in report_page(replace(seen, gpu_phases=on_gpu), steps)


def test_names_of_others_are_escaped() -> None:
    bad = '<img src=x onerror="alert(1)">&'
    finding = replace(INPUT, headline=bad, advice=(bad,))
    event = Event(0, 1, bad)
    verdict = replace(picture().verdict, finding=finding)
    page = report_page(picture(verdict=verdict, script=bad, events=(event,)))
    tags = tags_of(page)
    assert "img" not in {name for name, _ in tags.seen}
    assert page.count("&lt;img src=x onerror=") >= 4


def test_what_a_run_notes_is_drawn() -> None:
    curves = {"loss<": [(at * 10**9, 2.0 + 1 / (1 + at)) for at in range(50)], "once": [(1, 2.0)]}
    page = report_page(picture(), (), curves)
    tags_of(page)
    assert "loss&lt; over the run" in page
    assert "bottom: 2.02" in page
    assert "once over the run" not in page


def test_a_loss_that_diverged_is_drawn() -> None:
    losses = [2.0 - at / 100 for at in range(90)] + [-1.7e308, *[1.7e308] * 9]
    curves = {"loss": [(at * 10**9, loss) for at, loss in enumerate(losses)]}
    page = report_page(picture(), (), curves)
    drawn = page[page.index("loss over the run") :]
    assert not re.search(r"\b(inf|nan)\b", drawn)
    assert "bottom: -1e+300" in drawn
    ends = re.findall(r"\d,([\d.]+)[ \"]", drawn)
    assert len(set(ends)) > 1, "not all at one height"


def test_a_run_of_which_nothing_is_known_has_a_page() -> None:
    assert "train.py" in report_page(unseen(7, "train.py", 0, 0.0))
    tags_of(report_page(unseen(7, "", 0, 0.0)))


def test_one_long_step_does_not_flatten_a_chart() -> None:
    points = thinned([(float(at), 5000.0 if at == 7 else 50.0) for at in range(200)])
    assert height_of([Line(points, "red")]) == 60.0
    assert height_of([]) == 1.0
    assert chart([], "", ("", ""), "") == ""


def test_a_bar_names_its_parts() -> None:
    drawn = bar([Part("a<b", 0.25, "red"), Part("rest", 0.75, "grey")], "all")
    assert "a&lt;b 25%" in drawn


def test_the_time_lost_by_cause_most_first() -> None:
    summary = (
        Held("healthy", None, 0.5, 360 * 10**9, None),
        Held("checkpoint", None, 0.1, 60 * 10**9, 40 * 10**9),
        Held("input", "workers", 0.4, 300 * 10**9, 240 * 10**9),
        Held("sync", None, 0.0, 10**9, 10**8),
    )
    assert lost_words(summary) == "lost in 12 min: input/workers 4 min, checkpoint 40 s"
    assert lost_words(summary[:1]) == ""
