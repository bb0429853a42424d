"""Which cause leads, what may stand beside it, and what is too unsure to lead."""

from dataclasses import replace

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from gpuwatch.tui.verdict.engine import Engine
from gpuwatch.tui.verdict.findings import Finding, Kind, Verdict
from gpuwatch.tui.verdict.idle_ledger import idle_ledger
from gpuwatch.tui.verdict.scoring import cause, none_above, unsure, within_the_wall, worth
from gpuwatch.tui.verdict.stack_samples import FrameShare, Stacks
from gpuwatch.tui.verdict.statistics import Share, of_samples, share_of
from gpuwatch.tui.verdict.thresholds.hysteresis import ENTER_SHARE, LEAST_SURE
from gpuwatch.tui.verdict.window import StepWindow
from tests.unit.verdict.on_gpu import activity, gpu_window
from tests.unit.verdict.test_any_window import windows
from tests.unit.verdict.test_rulebook import gpu_windows
from tests.unit.verdict.windows import even, loader, run, stacks, step, watch, window


def holding(kind: Kind, share: float, spread: float = 0.02) -> Finding:
    return cause(kind, None, Share(share, share - spread, share + spread), f"{kind}", (), ())


def names(verdict: Verdict) -> list[str]:
    return [verdict.finding.kind, *(one.kind for one in verdict.contributors)]


