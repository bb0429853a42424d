"""Loaders and functions that make batches, where the host's clock is the truth."""

from dataclasses import replace
from typing import Any

import pytest
from msgspec import structs

from gpuwatch.tui.verdict.code_places import fetches
from gpuwatch.tui.verdict.cpu_wait import seen_before_the_net, seen_with_sleep
from gpuwatch.tui.verdict.engine import Engine
from gpuwatch.tui.verdict.findings import Finding
from gpuwatch.tui.verdict.forecast.interval import STAYS_ON_CPU
from gpuwatch.tui.verdict.loader import feeding
from gpuwatch.tui.verdict.rules.input import input_bound
from gpuwatch.tui.verdict.rules.page_faults import A_COPY_S
from gpuwatch.tui.verdict.stack_samples import FrameShare, Stacks
from gpuwatch.tui.verdict.statistics import Share
from gpuwatch.tui.verdict.window import MemoryPoint, StepWindow, WorkerUse
from tests.unit.verdict.windows import even, loader, run, stacks, waiting, window, worker_use


def found(seen: StepWindow) -> Finding:
    finding = input_bound(seen)
    assert finding is not None
    return finding


def test_on_a_cpu_a_batch_that_is_handed_over_lowers_the_forecasts_lower_end() -> None:
    """A worker that computes answers late: of 13 such runs 12 gained more than 0.8 of it all."""
    hands = (0.5, "rebuild_storage_fd (torch/multiprocessing/reductions.py:521)", "main (t.py:20)")
    rests = (0.5, "forward (linear.py:134)", "main (t.py:20)")
    lows = []
    for main in ([rests], [hands, rests]):
        finding = found(waiting(2, 86, workers=worker_use(2, 92), stacks=stacks(main=main)))
        assert finding.speedup_is == "estimate"
        assert finding.forecast is not None
        assert finding.speedup == pytest.approx(100 / 14)
        assert finding.forecast.speedup == pytest.approx(100 / 14 / STAYS_ON_CPU)
        lows.append(finding.forecast.low)
    assert lows[0] == pytest.approx(0.7 * 100 / 14 / STAYS_ON_CPU)
    assert lows[1] == pytest.approx(1 / (1 - 0.86 + 0.5))


def test_an_iterator_for_every_batch_is_named_where_samples_show_that_it_is_begun() -> None:
    """`next(iter(loader))` over 500,000 rows: 9.3 times as fast with one iterator (measured)."""
    draws = (0.7, "RandomSampler.__iter__ (torch/utils/data/sampler.py:182)", "batch (gan.py:28)")
    rows = even(200, startup_ms=12, forward_ms=4, backward_ms=1, optimizer_ms=1)
    places = tuple(FrameShare(*place, phase="data") for place in [draws])
    seen = Stacks(100, places, 0, (), None)
    finding = found(window(rows, stacks=seen, loaders=(loader(0, batches=7_812),)))
    assert finding.sub == "epoch-start"
    assert "begins an epoch for every batch" in finding.advice[0]
    assert "batch (gan.py:28)" in finding.advice[0]
    assert "batches is the first of a new iterator, which has 7,812" in finding.evidence[1].text
    assert finding.forecast is not None
    assert finding.forecast.kind == "at-least"
    assert 1.5 < finding.forecast.speedup < 9.3


def test_an_iterator_for_every_batch_is_a_cause_where_samples_hardly_show_it_begin() -> None:
    """With two workers most samples wait for the first batch, or for the workers' end: "nothing
    wrong" was said of 97 % of the time."""
    ends = FrameShare(
        0.37, "_shutdown_workers (torch/utils/data/dataloader.py:1600)", "main (t.py:9)",
        phase="data", ends_workers=True,
    )  # fmt: skip
    waits = FrameShare(0.6, "wait (multiprocessing/connection.py:947)", "main (t.py:9)", "", "data")
    begins = FrameShare(
        0.03, "_launch (multiprocessing/popen_fork.py:70)", "main (t.py:9)", "", "data"
    )
    seen = window(
        even(60, startup_ms=220, forward_ms=125, backward_ms=3),
        stacks=Stacks(100, (waits, ends, begins), 0, (), None),
        loaders=(loader(2, iterations=60),),
    )
    verdict = Engine().judge(seen)
    assert (verdict.finding.kind, verdict.finding.sub) == ("input", "epoch-start")
    assert verdict.finding.advice[0].startswith("make the iterator once")
    forecast = verdict.finding.forecast
    assert forecast is not None
    assert forecast.kind == "at-least"
    assert 1.3 < forecast.speedup < 1 / 0.6, "ending the workers goes too"
    unseen = Engine().judge(replace(seen, stacks=Stacks(100, (waits, begins), 0, (), None)))
    assert unseen.finding.kind == "input", "the least that is known of a gain is not all of it"


