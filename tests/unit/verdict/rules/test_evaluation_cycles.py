"""Training from one evaluation to the next."""

from dataclasses import replace
from typing import Any

import pytest

from gpuwatch.tui.steps import EvaluationCycle
from gpuwatch.tui.verdict.cycles import cycles
from gpuwatch.tui.verdict.engine import Engine
from gpuwatch.tui.verdict.findings import Verdict
from gpuwatch.tui.verdict.rules.evaluation import evaluation, evaluation_under_way
from gpuwatch.tui.verdict.stack_samples import Stacks
from gpuwatch.tui.verdict.thresholds.hysteresis import ENTER_LOW
from gpuwatch.tui.verdict.window import OpenStep, RunEvent, StepWindow
from tests.unit.verdict.on_gpu import activity, gpu_window
from tests.unit.verdict.windows import MS, even, loader, run, window

WORK: dict[str, Any] = {"data_ms": 0.2, "forward_ms": 4, "backward_ms": 5, "optimizer_ms": 0.5}
WAITS: dict[str, Any] = {"data_ms": 3, "forward_ms": 3, "backward_ms": 4, "optimizer_ms": 0}


def verdict(seen: StepWindow) -> Verdict:
    return Engine().judge(seen)


def cycle(steps: int = 300, evaluation_ms: float = 2_000, **fields: Any) -> EvaluationCycle:
    """Steps of 10 ms and an evaluation behind them: 40 % of the time."""
    wall_ns = round((steps * 9.7 + evaluation_ms) * MS)
    given: dict[str, Any] = {"steps": steps, "fetches": steps, "first": True, "last_step": 300}
    given |= {"shared_ns": 0, "wall_ns": wall_ns, **fields}
    return EvaluationCycle(evaluation_ns=round(evaluation_ms * MS), **given)


def after(*held: EvaluationCycle, batches: int | None = 300) -> StepWindow:
    """A window of training alone, some time after these."""
    return window(even(400, **WORK), cycles=held, loaders=(loader(0, batches=batches),))


def test_one_evaluation_at_the_end_of_an_epoch_has_a_share() -> None:
    """The epoch is the rhythm; that each has an evaluation is two thirds sure (succession)."""
    judged = verdict(after(cycle()))
    found = judged.finding
    assert (found.kind, found.headline) == ("evaluation", "evaluation takes 41% of the time so far")
    assert "one after each epoch so far (1 of 1), 2.0 s" in found.evidence[0].text
    assert found.advice[0].startswith("evaluate every 34 epochs")
    assert 0.5 < judged.confidence <= 2 / 3
    assert found.forecast is not None
    assert found.forecast.low < 1.2 < 1.6 < found.forecast.speedup < 1.75


@pytest.mark.parametrize("batches", [None, 1_000, 310])
def test_one_evaluation_in_the_middle_of_an_epoch_is_likely_to_come_again(
    batches: int | None,
) -> None:
    """Loops count their steps from the run's start, which is a moment of the rhythm."""
    found = evaluation(after(cycle(), batches=batches))
    assert found is not None
    assert found.share == pytest.approx(0.41, abs=0.01)
    assert found.goes_on == pytest.approx(2 / 3)
    assert found.evidence[0].text == "evaluation: one so far, after 300 steps, 2.0 s"


@pytest.mark.parametrize("fields", [{"first": False}, {"whole": False}, {"steps": 9}])
def test_one_evaluation_that_no_rhythm_explains_has_no_share(fields: dict[str, Any]) -> None:
    """After another one unlike it, after training that nobody saw, a check before the training."""
    assert evaluation(after(cycle(**fields), batches=1_000)) is None


@pytest.mark.parametrize("start_ms", [0, 600])
def test_workers_that_start_for_evaluations_alone_are_a_part_of_them(start_ms: int) -> None:
    """Every 30 steps, in the middle of an epoch: 600 ms start the workers, 300 ms evaluate."""
    rows = run(
        100,
        lambda n: {
            **WORK,
            "evaluation_ms": 900 if n in (20, 50, 80) else 0,
            "evaluation_startup_ns": round(start_ms * MS) if n in (20, 50, 80) else 0,
        },
    )
    found = evaluation(window(rows, loaders=(loader(2, iterations=1, batches=1_000),)))
    assert found is not None
    assert found.evidence[0].text == "evaluation every 30 steps, 900 ms each: 28 ms per step"
    starts = [one.text for one in found.evidence if one.text.startswith("of it 600 ms start and")]
    assert bool(starts) is bool(start_ms)
    second = "make its loader once, with persistent_workers" if start_ms else "evaluate on a part"
    assert found.advice[1].startswith(second)


