"""The host's part of the idle ledger, beside evaluations and workers that end."""

from collections.abc import Sequence
from typing import Any, Final

import pytest

from gpuwatch.tui.messages import Loader
from gpuwatch.tui.verdict.forecast.interval import forecast_of
from gpuwatch.tui.verdict.idle_ledger import idle_ledger
from gpuwatch.tui.verdict.rules.host import within_phases
from gpuwatch.tui.verdict.stack_samples import FrameShare, Stacks
from tests.unit.verdict.on_gpu import activity, gpu_window
from tests.unit.verdict.windows import even, loader

LINEAR: Final = "linear (torch/nn/functional.py:9)"


def shares(places: Sequence[FrameShare], of: Loader, **parts: Any) -> dict[str, float]:
    """Of a step, of which the GPU is busy for half."""
    seen = Stacks(200, tuple(places), 0, (), None)
    rows, busy = even(60, **parts), activity(50.0)
    ledger = idle_ledger(gpu_window(rows, parts, activity=busy, stacks=seen, loaders=(of,)))
    assert ledger is not None
    return {part: share for part, share in ledger.shares.items()}


def logger(share: float) -> FrameShare:
    """Between the steps."""
    return FrameShare(share, "write (log.py:9)", "write (log.py:9)", "out.write(row)", "other")


@pytest.mark.parametrize("slow", [0.2, 0.35])
def test_a_logger_beside_an_evaluation_is_all_the_hosts_though_the_gpu_idles_less(
    slow: float,
) -> None:
    """40 % of the time in an evaluation: 29 % in a logger were 9 %, and launching led."""
    asks = FrameShare(0.4, LINEAR, None, "", "evaluation", in_net=True)
    net = FrameShare(0.6 - slow, LINEAR, None, "", "forward", in_net=True)
    net_ms = 50 * (0.6 - slow)
    parts = {"forward_ms": net_ms, "backward_ms": net_ms, "other_ms": 100 - 2 * net_ms}
    found = shares((asks, logger(slow), net), loader(0), **parts)
    assert found["host"] >= min(slow, 0.29) - 0.01
    assert found["launch"] < 0.12


def test_workers_that_end_are_taken_from_the_host_once() -> None:
    """20 % in ending them and 25 % in a logger: the logger was 9 %, launching 20 %."""
    shut = "_shutdown_workers (torch/utils/data/dataloader.py:1500)"
    ends = FrameShare(0.2, shut, "<module> (train.py:9)", "", "data", ends_workers=True)
    net = FrameShare(0.55, LINEAR, None, "", "forward", in_net=True)
    parts = {"data_ms": 1, "forward_ms": 27, "backward_ms": 27, "other_ms": 45}
    found = shares((ends, logger(0.25), net), loader(2), **parts)
    assert found["host"] == pytest.approx(0.25, abs=0.01)


@pytest.mark.parametrize("samples", [32, 3200])
def test_a_gain_is_known_as_well_as_its_samples_are(samples: int) -> None:
    """Half of 32 samples in what makes batches, of which the GPU idles for less: 1.8 to 2.5x."""
    makes = FrameShare(0.5, "draw (train.py:9)", None, "rows = kept[at]", "other")
    net = FrameShare(0.5, LINEAR, None, "", "forward", in_net=True)
    parts = {"forward_ms": 70, "backward_ms": 25, "optimizer_ms": 5, "fetches": 0}
    seen = Stacks(samples, (makes, net), 0, (), None)
    found = within_phases(
        gpu_window(even(60, **parts), parts, activity=activity(70.0), stacks=seen, loaders=())
    )
    assert found is not None
    assert found.share == found.share_high, "the GPU idles for no more"
    forecast = forecast_of(found)
    assert forecast is not None
    assert forecast.high is not None
    spread = forecast.high / forecast.low
    assert spread > 1.7 if samples == 32 else spread < 1.5
