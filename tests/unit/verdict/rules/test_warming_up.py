"""Too early for a verdict."""

from dataclasses import replace
from typing import Any

from gpuwatch.tui.settings import Settings
from gpuwatch.tui.steps import Step
from gpuwatch.tui.verdict.engine import Engine
from gpuwatch.tui.verdict.findings import Verdict
from gpuwatch.tui.verdict.job.standing import Pending, StandingRank
from gpuwatch.tui.verdict.stack_samples import FrameShare
from gpuwatch.tui.verdict.window import StepWindow
from tests.unit.verdict.jobs import job
from tests.unit.verdict.on_gpu import activity, gpu_window
from tests.unit.verdict.windows import even, loader, open_step, run, stacks, window

WORK: dict[str, Any] = {"data_ms": 0.2, "forward_ms": 4, "backward_ms": 5, "optimizer_ms": 0.5}


def verdict(seen: StepWindow) -> Verdict:
    return Engine().judge(seen)


def test_warming_up_counts() -> None:
    assert verdict(window([])).finding.headline == "no step seen yet"
    assert verdict(window(even(8, **WORK))).finding.headline.startswith("warming up")
    assert verdict(window(even(12, **WORK))).finding.headline == "warming up (7/10)"


def test_a_long_first_step_is_reported_with_its_phase() -> None:
    """SSD300 on an H200: "no step seen yet" for 20 s, in the forward and the backward of one."""
    now = open_step("backward", 10.4, step_age_s=15.9, step_lasted_s=15.9)
    found = verdict(window([], open_step=now)).finding
    assert found.headline == "no step seen yet: the first has lasted 16 s, now in backward"
    early = open_step("backward", 0.4, step_age_s=1.0, step_lasted_s=1.0)
    assert verdict(window([], open_step=early)).finding.headline == "no step seen yet"


def test_cudnn_that_tries_kernels_is_evidence_of_a_long_first_step() -> None:
    """HiFi-GAN on an H200 that was just begun: 14 s in its first backward."""
    now = open_step("backward", 10.4, step_age_s=15.9, step_lasted_s=15.9)
    tries = Settings(cudnn_benchmark=True)
    seen = window([], open_step=now, settings=tries, gpu_present=True)
    (evidence,) = verdict(seen).finding.evidence
    assert evidence.text.startswith("torch.backends.cudnn.benchmark is on")
    assert not verdict(replace(seen, gpu_present=False)).finding.evidence
    early = open_step("backward", 0.4, step_age_s=1.0, step_lasted_s=1.0)
    assert not verdict(replace(seen, open_step=early)).finding.evidence


def where(seen: StepWindow) -> list[str]:
    found = verdict(seen)
    assert (found.finding.kind, found.finding.share, found.finding.advice) == (
        *("warming-up", None, ()),
    )
    assert not found.contributors, "a place is no cause"
    return [one.text for one in found.finding.evidence]


def test_before_the_first_step_the_place_of_the_training_thread_is_shown() -> None:
    """For 12 s that a script on an H200 made its tables in: "no step seen yet"."""
    lines = stacks(
        [
            (0.5, "make_data (data.py:12)", None),
            (0.35, "_mean (numpy/_core/_methods.py:132)", "make_data (data.py:14)"),
            (0.12, "read (json/decoder.py:3)", "main (train.py:9)"),
            (0.03, "Net.__init__ (train.py:3)", None),
        ]
    )
    assert where(window([], stacks=lines)) == [
        "85% of main-thread samples are in make_data (data.py:12)",
        "12% of main-thread samples are in main (train.py:9)",
    ]
    assert where(window([], stacks=replace(lines, main_samples=14))) == [], "too few to say"
    waits = open_step("other", 3.0, at_prompt=True)
    assert where(window([], stacks=lines, open_step=waits)) == [], "for a cell of its notebook"
    assert where(window([], stacks=stacks([(1.0, "?", None)]))) == [], "nobody could read it"


def test_who_plays_before_the_first_step_is_named_and_not_the_nets_layers() -> None:
    layers = ("conv (torch/nn/conv.py:5)", "Block.forward (net.py:4)", "Net.forward (net.py:9)")
    asked = "SelfPlay.predict (train.py:69)"
    places = tuple(
        FrameShare(0.425, layers[0], line, samples=40, evaluation="learn (a.py:1)", one_row=asked)
        for line in layers[1:]
    )
    assert where(window([], stacks=replace(stacks(), main=places, main_samples=40))) == [
        f"34 of 40 main-thread samples (85%) are in {asked}"
    ]


def test_imports_are_named_while_there_is_nothing_else() -> None:
    importing = replace(stacks(), main_samples=2, starting=38)
    assert where(window([], stacks=importing)) == [
        "38 of 40 main-thread samples (95%) are in imports"
    ]


def test_while_a_step_of_the_warm_up_lasts_its_place_is_shown() -> None:
    lines = stacks([(0.9, "evaluate (train.py:30)", None)])
    now = open_step("forward", 9.0, step_age_s=9.0, step_lasted_s=9.0)
    assert where(window(even(2, **WORK), stacks=lines, open_step=now)) == [
        "90% of main-thread samples are in evaluate (train.py:30)"
    ]