def epochs(other_steps: int, **fields: Any) -> StepWindow:
    """Each epoch ends one worker (10 ms) and starts one (40 ms); the step after the fork takes
    60 ms longer than the 100 ms of others."""
    every = other_steps + 1

    def parts(number: int) -> dict[str, Any]:
        if number % every:
            return {"data_ms": 2, "forward_ms": 50, "backward_ms": 50}
        return {
            **{"data_ms": 2, "forward_ms": 80, "backward_ms": 80},
            **{"startup_ms": 40, "other_ms": 10},
        }

    given = {"loaders": (loader(1, iterations=12, batches=every),), **fields}
    return window(run(12 * every, parts), **given)


def test_the_first_step_of_an_epoch_counts_for_what_it_takes_longer() -> None:
    """A fork leaves the training's memory to be copied page by page: persistent workers gave 2.8x
    where the wait for the first batch alone would give 1.3x (generated run 1215, two cores)."""
    finding = found(epochs(3))
    assert finding.sub == "epoch-start"
    assert finding.advice[0].startswith("persistent_workers=True")
    whole_ms, starts_ms = 4 * 102 + 110, 110
    assert finding.share == pytest.approx((starts_ms + 4 * 2) / whole_ms, abs=0.01)
    assert finding.forecast is not None
    gives = whole_ms / (whole_ms - starts_ms) / STAYS_ON_CPU
    assert finding.forecast.speedup == pytest.approx(gives, rel=0.02)
    assert any("first step takes 70 ms longer" in each.text for each in finding.evidence)


def test_where_each_step_is_an_epoch_the_kernel_shows_what_a_fork_costs() -> None:
    """No other step is as usual. Workers that persist gave 2.5x where the wait alone would give 1.5
    (generated run 2931, two cores)."""
    kernel = {"in_kernel": 0.3, "page_faults_s": 80_000.0, "workers": worker_use(1, 3)}
    alone = found(epochs(0))
    seen = found(epochs(0, memory=(MemoryPoint(12, 0, 2**30),), **kernel))
    assert alone.sub == seen.sub == "epoch-start"
    assert alone.forecast is not None
    assert seen.forecast is not None
    gives = 1 / (1 - 40 / 212 - 80_000 * A_COPY_S) / STAYS_ON_CPU
    assert seen.forecast.speedup == pytest.approx(gives, rel=0.02)
    assert seen.forecast.speedup > alone.forecast.speedup
    assert any("copies pages after each fork" in each.text for each in seen.evidence)


def test_an_evaluation_at_the_end_of_an_epoch_is_not_the_start_of_the_next() -> None:
    """A diffusion net that draws pictures after each epoch: 1.7x by workers that persist was said,
    and 1.1x measured on two cores."""
    whole_ms, evaluated_ms = 4 * 102 + 110, 50
    draws = FrameShare(
        evaluated_ms / whole_ms, "conv2d (torch/f.py:1)", "sample (d.py:1)", phase="evaluation"
    )
    seen = epochs(3, stacks=Stacks(200, (draws,), 0, (), None))
    assert found(seen).share == pytest.approx((110 - evaluated_ms + 4 * 2) / whole_ms, abs=0.01)
    every = replace(draws, share=0.4)
    least = found(epochs(3, stacks=Stacks(200, (every,), 0, (), None)))
    assert least.share == pytest.approx((40 + 4 * 2) / whole_ms, abs=0.01), "the wait stays"


def test_epochs_without_another_step_show_no_more_than_the_wait() -> None:
    finding = found(epochs(0))
    assert finding.sub == "epoch-start"
    assert finding.share == pytest.approx(42 / 212, abs=0.01)


def test_workers_that_persist_start_no_epoch() -> None:
    seen = epochs(3, loaders=(loader(1, iterations=12, batches=4, persistent_workers=True),))
    assert found(seen).share == pytest.approx((40 + 4 * 2) / (4 * 102 + 110), abs=0.01)