@settings(max_examples=50, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(seen=st.one_of(windows(), gpu_windows()))
def test_the_wall_is_partitioned_once(seen: StepWindow) -> None:
    """On any window: shares add up to the time at most, the GPU's ledger to all of it, nothing
    below half sure leads, and beside "nothing above 10%" stands nothing above it."""
    judged = Engine().judge(seen)
    shares = [one.share for one in (judged.finding, *judged.contributors) if one.share is not None]
    if judged.finding.kind not in ("compute", "memory-bandwidth"):  # these are of the busy time
        assert sum(shares) <= 1.0 + 1e-9
    ledger = idle_ledger(seen)
    if ledger is not None:
        assert sum(ledger.shares.values()) == pytest.approx(1.0)
        assert min(ledger.shares.values()) >= -1e-12
    if judged.finding.kind not in ("warming-up", "incomplete"):
        assert judged.confidence >= LEAST_SURE
    if (
        judged.finding.kind in ("healthy", "compute", "memory-bandwidth")
        and not judged.finding.share
    ):
        assert all((one.share or 0.0) <= ENTER_SHARE for one in judged.contributors)


def test_shares_rank_the_headline() -> None:
    """An optimizer that was the headline, and an evaluation that holds half of the time."""
    rows = run(
        400,
        lambda n: {"forward_ms": 40, "optimizer_ms": 12, "evaluation_ms": 450 * (n % 8 == 0)},
    )
    judged = watch(rows)[-1][1]
    assert names(judged) == ["evaluation", "optimizer"]
    assert (judged.finding.share or 0) > (judged.contributors[0].share or 0)


def test_a_larger_share_beside_the_headline_shows_why_it_does_not_lead() -> None:
    """The update is part of training: what a fix leaves of it is known to be about half."""
    update = holding("optimizer", 0.40)
    [beside] = within_the_wall(holding("input", 0.30), [update])
    assert beside.headline == "optimizer; a fix gives back about 20%, input's 30%"
    [smaller] = within_the_wall(holding("input", 0.30), [holding("host", 0.2)])
    assert smaller.headline == "host"


def test_the_gain_of_a_fix_ranks_the_headline() -> None:
    """A loader that holds a fifth of the step, and launches to which all others leave a fifth as
    well: a graph of the net takes three quarters of what the host does."""
    rows = even(60, data_ms=8, forward_ms=14, backward_ms=14, other_ms=4)
    on_gpu = {"data_ms": 8, "forward_ms": 14, "backward_ms": 14, "other_ms": 4}
    seen = gpu_window(
        rows, on_gpu, activity=activity(50.0), loaders=(loader(0),),
        stacks=stacks([(0.7, "linear (torch/nn/functional.py:9)", None)]),
    )  # fmt: skip
    found = Engine().judge(seen)
    assert names(found)[:2] == ["launch", "input"]
    gains = [one.speedup for one in (found.finding, *found.contributors) if one.speedup]
    assert gains == sorted(gains, reverse=True)


def test_a_gain_counts_only_of_a_cause_that_surely_holds_some() -> None:
    """What an estimate promises of launches that may hold nothing at all is no rival."""
    sure, unsure_ = holding("launch", 0.09), holding("launch", 0.09, spread=0.07)
    gains = [replace(one, speedup=2.0, speedup_is="estimate") for one in (sure, unsure_)]
    assert [worth(one) for one in gains] == [pytest.approx(0.5), pytest.approx(0.09)]


def test_what_was_chosen_without_stacks_is_no_precedent() -> None:
    """Launches led for want of samples; the first of them show a logger."""
    rows = even(80, forward_ms=70, backward_ms=30, fetches=0)
    on_gpu = {"forward_ms": 70, "backward_ms": 30}
    counters = activity(40.0, pcie_rx_mb_s=1_500.0, link_mb_s=63_008.0)
    logger = FrameShare(0.6, "clip (numpy/core.py:9)", "log (train.py:70)", "", "other", 200)
    net = FrameShare(0.4, "linear (torch/nn/functional.py:9)", None, "", "forward", 200)
    engine = Engine()
    first = engine.judge(gpu_window(rows, on_gpu, activity=counters, loaders=()))
    assert first.finding.kind == "launch"
    seen = gpu_window(
        [*rows, step(81, rows[-1].end_ns, forward_ms=70, backward_ms=30, fetches=0)],
        on_gpu, activity=counters, loaders=(), stacks=Stacks(200, (logger, net), 0, (), None),
    )  # fmt: skip
    assert engine.judge(seen).finding.kind == "host"


def test_twice_the_samples_choose_the_headline_anew() -> None:
    """The first 18 met the loader's lines by chance; of 36 most are in a logger."""
    rows = even(90, forward_ms=70, backward_ms=30, fetches=0)
    on_gpu = {"forward_ms": 70, "backward_ms": 30}

    def seen(steps: int, samples: int, fetching: float, logging: float) -> StepWindow:
        rest = 1 - fetching - logging
        places = (
            FrameShare(fetching, "get_batch (train.py:9)", None, "", "data", samples),
            FrameShare(
                logging, "clip (numpy/core.py:9)", "log (train.py:70)", "", "other", samples
            ),
            FrameShare(rest, "linear (torch/nn/functional.py:9)", None, "", "forward", samples),
        )
        return gpu_window(
            rows[:steps], on_gpu, activity=activity(20.0), loaders=(),
            stacks=Stacks(samples, places, 0, (), None),
        )  # fmt: skip

    kept, anew = Engine(), Engine()
    for engine in (kept, anew):
        assert engine.judge(seen(80, 18, 0.6, 0.2)).finding.kind == "input"
    assert kept.judge(seen(82, 30, 0.3, 0.5)).finding.kind == "input"
    assert anew.judge(seen(82, 36, 0.3, 0.5)).finding.kind == "host"


def test_what_is_left_of_the_time_is_all_that_others_can_hold() -> None:
    [one] = within_the_wall(holding("input", 0.7), [holding("sync", 0.4), holding("host", 0.2)])
    assert one.kind == "sync"
    assert one.share == pytest.approx(0.3)
    assert one.headline == "sync (30% not counted under input)"
    assert within_the_wall(holding("input", 0.98), [holding("sync", 0.43)]) == []


def test_nothing_above_a_tenth_stands_beside_nothing_above_a_tenth() -> None:
    kept = none_above([holding("evaluation", 0.21), holding("input", 0.07)])
    assert [one.kind for one in kept] == ["input"]


def test_beside_nothing_above_a_tenth_a_larger_share_shows_what_a_fix_gives_back() -> None:
    [update] = none_above([holding("optimizer", 0.14)])
    assert update.share == pytest.approx(0.07)
    assert update.headline == "optimizer; a fix gives back about 7%"


def test_two_that_are_as_likely_are_both_named() -> None:
    found = unsure([holding("launch", 0.31)], holding("input", 0.34))
    assert found.headline == "not sure: input 34% or launch 31%"
    assert (found.kind, found.sub) == ("incomplete", "unsure")
    assert unsure([], None).headline == "not sure: nothing stands out so far"
    assert unsure([holding("input", 0.12)], None).headline == "not sure: input 12% or nothing"


def test_a_cause_that_may_be_chance_is_not_the_headline() -> None:
    """Half of the time is in no phase, and nobody saw a fetch: less sure than a coin."""
    rows = even(60, other_ms=60, forward_ms=20, unknown_ms=55, fetches=0)
    at = stacks(main=[(0.6, "spread (train.py:70)", None)])
    judged = Engine().judge(window(rows, stacks=at, loaders=()))
    assert (judged.finding.kind, judged.finding.sub) == ("incomplete", "unsure")
    assert judged.finding.headline.startswith("not sure: host 44%")
    assert [one.kind for one in judged.contributors] == ["host"]


# -- one event is no share ---------------------------------------------------------------------


@pytest.mark.parametrize("phase", ["data", "evaluation", "checkpoint", "other"])
def test_one_pause_is_an_event_and_no_share(phase: str) -> None:
    """A process that was stopped for 20 s goes on as before, whichever phase it was in."""
    rows = run(120, lambda n: {"forward_ms": 90, f"{phase}_ms": 20_000 if n == 80 else 1})
    if phase in ("evaluation", "checkpoint"):
        rows = run(120, lambda n: {"forward_ms": 90, f"{phase}_ms": 20_000 * (n == 80)})
    judged = Engine().judge(window(rows, loaders=(loader(2),)))
    assert judged.finding.kind == "healthy"
    assert judged.contributors == ()


def test_three_pauses_are_a_share() -> None:
    rows = run(120, lambda n: {"forward_ms": 90, "evaluation_ms": 5_000 * (n % 30 == 0)})
    judged = Engine().judge(window(rows))
    assert "evaluation" in names(judged)


@pytest.mark.parametrize(
    ("one", "other", "share"), [(44, 44, 88 / 1_088), (45, 44, 89 / 1_089), (80, 9, 9 / 999)]
)
def test_two_pauses_are_a_share_unless_one_is_much_longer(
    one: int, other: int, share: float
) -> None:
    """Of 45 and 44 ms the longer was left out: a share of 8% was 4%, and no longer mentioned."""
    pauses = {20: one, 99: other}
    parts = [pauses.get(row, 0) for row in range(100)]
    assert share_of(parts, [10 + part for part in parts]).mean == pytest.approx(share)


def test_what_goes_on_beside_one_large_wait_keeps_its_share() -> None:
    parts = [30] * 99 + [5_000]
    walls = [130] * 99 + [5_100]
    assert share_of(parts, walls).mean == pytest.approx(sum(parts) / sum(walls))
    assert share_of([0] * 99 + [5_000], walls).mean == 0.0


@pytest.mark.parametrize(
    ("hits", "of", "low", "high"),
    [(2, 19, 0.036, 0.27), (0, 50, 0.0, 0.051), (100, 200, 0.442, 0.558), (0, 0, 0.0, 1.0)],
)
def test_a_part_of_samples_has_wilsons_interval(
    hits: int, of: int, low: float, high: float
) -> None:
    """Newcombe 1998, method 3, at 90 %."""
    share = of_samples(hits / of if of else 0.0, of)
    assert share.low == pytest.approx(low, abs=0.01)
    assert share.high == pytest.approx(high, abs=0.01)
