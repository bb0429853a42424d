"""Which steps speak: warm-up, window, change of pace."""

import random

import pytest

from gpuwatch.tui.verdict.engine import Engine
from gpuwatch.tui.verdict.statistics import share_of
from gpuwatch.tui.verdict.window_selection import (
    choose_window,
    last_change,
    new_work,
    warm_after,
    what_changed,
)
from tests.unit.verdict.runs import bursty_wait
from tests.unit.verdict.windows import even, run, window


def test_a_steady_run_is_warm_after_five_steps() -> None:
    assert warm_after(even(30, forward_ms=50)) == 5


def test_slow_first_steps_are_left_out() -> None:
    rows = run(40, lambda n: {"forward_ms": 500 / n if n <= 7 else 50})
    assert warm_after(rows) == 7


def test_a_bursty_run_is_not_waited_for() -> None:
    chance = random.Random(3)
    rows = run(40, lambda n: {"forward_ms": chance.choice([10, 100])})
    assert warm_after(rows) == 10


def test_long_steps_are_warm_after_two_and_enough_after_three() -> None:
    """Of 1.7 s each: a verdict within 10 s, not within 34."""
    assert warm_after(even(9, forward_ms=1_700)) == 2
    assert warm_after(even(9, forward_ms=450)) == 5
    assert choose_window(even(4, forward_ms=1_700)).warmup_left > 0
    assert choose_window(even(5, forward_ms=1_700)).warmup_left == 0
    assert choose_window(even(4, forward_ms=1_700)).warmup_left == 1
    assert choose_window(even(12, forward_ms=450)).warmup_left == 2, "nine hold 4 s"
    assert choose_window(even(14, forward_ms=450)).warmup_left == 0


def test_few_steps_have_wide_intervals() -> None:
    """Student's t: of three steps that differ by chance a fifth is not known to be above 5 %."""
    walls = [100, 100, 100]
    few, many = share_of([10, 20, 30], walls), share_of([10, 20, 30] * 4, walls * 4)
    assert few.mean == many.mean == pytest.approx(0.2)
    assert few.low < 0.05 < many.low


def test_compilation_belongs_to_the_warm_up() -> None:
    rows = run(40, lambda n: {"forward_ms": 50, "compile_ms": 9_000 if n in (1, 11) else 0})
    assert warm_after(rows) == 13
    late = run(60, lambda n: {"forward_ms": 50, "compile_ms": 9_000 if n in (1, 30) else 0})
    assert warm_after(late) == 10


def test_the_first_use_of_a_part_of_the_net_belongs_to_the_warm_up() -> None:
    """StarGAN trains its generator in each fifth step: 2.8 s the first time, and a quarter of the
    headline's window was launches then."""
    first = run(40, lambda n: {"forward_ms": 20, "backward_ms": 2_800 if n == 5 else 4})
    assert warm_after(first) == 5
    seventh = run(40, lambda n: {"forward_ms": 20, "backward_ms": 2_800 if n == 7 else 4})
    assert warm_after(seventh) == 7
    late = run(40, lambda n: {"forward_ms": 20, "backward_ms": 2_800 if n == 12 else 4})
    assert warm_after(late) == 5
    again = run(40, lambda n: {"forward_ms": 20, "data_ms": 2_800 if n % 3 == 0 else 4})
    assert warm_after(again) == 3, "a loader that is too slow is so again"


def test_a_run_joined_late_has_no_warm_up() -> None:
    assert warm_after(even(200, forward_ms=50)[100:]) == 0


def test_a_training_behind_an_evaluation_warms_up_behind_it() -> None:
    """llama2.c looks at 20 batches of its validation set first; the step after them took 1.4 s, the
    others 130 ms, and it was said to spend 13 % in Python on an H200 that was the limit."""
    rows = run(60, lambda n: {"forward_ms": 1_360 if n == 21 else 130, "inference": n <= 20})
    assert warm_after(rows) == 25
    assert choose_window(rows).steps[0].number == 26


def test_of_an_evaluation_before_the_training_nothing_is_said() -> None:
    rows = run(60, lambda n: {"forward_ms": 130, "inference": n <= 20})
    assert choose_window(rows[:20]).warmup_left > 0
    assert choose_window(rows[:36]).warmup_left == 0
    inferring = run(60, lambda n: {"forward_ms": 130, "inference": True})
    assert choose_window(inferring).warmup_left == 0


def test_inference_whose_pace_changes_warms_up_once() -> None:
    """On a busy machine its pace changed every few seconds, and it warmed up for ever."""
    rows = run(110, lambda n: {"forward_ms": 100 if n <= 90 else 50, "inference": True})
    choice = choose_window(rows)
    assert choice.change is not None
    assert choice.steps[0].number > 80
    assert choice.warmup_left == 0


@pytest.mark.parametrize(
    ("done", "left", "have"), [(0, 15, 0), (3, 17, 0), (15, 0, 10), (19, 0, 14)]
)
def test_steps_that_are_still_needed(done: int, left: int, have: int) -> None:
    choice = choose_window(even(done, forward_ms=50))
    assert len(choice.steps) == have
    assert choice.warmup_left == left


def test_a_first_verdict_needs_twenty_steps_at_most() -> None:
    rows = run(20, bursty_wait(0.5, seed=1))
    assert choose_window(rows).warmup_left == 0


def test_the_window_grows_to_a_hundred_steps() -> None:
    assert len(choose_window(even(60, forward_ms=80)).steps) == 55
    assert len(choose_window(even(500, forward_ms=80)).steps) == 100


