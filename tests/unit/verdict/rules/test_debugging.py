"""What was left on to find an error, as samples show it."""

from typing import Any

import pytest

from gpuwatch.tui.settings import Settings
from gpuwatch.tui.verdict.engine import Engine
from gpuwatch.tui.verdict.findings import Verdict
from gpuwatch.tui.verdict.rules.debugging import debugging
from gpuwatch.tui.verdict.stack_samples import FrameShare, Stacks
from tests.unit.verdict.windows import even, window

STEP: dict[str, Any] = {"forward_ms": 3.2, "backward_ms": 2.1, "optimizer_ms": 0.7}
LAYER = FrameShare(0.5, "Linear.forward (torch/nn/modules/linear.py:134)", "forward (train.py:40)")
TEXT = FrameShare(0.2, "StackSummary.format (traceback.py:462)", "forward (train.py:40)")
LINE = FrameShare(0.1, "checkcache (linecache.py:72)", "forward (train.py:40)")
EXIT = FrameShare(0.4, "profile.__exit__ (torch/autograd/profiler.py:434)", "train (train.py:22)")
WRITES = FrameShare(0.2, "export (torch/profiler/profiler.py:230)", "train (train.py:22)")
RECORDS = FrameShare(
    0.6, "record_function.__enter__ (torch/autograd/profiler.py:790)", "train (train.py:22)"
)

ANNOTATES = FrameShare(
    0.6, "push_user_annotation (torch/profiler/_cupti_monitor.py:1192)", "train (train.py:22)"
)


def judged(*places: FrameShare, anomaly: bool = False) -> Verdict:
    seen = Stacks(100, places, 0, (), None, main_unplaced=0.0)
    return Engine().judge(window(even(200, **STEP), stacks=seen, settings=settings(anomaly)))


def settings(anomaly: bool) -> Settings:
    return Settings(threads=2, anomaly=anomaly, optimizer="Adam", parameter_device="cpu")


def test_anomaly_detection_is_the_verdict_where_samples_lie_in_the_texts_of_stacks() -> None:
    finding = judged(LAYER, TEXT, LINE, anomaly=True).finding
    assert finding.kind == "host"
    assert "set_detect_anomaly(False)" in finding.advice[0]
    assert "30 of 100" in finding.evidence[0].text
    assert "linecache.py, traceback.py" in finding.evidence[0].text
    assert finding.share == pytest.approx(0.3)


def test_what_it_costs_in_c_is_not_known_so_the_gain_is_the_least() -> None:
    forecast = judged(LAYER, TEXT, LINE, anomaly=True).finding.forecast
    assert forecast is not None
    assert forecast.kind == "at-least"
    assert 1.0 < forecast.speedup < 1 / 0.7


def test_a_program_that_writes_tracebacks_itself_is_not_accused_of_it() -> None:
    assert judged(LAYER, TEXT, LINE).finding.kind != "host"


def test_a_profiler_around_the_training_is_the_verdict() -> None:
    finding = judged(LAYER, EXIT, WRITES).finding
    assert finding.kind == "host"
    assert finding.share == pytest.approx(0.6)
    assert "called from train (train.py:22)" in finding.evidence[0].text
    assert "no profiler around the training" in finding.advice[0]


@pytest.mark.parametrize("place", [RECORDS, ANNOTATES])
def test_the_annotations_of_loaders_and_optimizers_are_no_profiler(place: FrameShare) -> None:
    rows = even(200, **STEP)
    assert debugging(window(rows, settings=settings(False), stacks=None)) is None
    seen = Stacks(100, (place,), 0, (), None)
    assert debugging(window(rows, settings=settings(False), stacks=seen)) is None
