"""Rollouts, and texts that are generated to be trained on: what no mark shows."""

from dataclasses import replace

import pytest

from gpuwatch.tui.verdict.code_origin import is_users
from gpuwatch.tui.verdict.forecast.interval import forecast_of
from gpuwatch.tui.verdict.rules.evaluation import evaluation
from gpuwatch.tui.verdict.stack_samples import FrameShare, Stacks
from tests.unit.verdict.on_gpu import activity, gpu_window
from tests.unit.verdict.rules.test_evaluation import unmarked
from tests.unit.verdict.windows import even


def test_an_environment_that_steps_is_a_rollouts() -> None:
    """A PPO loop was advised to evaluate less often."""
    found = evaluation(unmarked(0.59, "World.step (ppo.py:30)"))
    assert found is not None
    assert found.sub == "rollout"


def test_a_rollout_is_one_though_its_net_takes_most_of_it() -> None:
    """PPO in one script: the net that acts has no function of its own, its environments have."""
    net = FrameShare(0.3, "linear (torch/nn/functional.py:9)", "<module> (ppo.py:196)")
    world = FrameShare(0.06, "CartPoleEnv.step (gym/envs/cartpole.py:120)", "<module> (ppo.py:202)")
    places = tuple(replace(one, phase="evaluation") for one in (net, world))
    seen = replace(unmarked(0.3, ""), stacks=Stacks(200, places, 0, (), None))
    found = evaluation(seen)
    assert found is not None
    assert (found.sub, found.headline) == ("rollout", "rollouts take 36% of the time")


@pytest.mark.parametrize(
    "function",
    [
        "collect_rollouts",
        "ShmemVecEnv.step_wait",
        "MCTSPlayer.get_action",
        "TrainPipeline.collect_selfplay_data",
    ],
)
def test_rollouts_are_called_rollouts(function: str) -> None:
    """AlphaZero's self-play was to be done "less often"."""
    found = evaluation(unmarked(0.59, f"{function} (ppo.py:30)"))
    assert found is not None
    assert (found.sub, found.headline) == ("rollout", "rollouts take 59% of the time")


@pytest.mark.parametrize(
    ("busy", "function", "line", "world", "headline"),
    [
        (15.0, "generate", "ids = torch.multinomial(probs, 1)", 0.01, "generation takes"),
        (97.0, "generate", "ids = torch.multinomial(probs, 1)", 0.0, "rollouts take"),
        (15.0, "generate", "ids = torch.multinomial(probs, 1)", 0.3, "rollouts"),
        (15.0, "generate_self_play", "move = torch.multinomial(probs, 1)", 0.0, "rollouts"),
        (15.0, "generate", "x = x - noise * sigma", 0.0, "rollouts"),
        (15.0, "generate_images", "x = x - noise * sigma", 0.0, "evaluation takes"),
    ],
    ids=[
        "waits for launches",
        "a busy GPU",
        "beside an environment",
        "moves",
        "no tokens",
        "pictures",
    ],
)
def test_a_net_that_generates_texts_waits_for_its_launches(
    busy: float, function: str, line: str, world: float, headline: str
) -> None:
    """GRPO, 64 tokens at a time: "act for many environments in one batch", and graphs gave 3.2x."""
    token = FrameShare(0.75, "Attention.forward (gpt.py:9)", None, phase="evaluation", in_net=True)
    own = FrameShare(0.05, f"{function} (grpo.py:241)", None, line, phase="evaluation")
    places = [replace(one, evaluation=f"{function} (grpo.py:235)") for one in (token, own)]
    if world:
        places.append(FrameShare(world, "World.step (grpo.py:30)", None, phase="evaluation"))
    rows = {"forward_ms": 400, "backward_ms": 12, "optimizer_ms": 2}
    seen = gpu_window(
        even(60, **rows), rows, activity=activity(busy),
        stacks=Stacks(95, tuple(places), 0, (), None),
    )  # fmt: skip
    found = evaluation(seen)
    assert found is not None
    assert found.sub == (None if headline.startswith("evaluation") else "rollout")
    assert found.headline.startswith(headline)
    launches = headline == "generation takes"
    assert ("a static cache" in found.advice[0]) is launches
    forecast = forecast_of(found)
    assert forecast is not None
    assert (forecast.kind == "estimate") is launches
    if launches:
        assert forecast.speedup == pytest.approx(1 / (1 - 0.8 * 0.85), rel=0.1)


def test_what_a_library_calls_collecting_is_no_rollout() -> None:
    """PyTorch Geometric's convolutions collect what they send: a test after each epoch was
    "rollouts take 46 %: act for more environments in one batch"."""
    generated = "torch_geometric.nn.conv.gcn_conv_GCNConv_propagate_zl4aqega.py"
    assert not is_users(f"{generated}:96")
    assert is_users("clip.py:9")
    assert is_users("train.distributed.py:9")
    sends = FrameShare(0.3, f"collect ({generated}:96)", "test (link_pred.py:78)")
    places = (replace(sends, phase="evaluation", evaluation="test (link_pred.py:78)"),)
    found = evaluation(replace(unmarked(0.3, ""), stacks=Stacks(200, places, 0, (), None)))
    assert found is not None
    assert found.sub is None
    assert found.advice[0] == "evaluate less often: test (link_pred.py:78)"
