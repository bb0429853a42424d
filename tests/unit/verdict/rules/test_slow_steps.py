"""Single slow steps beside a wait for a core, which comes and goes with what others do."""

import random

import pytest

from gpuwatch.tui.steps import Step
from gpuwatch.tui.verdict.engine import Engine
from gpuwatch.tui.verdict.rules.host import host
from gpuwatch.tui.verdict.window import StepWindow
from tests.unit.verdict.windows import loader, run, window


def one_in_twenty(steps: int) -> list[Step]:
    """Steps of 10 ms, each twentieth with 150 ms of Python."""
    usual = {"data_ms": 0.1, "forward_ms": 4, "backward_ms": 5, "optimizer_ms": 0.5}
    return run(steps, lambda n: {**usual, "other_ms": 150 if n % 20 == 0 else 0.1})


def without_a_core(rows: list[Step], part: float) -> StepWindow:
    """The training thread waits for one so much of the time, as it does in all that it does."""
    use = {"thread_cpu": 1 - part, "run_delay": part, "others_cores": 1.5, "beside_cores": 0.0}
    percent = 100 * (1 - part)
    return window(rows, loaders=(loader(0),), cores=2.0, main_cpu_percent=percent, **use)


@pytest.mark.parametrize("part", [0.0, 0.075, 0.2, 0.4])
def test_what_slow_steps_hold_is_not_in_each_step(part: float) -> None:
    """With a wait of 20 % it was "46% of each step is in Python": of 19 in 20 it is 1 %."""
    found = host(without_a_core(one_in_twenty(400), part))
    assert found is not None
    assert found.headline.startswith("single slow steps take")
    assert found.evidence[0].text.startswith("one step in 20 takes 150 ms longer")
    assert found.share == pytest.approx((1 - part) * 150 / (150 + 19 * 9.7 + 9.6), abs=0.01)


def test_the_headline_does_not_change_with_what_others_do() -> None:
    """It changed 30 times in these 60 looks."""
    chance, engine, rows = random.Random(4), Engine(), one_in_twenty(3_600)
    waits = [abs(chance.gauss(0.075, 0.02)) for _ in range(60)]
    looks = (without_a_core(rows[: 200 + 55 * n], part) for n, part in enumerate(waits))
    headlines = {engine.judge(seen).finding.headline.partition(" take")[0] for seen in looks}
    assert headlines == {"single slow steps"}


def test_slow_steps_by_chance_are_no_python_in_each_step_either() -> None:
    chance = random.Random(2)
    usual = {"data_ms": 0.1, "forward_ms": 4, "backward_ms": 5, "optimizer_ms": 0.5}
    rows = run(400, lambda _: {**usual, "other_ms": 150 if chance.random() < 0.05 else 0.1})
    alone, crowded = (host(without_a_core(rows, part)) for part in (0.0, 0.2))
    assert alone is not None
    assert crowded is not None
    assert crowded.headline.startswith("single slow steps take")
    assert crowded.share == pytest.approx(0.8 * (alone.share or 0.0))