def drawing(thread_cpu: float, line: str = "time.sleep(seconds)") -> StepWindow:
    """A loop that draws its batches itself: 45 of 57 samples are in the function."""
    rows = even(60, forward_ms=240, backward_ms=45, optimizer_ms=7, fetches=0)
    made = FrameShare(45 / 57, "get_batch (train.py:8)", None, line, phase="data")
    net = FrameShare(12 / 57, "linear (torch/nn/functional.py:9)", "f (net.py:9)", phase="forward")
    known = Stacks(57, (made, net), 0, (), None, main_unplaced=0.0)
    return window(rows, loaders=(), stacks=known, thread_cpu=thread_cpu, run_delay=0.0)


def test_how_long_a_function_sleeps_is_measured_and_where_is_sampled() -> None:
    """A generated run (1404): 79 % of the samples, 69 % asleep by the kernel, 2.99x measured."""
    finding = found(drawing(thread_cpu=0.311))
    assert finding.share == pytest.approx(0.689, abs=0.01)
    assert finding.share_low is not None
    assert finding.share_low > 0.63, "its length is known, and 45 of 45 sleeps were there"
    assert finding.forecast is not None
    assert finding.forecast.low < 2.99 < (finding.forecast.high or 0.0)
    assert finding.forecast.speedup == pytest.approx(1 / 0.311 / STAYS_ON_CPU, rel=0.03)


@pytest.mark.parametrize(
    ("thread_cpu", "line"), [(0.95, "rows = file.read()"), (0.311, "rows = sorted(table)")]
)
def test_a_line_that_computes_keeps_its_samples(thread_cpu: float, line: str) -> None:
    share = seen_with_sleep(drawing(thread_cpu, line), fetches)
    assert share.mean == pytest.approx(45 / 57)


def of_38(part: float, forward_ms: float, backward_ms: float) -> Share:
    """The share of making batches in a loop without a loader, of which 38 samples show this part,
    as two kinds of measurement show it together."""
    rows = even(60, forward_ms=forward_ms, backward_ms=backward_ms, fetches=0)
    made = FrameShare(part, "augment (train.py:8)", None, "x = np.roll(x, 1)", phase="data")
    known = Stacks(38, (made,), 0, (), None, main_unplaced=0.0)
    return seen_before_the_net(window(rows, loaders=(), stacks=known), fetches)


def test_the_backward_shows_what_of_the_forward_is_the_nets() -> None:
    """A generated run (1517): 42 % of 38 samples drew batches, 62 % of the time went without them;
    the net's forward would have been 1.5 times its backward."""
    share = of_38(16 / 38, 13.1, 3.9)
    assert share.mean == pytest.approx(0.54, abs=0.03)
    assert share.low > 0.42


def test_a_net_that_is_mostly_frozen_is_known_by_samples_alone() -> None:
    """Its backward is short, and its forward is none of a batch's making."""
    assert of_38(2 / 38, 13.1, 1.0).mean == pytest.approx(2 / 38)
    assert of_38(0.0, 13.1, 1.0).mean == 0.0


@pytest.mark.parametrize("fetches", [10**5, 2**53])
def test_fetches_that_no_step_can_hold_are_not_followed_one_by_one(fetches: int) -> None:
    """A message may say any number: a tuple of so many took the monitor's memory."""
    rows = [structs.replace(row, fetches=fetches) for row in even(60, data_ms=4, forward_ms=6)]
    fed = feeding(window(rows, loaders=(loader(0),)))
    assert fed is not None
    assert fed.made_ns == ()


def test_workers_that_hardly_run_do_not_hide_that_epochs_begin() -> None:
    """LIIF on two cores, eight workers anew for each epoch of 2 s: each runs 1 % of the time and
    waits 2 % for a core. "Cheaper batches, 1.7x" gave nothing, workers that stay 1.44x."""
    phases = {"data_ms": 1.0, "forward_ms": 15.0, "backward_ms": 18.0}
    rows = run(120, lambda n: {**phases, "startup_ms": 400 if n % 40 == 1 else 0})
    anew = loader(8, persistent_workers=False, iterations=3)

    def with_wait(run_delay: float) -> Finding:
        use = WorkerUse(8, 1.4, 0.0, 0.0, run_delay=run_delay, exited=16)
        return found(window(rows, loaders=(anew,), workers=use, cores=2.0))

    assert with_wait(0.02).sub == "epoch-start"
    assert with_wait(0.40).sub == "oversubscribed"