def test_fast_steps_are_windowed_by_time() -> None:
    rows = even(2_000, forward_ms=10, count=2)
    kept = choose_window(rows).steps
    assert len(kept) == 500
    assert kept[-1].end_ns - kept[0].start_ns == 5_000_000_000


def test_the_window_is_cut_where_the_pace_changes_and_stays_cut() -> None:
    rows = run(150, lambda n: {"forward_ms": 50 if n <= 100 else 80})
    found = choose_window(rows[:115])
    assert found.change is not None
    assert found.change.factor == pytest.approx(1.6)
    assert found.steps[0].number == 101
    again = choose_window(rows, found.cut_ns)
    assert again.change is None
    assert again.steps[0].number == 101


@pytest.mark.parametrize("factor", [1.3, 3.0])
def test_a_change_is_found_within_fifteen_steps(factor: float) -> None:
    late = 0
    for seed in range(20):
        chance = random.Random(seed)
        paces = [100 * chance.gauss(1, 0.05) * (factor if n >= 100 else 1) for n in range(115)]
        change = last_change(paces)
        late += change is None or abs(change.index - 100) > 2
    assert late <= 1


def test_bursts_and_noise_are_no_change_of_pace() -> None:
    """Looked for every five steps, as often as in ten minutes of a run."""
    cuts = 0
    for seed in range(4):
        chance = random.Random(seed)
        paces = [
            100 * chance.gauss(1, 0.05) + (chance.expovariate(1 / 300) if n % 8 == seed else 0)
            for n in range(1_000)
        ]
        start = 0
        for now in range(20, 1_000, 5):
            first = max(start, now - 200)
            if (change := last_change(paces[first:now])) is not None:
                start, cuts = first + change.index, cuts + 1
    assert cuts <= 4, "one per 1,000 steps"


def test_a_flock_of_bursts_is_no_change_of_pace() -> None:
    """Five of the last ten steps waited: their median is up, and half of them are as before."""
    steady = [100.0] * 60
    flock = [100, 270, 100, 400, 100, 230, 100, 640, 100, 300]
    assert last_change([*steady, *map(float, flock)]) is None
    assert last_change([*steady, *(160.0 for _ in flock)]) is not None


def test_what_became_another_is_reported() -> None:
    rows = run(130, lambda n: {"data_ms": 5 if n <= 100 else 45, "forward_ms": 50})
    change = choose_window(rows).change
    assert change is not None
    assert change.what == "data wait 5.0 ms → 45 ms"


def test_what_changed_is_told_from_the_pace_before_and_not_from_one_before_that() -> None:
    """Waits of 25, 36 and 30 ms: "-15%" stood beside "data wait 25 ms → 30 ms"."""
    waits_ms = [25.0] * 100 + [36.0] * 40 + [30.0] * 40
    chance = random.Random(1)
    rows = run(180, lambda n: {"data_ms": waits_ms[n - 1] * chance.gauss(1, 0.02), "forward_ms": 3})
    change = choose_window(rows).change
    assert change is not None
    assert change.factor < 1
    assert change.what == "data wait 36 ms → 30 ms"


def test_what_became_longer_does_not_make_a_step_shorter() -> None:
    shorter, longer = even(20, data_ms=25, forward_ms=9), even(20, data_ms=30, forward_ms=9)
    assert what_changed(shorter, longer, 5e6) == "data wait 25 ms → 30 ms"
    assert what_changed(shorter, longer, -5e6) == ""
    assert what_changed(longer, shorter, -5e6) == "data wait 30 ms → 25 ms"


def test_what_explains_a_tenth_of_a_change_is_not_what_changed() -> None:
    """Waits for a core fall into any phase; "optimizer 0.3 ms → 0.3 ms" was named beside -61%."""
    parts = ("data_ms", "forward_ms", "backward_ms", "optimizer_ms")

    def waits_anywhere(n: int) -> dict[str, float]:
        usual = dict.fromkeys(parts, 5.0)
        if n > 30:
            usual["optimizer_ms"] = 5.5
            usual[parts[n % 4]] += 12
        return usual

    change = choose_window(run(60, waits_anywhere)).change
    assert change is not None
    assert change.factor > 1.5
    assert change.what == ""


def test_another_batch_size_cuts_even_where_the_pace_stays() -> None:
    rows = run(120, lambda n: {"forward_ms": 50, "samples": 32 if n <= 100 else 64})
    choice = choose_window(rows)
    assert choice.steps[0].number == 101
    assert choice.change is not None
    assert choice.change.what == "batches of 32 → 64 samples"
    assert choose_window(rows, choice.cut_ns).change is None


def test_inference_after_training_is_another_window() -> None:
    rows = run(115, lambda n: {"forward_ms": 50, "inference": n > 100})
    choice = choose_window(rows)
    assert choice.steps[0].number == 101
    assert choice.change is not None
    assert choice.change.what == "training → inference"


def test_a_smaller_last_batch_and_ever_new_sizes_are_the_same_work() -> None:
    last = run(120, lambda n: {"forward_ms": 50, "samples": 7 if n % 25 == 0 else 32})
    assert choose_window(last).change is None
    new = run(120, lambda n: {"forward_ms": 50, "samples": 20 + n % 13})
    assert choose_window(new).change is None


def test_a_batch_size_that_becomes_known_is_no_new_work() -> None:
    unknown = even(30, forward_ms=20, backward_ms=30, samples=None)
    known = even(60, forward_ms=20, backward_ms=30, samples=64)[30:]
    assert new_work([*unknown, *known]) is None
    assert Engine().judge(window([*unknown, *known])).finding.kind in ("healthy", "warming-up")