def test_ranks_that_make_no_first_step_are_named_by_where_they_stay() -> None:
    """One never comes to init_process_group, say: it was "no step seen yet" for good."""
    meet = ("<module> (train.py:13)", "_create_c10d_store (torch/distributed/rendezvous.py:199)")
    places = (
        StandingRank(0, meet, stays=True),
        StandingRank(1, ("<module> (train.py:9)", "load (data.py:3)"), stays=True),
        StandingRank(2, meet, stays=True),
        StandingRank(3, ("<module> (train.py:1)",)),
    )
    ranks_of = replace(job(exchange=None), places=places)
    found = verdict(window([], job=ranks_of)).finding
    assert (found.kind, found.severity) == ("warming-up", "info"), "it may only take long"
    assert found.headline == (
        "no step seen yet: rank 1 at load (data.py:3), ranks 0 and 2 at <module> (train.py:13)"
    )
    assert found.evidence[1].text == "rank 1: load (data.py:3) ← <module> (train.py:9)"
    waits = Pending(1, "broadcast", 8, inside=(0,), outside=(1,), ranks=places[:2])
    standing = replace(ranks_of, places=(), pending=waits)
    headline = verdict(window([], job=standing)).finding.headline
    assert "rank 0 at <module> (train.py:13)" in headline
    held = replace(ranks_of, stopped=(1,))
    assert verdict(window([], job=held)).finding.headline == "no step seen yet: rank 1 is stopped"
    moving = replace(ranks_of, places=places[3:])
    assert verdict(window([], job=moving)).finding.headline == "no step seen yet"


HIDDEN = even(60, data_ms=50, forward_ms=40, backward_ms=38, optimizer_ms=4)
"""50 ms of waiting in every 132, and the GPU never ran dry: so measured on an H200."""

HIDDEN_ON_GPU = {
    "forward_ms": 45, "backward_ms": 82, "optimizer_ms": 5, "wait_ms": 50, "lag_ms": 650,
}  # fmt: skip


def test_what_may_be_an_evaluation_before_the_training_counts_down() -> None:
    """`warming up (14/10)`, it read."""
    seen = window(even(30, forward_ms=40, inference=True, backwards=0, optimizer_steps=0))
    assert verdict(seen).finding.headline == "warming up: 75 more steps"
    now = open_step("backward", 5.4, step_age_s=6.1, step_lasted_s=6.1)
    found = verdict(replace(seen, open_step=now)).finding
    assert found.headline == (
        "warming up: 75 more steps; this one has lasted 6 s, now in backward"
    ), "the first that trains, in which cuDNN chooses its kernels"


def test_before_the_gpus_clock_has_been_read_nothing_is_claimed() -> None:
    engine = Engine()
    early = window(HIDDEN[:40], gpu_present=True, gpu_clocked=True, loaders=(loader(0),))
    assert engine.judge(early).finding.kind == "warming-up"
    reported = gpu_window(HIDDEN, HIDDEN_ON_GPU, loaders=(loader(0),), activity=activity(99))
    assert engine.judge(reported).finding.kind == "compute"
    cut = window(HIDDEN[:50], gpu_present=True, gpu_clocked=True, loaders=(loader(0),))
    assert engine.judge(cut).finding.kind == "compute"


def test_a_clock_that_stays_silent_does_not_hold_the_verdict_for_ever() -> None:
    many = even(120, data_ms=50, forward_ms=40, backward_ms=38, optimizer_ms=4)
    late = window(many, gpu_present=True, gpu_clocked=True, loaders=(loader(0),))
    assert Engine().judge(late).finding.kind == "input"


def paused(at: int, rows: int, wait_ms: float = 0.2) -> list[Step]:
    """Steps of 10 ms, after one of which something takes 600 ms."""
    return run(
        rows, lambda step: WORK | {"data_ms": wait_ms, "other_ms": 600 if step == at else 0.3}
    )


def test_after_one_pause_nothing_is_claimed_before_there_was_time_for_another() -> None:
    """Of 1.2 s an evaluation that no mark showed took 0.6: "nothing wrong" was 85 % sure."""
    early = verdict(window(paused(40, 60))).finding
    assert (early.kind, early.headline) == (
        "warming-up",
        "not sure yet: one step took 600 ms so far, which may come again",
    )
    assert verdict(window(paused(40, 600))).finding.kind == "healthy"
    engine = Engine()
    assert engine.judge(window(paused(40, 600))).finding.kind == "healthy"
    assert engine.judge(window(paused(620, 630))).finding.kind == "healthy", "and later it is one"


def test_a_cause_that_holds_more_than_one_pause_would_is_a_verdict() -> None:
    assert verdict(window(paused(40, 60, wait_ms=40))).finding.kind == "input"


def test_a_pause_that_is_under_way_counts_as_one() -> None:
    rows = even(40, **WORK)

    def seen(lasted_s: float) -> str:
        now = open_step("other", lasted_s, step_lasted_s=lasted_s)
        return verdict(window(rows, open_step=now)).finding.kind

    assert [seen(0.005), seen(0.02), seen(0.6)] == ["healthy", "healthy", "warming-up"]
