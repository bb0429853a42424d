"""Watching without a screen: when it ends, and what is reported last."""

import json
from collections.abc import Callable
from dataclasses import replace

import pytest

from gpuwatch.tui.cli import watching
from gpuwatch.tui.cli.demo import long_enough
from gpuwatch.tui.cli.demo_runs import Demo
from gpuwatch.tui.model.snapshot import Snapshot
from tests.unit.faces.pictures import STATUS, picture, young
from tests.unit.session.making import MS, finding, verdict


class FakePicture:
    """Pictures from a function of how many were asked for, 200 ms apart."""

    def __init__(self, at: Callable[[int], Snapshot]) -> None:
        self._at = at
        self.asked = 0
        self.calls: list[str] = []

    def start(self) -> None:
        self.calls.append("start")

    def snapshot(self) -> Snapshot:
        self.asked += 1
        shown = self._at(self.asked)
        return replace(shown, t_ns=200 * MS * self.asked, attached_s=0.2 * self.asked)

    def close(self) -> None:
        self.calls.append("close")


@pytest.fixture(autouse=True)
def _no_waiting(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(watching, "READ_EVERY_S", 0.0)


def json_lines(text: str) -> list[dict[str, object]]:
    return [json.loads(line) for line in text.splitlines()]


def test_json_has_a_line_a_second_and_a_final_one(capsys: pytest.CaptureFixture[str]) -> None:
    shown = FakePicture(lambda _: picture())
    watching.watch(shown, watching.JsonFace(), watching.for_duration(10.0))
    lines = json_lines(capsys.readouterr().out)
    assert [line["final"] for line in lines] == [False] * (len(lines) - 1) + [True]
    assert len(lines) >= 11
    assert shown.calls == ["start", "close"]


def test_the_end_of_the_process_ends_the_watch_after_its_last_words(
    capsys: pytest.CaptureFixture[str],
) -> None:
    ended = replace(STATUS, state="ended", ended="exited 0 s ago")
    shown = FakePicture(lambda n: picture(status=ended) if n >= 5 else picture())
    watching.watch(shown, watching.PlainFace(), watching.for_duration(None))
    assert shown.asked == 7
    report = capsys.readouterr().out.split("-" * 40)[1]
    assert "training exited 0 s ago" in " ".join(report.split())


def test_once_waits_for_a_verdict_and_prints_one_report(capsys: pytest.CaptureFixture[str]) -> None:
    shown = FakePicture(lambda n: picture() if n >= 40 else young())
    watching.watch(shown, watching.OnceFace(), watching.until_verdict(None))
    assert shown.asked == 40
    assert capsys.readouterr().out.count("INPUT-BOUND") == 1


def test_once_in_json_is_one_line_with_the_verdict(capsys: pytest.CaptureFixture[str]) -> None:
    """Of a stream the first line says "connecting": a script wants the verdict."""
    shown = FakePicture(lambda n: picture() if n >= 40 else young())
    watching.watch(shown, watching.OnceJsonFace(), watching.until_verdict(None))
    (line,) = capsys.readouterr().out.splitlines()
    assert json.loads(line)["final"] is True
    assert json.loads(line)["verdict"]["kind"] not in ("warming-up", "incomplete")


def test_once_lets_the_evidence_of_an_instant_verdict_come_in() -> None:
    shown = FakePicture(lambda _: picture())
    watching.watch(shown, watching.OnceFace(), watching.until_verdict(None))
    assert shown.asked == 25


@pytest.mark.parametrize(("duration_s", "looks"), [(2.0, 10), (None, 150)])
def test_once_gives_up_after_a_while_and_shows_what_it_has(
    duration_s: float | None, looks: int, capsys: pytest.CaptureFixture[str]
) -> None:
    shown = FakePicture(lambda _: picture(verdict=verdict("incomplete")))
    watching.watch(shown, watching.OnceFace(), watching.until_verdict(duration_s))
    assert shown.asked == looks
    assert "INCOMPLETE DATA" in capsys.readouterr().out


def test_an_interrupt_still_gets_the_last_line(capsys: pytest.CaptureFixture[str]) -> None:
    def at(n: int) -> Snapshot:
        if n == 4:
            raise KeyboardInterrupt
        return picture()

    shown = FakePicture(at)
    with pytest.raises(KeyboardInterrupt):
        watching.watch(shown, watching.JsonFace(), watching.for_duration(None))
    assert json_lines(capsys.readouterr().out)[-1]["final"] is True
    assert shown.calls == ["start", "close"]


def test_a_demo_runs_on_until_it_has_shown_its_bottleneck() -> None:
    over = long_enough(Demo("workers", "a.py", "input", "workers", "", "", None))
    assert not over(young())
    first = picture(attached_s=5.0)
    assert not over(first)
    assert not over(replace(first, attached_s=24.9))
    assert over(replace(first, attached_s=25.1))
    healthy = picture(attached_s=25.1, verdict=verdict("healthy"))
    assert not over(healthy)
    assert over(replace(healthy, attached_s=65.1))
    beside = verdict("healthy", finding("input"))
    assert over(replace(healthy, verdict=beside))


def test_a_demo_whose_gpu_is_not_there_shows_something_else() -> None:
    over = long_enough(Demo("compute", "a.py", "compute", None, "", "", "healthy"))
    assert not over(picture(attached_s=1.0))
    assert over(picture(attached_s=22.0, verdict=verdict("healthy")))