@pytest.mark.parametrize("workers", [0, 2])
def test_workers_that_start_with_the_trainings_are_no_part_of_an_evaluation(workers: int) -> None:
    """They are the loader's, which starts anew in the same step. A training without workers starts
    none: those of the evaluation are its own, and the training's first batch is not."""
    rows = run(
        120,
        lambda n: {
            **WORK,
            "startup_ms": 500 if n % 40 == 1 else 0,
            "evaluation_ms": 900 if n % 40 == 1 else 0,
            "evaluation_startup_ns": round(600 * MS) if n % 40 == 1 else 0,
            "shared_startup_ns": round(600 * MS) if n % 40 == 1 else 0,
        },
    )
    seen = window(rows, loaders=(loader(workers, iterations=4, batches=40),))
    found = evaluation(seen)
    assert found is not None
    assert found.evidence[0].value == pytest.approx(300 if workers else 900)
    of_it = [one.text for one in found.evidence if one.text.startswith("of it")]
    assert [text.startswith("of it 600 ms start and end") for text in of_it] == [True] * (
        workers == 0
    )
    whole = cycle(evaluation_ms=900, shared_ns=round(600 * MS))
    once = replace(seen, steps=tuple(even(60, **WORK)), all_recent=(), cycles=(whole,))
    pauses = cycles(once)
    assert pauses is not None
    assert pauses.pauses.each_ns == pytest.approx((300 if workers else 900) * MS)


def test_an_evaluations_start_is_the_mean_of_those_that_share_it_and_those_that_do_not() -> None:
    """Every 20 steps, each second one behind an epoch of 40: "of it 600 ms" of 300 was said."""
    rows = run(
        120,
        lambda n: {
            **WORK,
            "startup_ms": 500 if n % 40 == 1 else 0,
            "evaluation_ms": 700 if n % 20 == 1 else 0,
            "evaluation_startup_ns": round(600 * MS) if n % 20 == 1 else 0,
            "shared_startup_ns": round(600 * MS) if n % 40 == 1 else 0,
        },
    )
    found = evaluation(window(rows, loaders=(loader(2, iterations=4, batches=20),)))
    assert found is not None
    assert found.evidence[0].value == pytest.approx((700 + 100) / 2, rel=0.2)
    (of_it,) = [one.value for one in found.evidence if one.text.startswith("of it")]
    assert of_it == pytest.approx(300)


def test_workers_that_persist_are_started_once_and_not_advised() -> None:
    rows = run(
        100,
        lambda n: {
            **WORK,
            "evaluation_ms": 1_600 if n == 10 else 100 if n % 10 == 0 else 0,
            "evaluation_startup_ns": 1_500 * MS if n == 10 else 0,
        },
    )
    found = evaluation(window(rows, loaders=(loader(2, iterations=1, batches=1_000),)))
    assert found is not None
    assert not [one for one in found.evidence if one.text.startswith("of it")]
    assert not any("persistent_workers" in text for text in found.advice)


def under_way(evaluated_ms: float, **given: Any) -> StepWindow:
    """The run's first evaluation, after 100 steps of 10 ms, goes on."""
    now = OpenStep("evaluation", 0.1, None, evaluating=True, frame=None, **given)
    its = cycle(steps=100, evaluation_ms=evaluated_ms, last_step=100)
    return window(even(100, **WAITS), under_way=its, open_step=now)


def test_an_evaluation_under_way_is_beside_the_verdict() -> None:
    """DeepLabV3+ on an H200: "input, 1.4x" through 18 s of an evaluation, without which it was 3.1x
    as fast. No step ends in it, so that nothing was weighed anew. It may be the run's last."""
    engine = Engine()
    assert engine.judge(replace(under_way(1), under_way=None)).contributors == ()
    for evaluated_ms, text in ((400, "400 ms so far, 29%"), (3_000, "3.0 s so far, 76%")):
        seen = engine.judge(under_way(evaluated_ms))
        assert seen.finding.kind == "input"
        (beside,) = seen.contributors
        assert beside.headline == f"one evaluation has taken {text} of the time"
        assert beside.speedup is None
        assert beside.advice[0].startswith("if it comes again every 100 steps")
    assert engine.judge(under_way(20)).contributors == (), "below 5 % of the time"


@pytest.mark.parametrize("fields", [{"phase": "training over"}, {"at_prompt": True}])
def test_no_evaluation_is_under_way_once_nothing_trains(fields: dict[str, Any]) -> None:
    """A notebook that looked at one batch and waits for a cell; a run that has ended."""
    seen = under_way(3_000)
    assert seen.open_step is not None
    assert evaluation_under_way(seen) is not None
    assert evaluation_under_way(replace(seen, ended=True)) is None
    assert evaluation_under_way(replace(seen, open_step=replace(seen.open_step, **fields))) is None


