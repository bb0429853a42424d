"""What the lab makes of its turns: gains, what adds up, losses, and words."""

import json
import math
import random
from collections.abc import Callable
from math import inf

import pytest

from gpuwatch.tui.compare.intervals import Estimate
from gpuwatch.tui.errors import UsageError
from gpuwatch.tui.lab.faces import as_json, text_lines
from gpuwatch.tui.lab.gains import Gain, gains
from gpuwatch.tui.lab.plan import Lab, run, worth_combining
from gpuwatch.tui.lab.turns import Turn
from gpuwatch.tui.lab.variants import AS_IS, DEFAULT, Variant, together, variants_of

BF16, WORKERS, BATCH = variants_of("bf16,workers=4,batch=2x")


def a_turn(
    variant: Variant,
    step_ms: float,
    samples: int = 32,
    losses: tuple[tuple[int, float], ...] = (),
    made: bool = True,
) -> Turn:
    return Turn(
        variant=variant,
        step_ms=Estimate(step_ms, 0.001 * step_ms, inf),
        sample_ms=Estimate(step_ms / samples, 0.001 * step_ms / samples, inf),
        steps=100,
        losses=losses,
        refused=(),
        made=made,
    )


def by_variant(found: list[Gain]) -> dict[str, Gain]:
    return {one.variant.name: one for one in found}


def noisy(times: dict[Variant, float], rounds: int, seed: int) -> list[Turn]:
    """Each round as slow as the machine then is, up to twice; each turn 1 % off."""
    rng, turns = random.Random(seed), []
    for _ in range(rounds):
        machine = 1 + rng.random()
        for variant, time_ms in times.items():
            turns.append(a_turn(variant, time_ms * machine * math.exp(rng.gauss(0, 0.01))))
    return turns


def test_a_machine_that_is_slow_for_a_round_takes_nothing_from_a_gain() -> None:
    times = {AS_IS: 100.0, BF16: 50.0, WORKERS: 99.9}
    held = 0
    for seed in range(100):
        found = by_variant(gains(noisy(times, 3, seed)))
        bf16, workers = found["bf16"], found["workers=4"]
        assert bf16.gain == pytest.approx(2.0, rel=0.05)
        assert bf16.is_worth
        assert not workers.is_worth
        held += bf16.low <= 2.0 <= bf16.high
    assert 88 <= held <= 100, "95 % of the intervals hold the truth"


def test_another_batch_is_compared_by_time_a_sample() -> None:
    turns = [a_turn(AS_IS, 100.0, 32), a_turn(BATCH, 150.0, 64)] * 2
    found = by_variant(gains(turns))
    assert found["batch=2x"].gain == pytest.approx(200 / 150)
    assert found["batch=2x"].loss is None


def test_a_variant_without_figures_is_not_measured() -> None:
    failed = Turn(BF16, None, None, 0, (), (), False, "the program ended with code 1")
    found = by_variant(gains([a_turn(AS_IS, 100.0), failed, a_turn(AS_IS, 101.0)]))
    assert found["bf16"].gain is None
    assert found["bf16"].notes == ("the program ended with code 1",)
    assert "not measured" in "\n".join(text_lines(Lab([a_turn(AS_IS, 100.0), failed]), 80))


@pytest.mark.parametrize(("last", "close"), [(1.0, True), (1.01, True), (1.5, False)])
def test_losses_are_compared_over_the_steps_that_all_have(last: float, close: bool) -> None:
    base = tuple((step, 2.0 - step / 100) for step in range(4, 104, 4))
    other = tuple((step, last * loss) for step, loss in base[:-5])
    (_, found) = gains([a_turn(AS_IS, 100.0, losses=base), a_turn(BF16, 50.0, losses=other)])
    assert found.loss is not None
    assert found.loss.steps == (41, 80)
    assert found.loss.close is close
    assert found.is_worth is close


def test_a_loss_that_is_not_finite_is_not_close() -> None:
    base = tuple((step, 2.0) for step in range(4, 104, 4))
    bad = tuple((step, math.nan) for step, _ in base)
    (_, found) = gains([a_turn(AS_IS, 100.0, losses=base), a_turn(BF16, 50.0, losses=bad)])
    assert found.loss is not None
    assert not found.loss.close
    lab = Lab([a_turn(AS_IS, 1.0, losses=base), a_turn(BF16, 0.5, losses=bad)])
    assert "loss not finite" in "\n".join(text_lines(lab, 80))


def test_losses_that_differ_as_turns_without_a_seed_do_are_not_called_different() -> None:
    """Three turns of each, nothing changed but the seed."""
    called = 0
    for seed in range(200):
        rng = random.Random(seed)
        turns = []
        for _ in range(3):
            for variant in (AS_IS, BF16):
                loss = 1.0 + rng.gauss(0, 0.05)
                losses = tuple((step, loss) for step in range(4, 104, 4))
                turns.append(a_turn(variant, 100.0, losses=losses))
        found = by_variant(gains(turns))["bf16"].loss
        assert found is not None
        called += found.close is False
    assert called <= 6, "1 % of 200, by chance three times that"


