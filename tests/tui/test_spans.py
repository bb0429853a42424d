"""Rows of text: whatever is put in, the widths are right."""

import pytest

from gpuwatch.tui.widgets.text import (
    Charset,
    Span,
    clip,
    ends,
    fit,
    joined,
    length,
    row,
    rule,
    text_of,
    wrap,
)
from gpuwatch.tui.wording.numbers import (
    digits,
    duration,
    growth,
    milliseconds,
    ms,
    percent,
    scale_size,
    size,
    span,
    steps_in_time,
)

GIB = 1024**3


def test_numbers_as_people_read_them() -> None:
    assert [digits(v) for v in (18_204, 706.4, 99.96, 56.21, 9.996, 0.814)] == [
        "18,204",
        "706",
        "100",
        "56.2",
        "10.0",
        "0.81",
    ]
    assert [duration(s) for s in (-1, 4.2, 372, 3_600, 3_780, 112_000, 260_000)] == [
        "0 s",
        "4 s",
        "6 min",
        "1 h",
        "1 h 3 min",
        "31 h",
        "3 days",
    ]
    assert [span(s) for s in (9.6, 9, 30, 120, 234)] == ["9.6 s", "9 s", "30 s", "2 min", "3.9 min"]
    assert [percent(s) for s in (0.0, 0.001, 0.574, 1.0)] == ["0%", "<1%", "57%", "100%"]
    assert [size(b) for b in (0, 1.6e6, 5e8, 4.1 * GIB, 503 * GIB)] == [
        "0 MiB",
        "1.5 MiB",
        "477 MiB",
        "4.1 GiB",
        "503 GiB",
    ]
    assert [milliseconds(ms) for ms in (0.84, 24.5, 1_240, 12_400)] == [
        "0.84 ms",
        "24.5 ms",
        "1.2 s",
        "12 s",
    ]
    assert [ms(ns) for ns in (106_382_978, 6_382_978_723)] == ["106 ms", "6.4 s"]
    assert growth(38 * 1024**2) == "+38 MiB per 100 steps"
    assert growth(-1.5 * 1024**2) == "-1.5 MiB per 100 steps"


def test_what_is_there_is_never_shown_as_nothing() -> None:
    assert [milliseconds(ms) for ms in (0.0, 1e-5, 0.004, 0.094, 0.096)] == [
        "0.00 ms",
        "<1 us",
        "4 us",
        "94 us",
        "0.10 ms",
    ]
    assert [ms(ns) for ns in (0, 300, 500, 501, 94_000)] == [
        "0.0 ms",
        "<1 us",
        "<1 us",
        "1 us",
        "94 us",
    ]
    assert [percent(s) for s in (0.005, 0.0051)] == ["<1%", "1%"]


def test_slow_steps_are_counted_by_the_minute_or_the_hour() -> None:
    assert [steps_in_time(s) for s in (24.5, 0.12, 0.02, 0.0005, 0.0)] == [
        "24.5 steps/s",
        "0.12 steps/s",
        "1.20 steps/min",
        "1.80 steps/h",
        "0.00 steps/s",
    ]


def test_a_scale_distinguishes_its_ends() -> None:
    low, high = 4.0 * GIB, 4.012 * GIB
    assert scale_size(low, high - low) != scale_size(high, high - low)


def test_what_is_cut_shows_it_after_a_whole_word() -> None:
    text = "num_workers 4 → 10 (16 cores, 11 idle), then decode on the GPU"
    assert clip(text, 70) == text
    assert clip(text, 45) == "num_workers 4 → 10 (16 cores, 11 idle), then…"
    assert clip(text, 40) == "num_workers 4 → 10 (16 cores, 11 idle)…"
    assert clip(text, 1) == "…"
    assert clip(text, 0) == ""


def test_lines_break_between_words() -> None:
    text = "data wait is 57% of every step"
    assert wrap(text, 17, 3) == ["data wait is 57%", "of every step"]
    assert wrap(text, 17, 1) == ["data wait is 57%…"]
    assert wrap("", 17, 2) == []


@pytest.mark.parametrize("width", range(1, 120, 7))
def test_every_row_is_exactly_as_wide_as_asked(width: int) -> None:
    hostile = "trän\x1b[31m.py 日本語のファイル名 \t tab"
    for spans in (
        row(hostile),
        ends(row("left" * 9), row("right"), width),
        rule("A long title of a panel", ("a note", "another note", "a third"), width, True),
        (),
    ):
        fitted = fit(spans, width)
        assert length(fitted) == width
    assert all(length(fit(row("日本語"), w)) == w for w in range(1, 9))


def test_a_rule_gives_up_its_last_notes_first() -> None:
    notes = ("p50 12 ms", "9 steps/s")
    assert text_of(rule("Step", notes, 40)) == "── Step ─────── p50 12 ms · 9 steps/s ──"
    assert text_of(rule("Step", notes, 28)) == "── Step ─────── p50 12 ms ──"
    assert text_of(rule("Step", notes, 20)) == "── Step ────────────"
    assert joined(("p50 12 ms", "9 steps/s"), 12) == "p50 12 ms"
    assert joined(("p50 12 ms", "9 steps/s"), 3) == ""


def test_a_note_that_is_too_long_alone_does_not_take_the_others_with_it() -> None:
    notes = ("as before, against step 1,339 (12s ago)", "p50 12 ms", "9 steps/s")
    assert joined(notes, 24) == "p50 12 ms · 9 steps/s"
    assert text_of(rule("Step", notes, 28)) == "── Step ─────── p50 12 ms ──"


def test_escape_sequences_never_reach_the_terminal() -> None:
    for charset in Charset:
        text = charset.translate("a\x1b]52;c;eA==\x07b\n")
        assert text.isprintable()
        assert len(text) == 15


def test_ascii_is_ascii() -> None:
    text = Charset.ASCII.translate("▲ 4 → 10 ≤ 2.3x · ░▒█▓ ┴ 日")
    assert text == "! 4 > 10 < 2.3x - :+#= + ?"
    assert Span("x").role == "text"


def test_in_ascii_a_cut_and_a_spread_do_not_look_like_an_estimate() -> None:
    assert Charset.ASCII.translate("a cut… 3 ± 1 ~2.3x") == "a cut. 3 + 1 ~2.3x"
