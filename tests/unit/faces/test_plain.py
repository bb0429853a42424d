"""The plain view: a block when the verdict is another, a heartbeat in between."""

from dataclasses import replace
from typing import Any

import msgspec

from gpuwatch.tui.formats.plain import PlainView, heartbeat
from gpuwatch.tui.model.snapshot import Event
from gpuwatch.tui.verdict.window import OpenStep
from tests.tui.states import NOTES
from tests.unit.faces.pictures import BY_GPM, BY_NVML, STATUS, STEPS, picture, young
from tests.unit.session.making import S, verdict


def test_a_heartbeat_shows_how_far_how_fast_where_and_what() -> None:
    assert heartbeat(picture()) == (
        "step 18,204 · 0.81 steps/s · data wait 57%, forward 14%, backward 23%, optimizer 4%, "
        "other 2% · INPUT-BOUND"
    )


def test_a_heartbeat_before_the_first_step() -> None:
    assert heartbeat(young()) == "connecting · WARMING UP"
    waiting = replace(young(), open_step=OpenStep("loader start-up", 4.2, None, False, None))
    assert heartbeat(waiting) == "connecting · in loader start-up for 4 s · WARMING UP"


def test_a_heartbeat_shows_what_the_gpus_do() -> None:
    assert " · SM 34%, tensor 0% · INPUT-BOUND" in heartbeat(picture(activity=(BY_GPM,)))
    assert " · busy 42% · INPUT-BOUND" in heartbeat(picture(activity=(BY_NVML,)))
    both = heartbeat(picture(activity=(BY_GPM, msgspec.structs.replace(BY_NVML, index=1))))
    assert " · GPU 0 SM 34%, tensor 0% · GPU 1 busy 42% · " in both


def test_a_heartbeat_names_silence_and_what_lasts_unusually_long() -> None:
    silent = replace(STATUS, state="silent", freshness_s=12.0)
    stuck = OpenStep("optimizer", 12.4, 13.0, False, None)
    line = heartbeat(picture(status=silent, open_step=stuck))
    assert " · no message for 12 s · in optimizer for 12 s · " in line


def test_a_heartbeat_after_the_end() -> None:
    ended = replace(STATUS, state="ended", ended="exited 2 s ago")
    assert heartbeat(picture(status=ended)) == "training exited 2 s ago · INPUT-BOUND"


def test_the_stream_writes_blocks_on_change_and_heartbeats_every_two_seconds() -> None:
    view = PlainView(100)
    shown: list[tuple[float, str]] = []
    for tick in range(0, 60, 2):
        warm = tick >= 30
        one = picture(
            t_ns=tick * S // 10 + S,
            verdict=verdict("input" if warm else "warming-up"),
            status=replace(STATUS, missing=()),
            steps=STEPS if warm else None,
        )
        shown += [(tick / 10, line.split(" · ")[-1]) for line in view.lines(one) if line]
    assert shown == [
        (0.0, "WARMING UP"),
        (0.0, "  it is warming-up"),
        (2.0, "WARMING UP"),
        (3.0, "90% sure"),
        (3.0, "  it is input"),
        (5.0, "INPUT-BOUND"),
    ]


def _blocks(view: PlainView, *findings: dict[str, Any]) -> list[bool]:
    """Which of them made the view write a block."""
    wrote = []
    for at, fields in enumerate(findings):
        one = picture(t_ns=at * S, verdict=verdict("input", **fields))
        wrote.append("  it is input" in view.lines(one))
    return wrote


def test_a_verdict_is_reported_again_when_its_share_or_its_forecast_moved_much() -> None:
    shares = [{"share": share} for share in (0.24, 0.31, 0.35, 0.43, 0.20)]
    assert _blocks(PlainView(100), *shares) == [True, False, True, False, True]
    gains = [{"speedup": gain} for gain in (1.3, 1.6, 2.9, 2.4, 1.9, None)]
    assert _blocks(PlainView(100), *gains) == [True, False, True, False, True, True]


def test_a_stall_is_reported_again_once_its_place_is_known() -> None:
    view, wrote = PlainView(100), []
    for at, frame in enumerate((None, None, "main (train2.py:20)", "poll (x.py:1)", None)):
        stuck = OpenStep("other", 61.0 + at, 61.0, False, frame)
        shown = verdict(
            "stalled", headline=f"it is stalled in {frame}" if frame else "it is stalled"
        )
        lines = view.lines(picture(t_ns=at * S, verdict=shown, open_step=stuck))
        wrote.append(any(line.startswith("  it is stalled") for line in lines))
    assert wrote == [True, False, True, False, False]


def test_a_place_that_the_verdict_does_not_know_yet_is_no_news() -> None:
    view = PlainView(100)
    for at, frame in enumerate((None, "poll (x.py:1)")):
        stuck = OpenStep("other", 61.0 + at, 61.0, False, frame)
        one = picture(t_ns=at * S, verdict=verdict("stalled"), open_step=stuck)
        wrote = "  it is stalled" in view.lines(one)
        assert wrote is (at == 0)


def test_a_missing_signal_is_reported_once() -> None:
    view = PlainView(100)
    first = view.lines(picture())
    assert first[0] == "without nvml: no NVIDIA driver. CPU, data wait and stacks still work"
    assert not any(line.startswith("without") for line in view.lines(picture()))


def test_the_closing_is_the_report_below_a_rule() -> None:
    lines = PlainView(100).closing(picture())
    assert lines[:2] == ["", "-" * 40]
    assert lines[4].startswith("INPUT-BOUND")


def test_notes_that_come_after_their_verdict_are_reported_once() -> None:
    view = PlainView(200)
    view.lines(picture())
    reported = replace(picture().verdict, notes=NOTES[:1])
    assert view.lines(picture(verdict=reported)) == [
        "note: anomaly detection was left on: torch.autograd.set_detect_anomaly(False) "
        "(it slows the backward, 23% of every step)   [hook]"
    ]
    cheaper = replace(NOTES[0], cost="it slows the backward, 22% of every step")
    assert view.lines(picture(verdict=replace(reported, notes=(cheaper,)))) == []
    assert len(view.lines(picture(verdict=replace(reported, notes=NOTES)))) == 1


def test_notes_that_are_known_stand_in_the_verdicts_block() -> None:
    view = PlainView(200)
    block = view.lines(picture(verdict=replace(picture().verdict, notes=NOTES)))
    assert sum("GradScaler" in line for line in block) == 1
    assert not any(line.startswith("note:") for line in block)


def test_events_are_reported_as_they_come_and_old_ones_are_not() -> None:
    view = PlainView(100)
    view.lines(picture())
    reported = (*picture().events, Event(400 * S, 18_100, "evaluation 2.0 s", "evaluation"))
    now = picture(events=(*reported, Event(401 * S, None, "verdict: host", "verdict")))
    assert view.lines(now) == ["step 18,100: evaluation 2.0 s"]
    assert view.lines(now) == []


def test_every_minute_there_is_all_to_show() -> None:
    view = PlainView(100)
    reports = 0
    for second in range(0, 130):
        lines = view.lines(picture(t_ns=second * S))
        reports += "-" * 40 in lines
        assert ("-" * 40 in lines) is (second in (60, 120))
    assert reports == 2
