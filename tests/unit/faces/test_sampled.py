"""A run without a probe on the faces without a screen, and the screen's own panel of it."""

from dataclasses import replace

import jsonschema

from gpuwatch.tui.formats.jsonlines import record
from gpuwatch.tui.formats.plain import heartbeat
from gpuwatch.tui.formats.report import report_lines
from gpuwatch.tui.formats.report_machine import memory_lines
from gpuwatch.tui.model.snapshot import MemoryView, Snapshot
from gpuwatch.tui.verdict.stack_samples import Sampled
from gpuwatch.tui.verdict.statistics import Share
from gpuwatch.tui.verdict.window import MemoryPoint
from gpuwatch.tui.widgets.steps.phases import sampled_rows
from gpuwatch.tui.widgets.text import text_of
from tests.unit.faces.pictures import GIB, picture
from tests.unit.faces.strict_schema import strict
from tests.unit.session.making import S

SHARES = {
    "data": Share(0.57, 0.5, 0.64),
    "forward": Share(0.2, 0.15, 0.26),
    "backward": Share(0.2, 0.15, 0.26),
    "optimizer": Share(0.0, 0.0, 0.01),
    "synchronisation": Share(0.03, 0.01, 0.06),
}
SAMPLED = Sampled(
    samples=190, shares=SHARES, serial=0.0, loading=(), host=(), period_ns=410e6, still=None
)


def unprobed(reported: Sampled = SAMPLED) -> Snapshot:
    shown = picture()
    status = replace(shown.status, mode="no probe", freshness_s=None, cost_share=None)
    return replace(
        shown,
        hello=None,
        steps=None,
        recent=(),
        open_step=None,
        loaders=(),
        status=status,
        sampled=reported,
    )


def test_the_report_marks_every_figure_as_an_estimate() -> None:
    text = "\n".join(report_lines(unprobed(), 200))
    assert "no probe" in text.splitlines()[0]
    assert "of 190 samples: data wait ~57% · forward ~20% · backward ~20%" in text
    assert "GPU wait ~3%" in text
    assert "optimizer ~" not in text, "never seen"
    assert "data wait 50% to 64%" in text
    assert "~410 ms per step" in text


def test_a_step_that_samples_cannot_follow_has_no_length() -> None:
    text = "\n".join(report_lines(unprobed(replace(SAMPLED, period_ns=None)), 200))
    assert "step time unknown: samples show no period" in text
    assert (
        record(unprobed(replace(SAMPLED, period_ns=None)), final=False)["sampled"]["step_ms"]
        is None
    )


def test_json_follows_the_contract() -> None:
    line = record(unprobed(), final=True)
    jsonschema.Draft202012Validator(strict()).validate(line)
    assert line["steps"] is None
    assert line["sampled"]["step_ms"] == 410
    data = line["sampled"]["phases"]["data"]
    assert data == {"share": 0.57, "share_low": 0.5, "share_high": 0.64}


def test_with_a_probe_nothing_is_sampled() -> None:
    assert record(picture(), final=False)["sampled"] is None
    assert record(unprobed(replace(SAMPLED, samples=0)), final=False)["sampled"] is None


def test_the_heartbeat_shows_where_the_samples_are() -> None:
    assert heartbeat(unprobed()).startswith("data wait ~57%, forward ~20%")
    assert "no step yet" in heartbeat(unprobed(replace(SAMPLED, samples=0)))


def test_memory_goes_by_seconds() -> None:
    points = (MemoryPoint(3, 3 * S, GIB), MemoryPoint(63, 63 * S, GIB))
    memory = MemoryView(points, GIB, None, None, None, None, False)
    (first, *_) = memory_lines(replace(unprobed(), memory=memory), 200)
    assert first == "memory   process 1.0 GiB · seen over 60 s   [proc]"


def test_the_screens_panel() -> None:
    rows = [text_of(one) for one in sampled_rows(SAMPLED, 100, 12, False)]
    assert "190 samples" in rows[0]
    assert "~410 ms per step" in rows[0]
    assert any("data wait" in row and "~57%" in row and "50% to 64%" in row for row in rows)
    assert all(len(row) <= 100 for row in rows)
    narrow = [text_of(one) for one in sampled_rows(SAMPLED, 40, 4, False)]
    assert len(narrow) == 3
    assert narrow[2].startswith(" ░ data wait ~57%")
    assert all(len(row) <= 40 for row in narrow)
