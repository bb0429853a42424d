"""The report says every figure that the overview says: neither face knows more than the other."""

import re
from collections.abc import Callable

import pytest

from gpuwatch.tui.formats.report import report_lines
from gpuwatch.tui.model.snapshot import Snapshot
from tests.tui import states
from tests.tui.fake_run import FakeRun
from tests.tui.golden_text import picture_of

ABOUT_THE_PICTURE = (
    r"[\d.]+ *([GM]iB)?(?=┤)",
    r"┤[^◆▲●○]*",
    r"-\d+ s\b",
    r"a column is [^·]*",
    r"last \d+ steps   .*longest [\d,.]+ m?s",
    r"one step, folded \(\d+ steps\)",
    r"● [\d.]+ s",
    r"window \d+ (s|min)",
    r"── (Events|Verdict) ─.*?──(?=\s|$)",
    r"^ \? help.*",
    r"● 0\.\d+ ?s\b",
)
"""Scales, grains and counts of what is drawn, not of what was measured; and how fresh it is, which
the report says only of what is stale."""
NUMBER = re.compile(r"\d[\d,]*(?:\.\d+)?")

State = Callable[[Snapshot], Snapshot]


def figures(text: str) -> set[str]:
    """Every number in a text."""
    return set(NUMBER.findall(text))


def on_screen(state: State) -> set[str]:
    """What the largest overview says in numbers."""
    text = picture_of((200, 60), state)
    for pattern in ABOUT_THE_PICTURE:
        text = re.sub(pattern, " ", text, flags=re.MULTILINE)
    return figures(text)


def is_in(figure: str, output: set[str]) -> bool:
    """With as many digits, or with more."""
    return figure in output or any(one.startswith(figure) for one in output if "." in one)


@pytest.mark.parametrize(
    "state",
    [
        lambda snapshot: snapshot,
        states.on_gpm,
        states.short_steps,
        states.four_gpus,
        states.after_others,
        states.noted,
        states.warming_up,
        states.stalled,
        states.ended,
        states.incomplete,
        states.healthy_without_gpu,
    ],
)
def test_every_figure_of_the_overview_is_in_the_report(state: State) -> None:
    output = figures("\n".join(report_lines(state(FakeRun().snapshot()), 500)))
    shown = on_screen(state)
    assert len(shown) > 10
    assert sorted(one for one in shown if not is_in(one, output)) == []


def test_the_words_of_the_verdict_are_in_the_report() -> None:
    snapshot = states.noted(states.on_gpm(FakeRun().snapshot()))
    text = "\n".join(report_lines(snapshot, 500))
    found = (snapshot.verdict.finding, *snapshot.verdict.contributors)
    for finding in found:
        assert finding.headline in text
        assert all(f"{one.text}   [{one.source}]" in text for one in finding.evidence)
        assert all(advice in text for advice in finding.advice)
    assert all(note.text in text for note in snapshot.verdict.notes)