def test_training_that_goes_on_after_an_evaluation_makes_it_the_verdict_at_once() -> None:
    engine = Engine()
    assert engine.judge(under_way(3_000)).finding.kind == "input"
    ended = run(160, lambda n: {**WAITS, "evaluation_ms": 3_000 if n == 100 else 0})
    end = cycle(steps=100, evaluation_ms=3_000, last_step=100)
    found = engine.judge(window(ended, cycles=(end,))).finding
    assert (found.kind, found.speedup_is) == ("evaluation", "bound")


def test_two_evaluations_as_far_apart_as_the_first_from_the_start_are_a_rhythm() -> None:
    found = evaluation(after(cycle(), cycle(first=False), batches=1_000))
    assert found is not None
    assert found.share == pytest.approx(2_000 / (2_000 + 2_910), abs=0.01)
    assert found.goes_on == pytest.approx(3 / 4)
    assert "one after each 300 steps so far (2 of 2)" in found.evidence[0].text
    unlike = after(cycle(steps=150), cycle(first=False), batches=1_000)
    assert evaluation(unlike) is None


def test_evaluations_that_no_longer_come_are_over() -> None:
    seen = after(cycle())
    assert evaluation(replace(seen, steps_seen=899)) is not None
    assert evaluation(replace(seen, steps_seen=901)) is None


@pytest.mark.parametrize(("began", "known"), [(400, True), (200, False)])
def test_the_end_of_an_epoch_and_its_evaluation_are_enough(began: int, known: bool) -> None:
    """A monitor that came in the middle of an epoch of 1,000 steps, which the loader knows."""
    end = cycle(steps=100, first=False, whole=False, last_step=401, evaluation_ms=6_500)
    rows, moments = even(500, **WORK), (RunEvent(began, "epoch"),)
    seen = window(rows, cycles=(end,), moments=moments, loaders=(loader(0, batches=1_000),))
    found = evaluation(seen)
    assert (found is not None) is known
    assert found is None or found.share == pytest.approx(6.5 / (6.5 + 9.7), abs=0.01)


def test_a_short_evaluation_after_one_epoch_is_no_verdict() -> None:
    """What comes once may not come again in each epoch: 12 % may be 3 %."""
    found = evaluation(after(cycle(evaluation_ms=400)))
    assert found is not None
    assert found.share_low is not None
    assert found.share == pytest.approx(0.12, abs=0.01)
    assert found.share_low < ENTER_LOW


def test_the_first_steps_of_a_run_do_not_lessen_an_evaluation() -> None:
    slow = replace(cycle(), wall_ns=cycle().wall_ns + 3_000 * MS)
    found, usual = evaluation(after(slow)), evaluation(after(cycle()))
    assert found is not None
    assert usual is not None
    assert found.share == pytest.approx(usual.share)


def test_the_start_of_the_next_epoch_stays_when_an_evaluation_goes() -> None:
    """pytorch/examples super_resolution on an H200: 50 steps of 4 ms, workers that start anew for
    150 ms, a test of 400 ms. 3.5x was forecast: the GPU's clock had measured the steps between."""
    parts = {"data_ms": 0.2, "forward_ms": 2, "backward_ms": 1.5, "optimizer_ms": 0.3}
    seldom = {"evaluation_ms": 400, "startup_ms": 150}
    rows = run(250, lambda n: {**parts, **(seldom if n % 50 == 0 else {})})
    of_training = (loader(4, batches=50, iterations=5),)
    dozing = Stacks(200, (), 200, (), 0.2)
    seen = gpu_window(rows, parts, activity=activity(20, sm=5), loaders=of_training, stacks=dozing)
    found = evaluation(replace(seen, gpu_steps=seen.gpu_steps[-14:]))
    assert found is not None
    assert found.speedup == pytest.approx((50 * 4 + 550) / (50 * 4 + 150), rel=0.05)


def test_the_first_batch_of_a_training_that_keeps_its_workers_is_no_part_of_an_evaluation() -> None:
    rows = run(
        120,
        lambda n: {
            **WORK,
            "startup_ms": 500 if n % 40 == 1 else 0,
            "evaluation_ms": 900 if n % 40 == 1 else 0,
        },
    )
    kept = loader(2, iterations=4, batches=40, persistent_workers=True)
    found = evaluation(window(rows, loaders=(kept,)))
    assert found is not None
    assert found.evidence[0].value == pytest.approx(900)