def test_a_change_that_is_left_out_for_its_loss_is_named() -> None:
    """Else the best of the others would be called the best."""
    base = tuple((step, 2.0) for step in range(4, 104, 4))
    other = tuple((step, 3.0) for step in range(4, 104, 4))
    turns = [
        a_turn(AS_IS, 100.0, losses=base),
        a_turn(WORKERS, 90.0, losses=base),
        a_turn(BF16, 30.0, losses=other),
    ]
    text = " ".join(text_lines(Lab(turns * 2), 100))
    assert "Best: workers=4. Left out, faster with another loss: bf16 (3.33x)." in text
    text = " ".join(text_lines(Lab([turns[0], turns[2]] * 2), 100))
    assert "No change is faster with a close loss. Left out" in text


def lab_of(time_of: Callable[[Variant], float], variants: str) -> Lab:
    lab = Lab()
    run(lab, variants_of(variants), 2, lambda v: a_turn(v, time_of(v)), lambda text: None)
    return lab


def test_the_good_ones_are_tried_together() -> None:
    """Each gives 2x alone; together the step is bounded by a third of it that nobody changes."""

    def time_ms(variant: Variant) -> float:
        keys = {key for key, _ in variant.changes}
        return 100.0 / (1 + len(keys & {"precision", "workers"})) if keys else 100.0

    lab = lab_of(time_ms, "bf16,workers=4,pin")
    assert lab.together is not None
    assert lab.together.variant.name == "bf16 + workers=4"
    assert lab.together.gain == pytest.approx(3.0)
    assert "less than 4.00x" in "\n".join(text_lines(lab, 100))
    record = json.loads(json.dumps(as_json(lab), allow_nan=False))
    assert record["together"]["gain"] == pytest.approx(3.0)
    assert [one["variant"] for one in record["variants"]] == [
        "as it is",
        "bf16",
        "workers=4",
        "pin",
    ]


def test_of_two_that_set_the_same_thing_the_better_is_kept() -> None:
    lab = lab_of(lambda v: {"tf32": 60.0, "bf16": 40.0}.get(v.name, 100.0), "tf32,bf16")
    assert [one.name for one in worth_combining(lab.gains)] == ["bf16"]
    assert "Best: bf16." in text_lines(lab, 80)


def test_a_change_that_could_not_be_made_has_no_second_turn() -> None:
    lab, taken = Lab(), []

    def take(variant: Variant) -> Turn:
        taken.append(variant.name)
        return a_turn(variant, 100.0, made=variant == AS_IS)

    run(lab, variants_of("compile"), 3, take, lambda text: None)
    assert taken.count("compile") == 1
    assert taken.count("as it is") == 3


def test_a_change_that_was_not_made_has_no_gain() -> None:
    """Its turn is one of the program as it is, and by chance a faster one; it takes nothing from
    the others' rounds."""
    times = {AS_IS: 100.0, WORKERS: 50.0}
    turns = noisy(times, 3, seed=1)
    alone = gains(turns)
    turns.insert(1, a_turn(BF16, 80.0, made=False))
    as_is, bf16, workers = gains(turns)
    assert [as_is, workers] == alone
    assert bf16.gain is None
    assert not bf16.is_faster
    text = " ".join(text_lines(Lab(turns), 100))
    assert "the change was not made" in text
    assert "Best: workers=4." in text


def test_a_combination_of_which_a_part_was_not_made_is_not_called_measured() -> None:
    turns = [a_turn(AS_IS, 100.0), a_turn(BF16, 50.0), a_turn(WORKERS, 50.0)]
    combined = [a_turn(AS_IS, 100.0), a_turn(together([BF16, WORKERS]), 50.0, made=False)]
    text = " ".join(text_lines(Lab(turns, combined), 200))
    assert "bf16 + workers=4; not measured together: the change was not made" in text


def test_a_program_that_does_not_run_is_started_once() -> None:
    lab, taken = Lab(), []

    def take(variant: Variant) -> Turn:
        taken.append(variant)
        return Turn(variant, None, None, 0, (), (), False, "code 1")

    run(lab, variants_of(DEFAULT), 3, take, lambda text: None)
    assert taken == [AS_IS]


@pytest.mark.parametrize("text", ["", "fp16", "workers=", "workers=-1", "batch=2", "batch=0x"])
def test_what_is_no_variant_is_refused(text: str) -> None:
    with pytest.raises(UsageError):
        variants_of(text)


def test_variants_show_what_the_probe_is_to_do() -> None:
    assert json.loads(BATCH.wanted) == {"batch": 2.0}
    assert json.loads(together([BF16, WORKERS]).wanted) == {"precision": "bf16", "workers": 4}
    assert json.loads(AS_IS.wanted) == {}
