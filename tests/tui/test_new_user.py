"""What used to stop a new user: cut advice, an unnamed wait, two colours for one thing."""

import json
from collections.abc import Sequence
from dataclasses import replace

import pytest

from gpuwatch.tui.cli.demo import starting
from gpuwatch.tui.cli.demo_runs import Demo
from gpuwatch.tui.formats.jsonlines import line
from gpuwatch.tui.formats.plain import heartbeat
from gpuwatch.tui.formats.report import report_lines
from gpuwatch.tui.model.snapshot import PhaseStats, Snapshot, unseen
from gpuwatch.tui.verdict.history import Held
from gpuwatch.tui.verdict.rules.warming_up import NO_STEP
from gpuwatch.tui.verdict.stack_samples import FrameShare
from gpuwatch.tui.widgets.gpu.sawtooth import why_empty
from gpuwatch.tui.widgets.header import device_of
from gpuwatch.tui.widgets.panel import View
from gpuwatch.tui.widgets.steps.overview import StepPanel, recent_rows
from gpuwatch.tui.widgets.steps.phase_table import table_rows
from gpuwatch.tui.widgets.text import Charset, Row, text_of
from gpuwatch.tui.widgets.verdict import least_rows, parting_lines, verdict_rows
from gpuwatch.tui.wording.steps import GPU_WAIT, drawn_phases
from tests.tui.fake_run import FakeRun
from tests.tui.golden_text import picture_of

ADVICE = (
    "`size.item()` at train.py:34 and `norm.item()` at train.py:41: keep it on the GPU (.detach()) "
    "and read it every 11 steps, or collect the values there: the end of this sentence"
)


def advised(snapshot: Snapshot) -> Snapshot:
    """With advice of three lines at 80 columns."""
    finding = replace(snapshot.verdict.finding, advice=(ADVICE,))
    return replace(snapshot, verdict=replace(snapshot.verdict, finding=finding))


def joined(text: str) -> str:
    return " ".join(text.split())


def view(snapshot: Snapshot) -> View:
    return View(snapshot, 10, Charset.UNICODE, None)


@pytest.mark.parametrize("size", [(50, 20), (80, 24), (100, 30), (200, 60)])
@pytest.mark.parametrize("keys", [(), ("3",), ("4",)])
def test_next_is_never_cut(size: tuple[int, int], keys: Sequence[str]) -> None:
    text = picture_of(size, advised, keys)
    words = ADVICE if not keys else ADVICE.replace(" (.detach())", "")
    seen = joined(text).replace(" ≤ 2.4x faster", "").replace(" ≤ 2.4x", "")
    if size[0] < 160:
        assert words.split(": ")[-1] in seen
    assert "the end of this sentence" in seen
    assert "quit" in text.splitlines()[-1]


def test_the_chart_gives_the_rows_and_keeps_three() -> None:
    before, after = (picture_of((80, 24), change).splitlines() for change in (None, advised))
    assert sum("┤" in row for row in before) == 6  # five of the chart, one of memory
    assert sum("┤" in row for row in after) >= 3
    assert sum(row.startswith(("── Step", "── Stacks")) for row in after) == 2


def test_one_line_of_advice_takes_no_row_from_anything() -> None:
    snapshot = FakeRun().snapshot()
    assert least_rows(view(snapshot), 100, brief=True) == 2
    assert least_rows(view(snapshot), 30, brief=False) == 0


def waiting(snapshot: Snapshot) -> Snapshot:
    """The loop asks `.item()`: half of the samples are there, and half of the step is `other`."""
    assert snapshot.stacks is not None
    assert snapshot.steps is not None
    place = FrameShare(0.5, "train (train.py:38)", None, "total += loss.item()")
    parts = {"data": 0.02, "forward": 0.18, "backward": 0.2, "other": 0.6}
    phases = tuple(PhaseStats(name, 100 * share, share) for name, share in parts.items())
    stacks = replace(snapshot.stacks, main=(place,))
    return replace(snapshot, stacks=stacks, steps=replace(snapshot.steps, phases=phases))


def test_the_wait_for_the_gpu_is_a_segment_of_its_own() -> None:
    snapshot = waiting(FakeRun().snapshot())
    shares = {phase.name: phase.share for phase in drawn_phases(snapshot)}
    assert shares[GPU_WAIT] == pytest.approx(0.5)
    assert shares["other"] == pytest.approx(0.1)
    assert sum(shares.values()) == pytest.approx(1.0)

    rows = StepPanel("step").rows(view(snapshot), 120, 3)
    bar, legend = rows[1], text_of(rows[2])
    (segment,) = [span for span in bar if span.role == "gpu-wait"]
    assert segment.text == "═" * 59
    assert "═ GPU wait ~50.0 ~50%" in legend or "═ GPU wait ~50 ~50%" in legend
    table = [text_of(row) for row in table_rows(view(snapshot), 100, 10)]
    assert any(line.startswith(" ═ GPU wait") and "~50%" in line for line in table)


def test_the_wait_for_the_gpu_has_one_name_on_every_face() -> None:
    """Report, plain lines and JSON had "other"."""
    snapshot = waiting(FakeRun().snapshot())
    assert "GPU wait ~50%" in heartbeat(snapshot)
    assert "GPU wait ~50.0 ms per step, ~50%" in joined("\n".join(report_lines(snapshot, 100)))
    record = json.loads(line(snapshot, final=False))
    assert record["steps"]["phases"][GPU_WAIT]["share"] == pytest.approx(0.5)
    assert record["steps"]["phases"]["other"]["share"] == pytest.approx(0.1)


def test_a_wait_within_the_forward_is_the_forwards() -> None:
    """It was taken out of the Python between the phases."""
    snapshot = waiting(FakeRun().snapshot())
    assert snapshot.stacks is not None
    inner = replace(snapshot.stacks.main[0], phase="forward", in_net=True)
    snapshot = replace(snapshot, stacks=replace(snapshot.stacks, main=(inner,)))
    shares = {phase.name: phase.share for phase in drawn_phases(snapshot)}
    assert GPU_WAIT not in shares
    assert shares["other"] == pytest.approx(0.6)


def test_without_a_gpu_nobody_waits_for_one() -> None:
    snapshot = replace(waiting(FakeRun().snapshot()), gpus=())
    assert GPU_WAIT not in {phase.name for phase in drawn_phases(snapshot)}


def roles(rows: Sequence[Row], char: str) -> set[str]:
    return {span.role for row in rows for span in row if char in span.text}


def test_data_wait_has_one_colour() -> None:
    snapshot = FakeRun().snapshot()
    assert roles(StepPanel("step").rows(view(snapshot), 80, 3)[1:2], "░") == {"data"}
    assert roles(recent_rows(snapshot.recent, 80, 5), "░") == {"data"}


def test_no_gpu_is_not_reported_while_the_first_sample_is_waited_for() -> None:
    nothing = replace(
        unseen(7, "train.py", 0, 0.0), status=replace(FakeRun().snapshot().status, state="live")
    )
    assert device_of(nothing) == ""
    assert why_empty(nothing) == "waiting for the first sample"
    without = replace(FakeRun().snapshot(), gpus=())
    assert device_of(without) == "no GPU"


def test_a_contributor_is_never_bound() -> None:
    snapshot = FakeRun().snapshot()
    other = replace(
        snapshot.verdict.finding, kind="optimizer", sub=None, share=0.06, headline="Adam is slow"
    )
    verdict = replace(snapshot.verdict, contributors=(other,))
    rows = verdict_rows(view(replace(snapshot, verdict=verdict)), 100, 8)
    (also,) = [text_of(row) for row in rows if "also" in text_of(row)]
    assert "also   optimizer 6%: Adam is slow" in also
    assert "bound" not in also


def test_what_stays_in_the_terminal() -> None:
    snapshot = FakeRun().snapshot()
    verdict, action = parting_lines(snapshot, 200)
    assert verdict.startswith("▲ INPUT-BOUND  critical · 92% sure · for ")
    assert "NEXT num_workers 4 → 10" in action
    held = Held("input", "workers", 1.0, 300 * 10**9, 120 * 10**9)
    _, action = parting_lines(replace(snapshot, summary=(held,)), 200)
    assert action.endswith("lost in 5 min: input/workers 2 min")
    narrow = parting_lines(replace(snapshot, summary=(held,)), 80)
    assert max(map(len, narrow)) <= 80, "a terminal would break words"
    assert " ".join(" ".join(narrow).split()).endswith("lost in 5 min: input/workers 2 min")
    assert parting_lines(unseen(7, "train.py", 0, 0.0), 80) == []


def test_the_demo_shows_what_it_starts() -> None:
    demo = Demo("input", "a.py", "input", "workers", "two slow workers", "")
    nothing = unseen(7, "a.py", 0, 0.0).verdict
    assert nothing.finding.headline == NO_STEP
    assert starting(demo, nothing).finding.headline == "starting a training run: two slow workers …"
    found = FakeRun().snapshot().verdict
    assert starting(demo, found) is found
