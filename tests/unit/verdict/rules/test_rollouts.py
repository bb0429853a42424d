"""Rollouts, and texts that are generated to be trained on: what no mark shows."""

from dataclasses import replace

import pytest

from gpuwatch.tui.verdict.code_origin import is_users
from gpuwatch.tui.verdict.findings import Finding
from gpuwatch.tui.verdict.forecast.interval import forecast_of
from gpuwatch.tui.verdict.rules.evaluation import evaluation
from gpuwatch.tui.verdict.stack_samples import FrameShare, Stacks
from tests.unit.verdict.on_gpu import activity, gpu_window
from tests.unit.verdict.rules.test_evaluation import unmarked
from tests.unit.verdict.windows import even


def evaluating(*places: FrameShare, within: str = "", share: float = 0.4) -> Finding:
    """What is said of places in a function that evaluates."""
    every = tuple(replace(one, phase="evaluation", evaluation=within) for one in places)
    found = evaluation(replace(unmarked(share, ""), stacks=Stacks(200, every, 0, (), None)))
    assert found is not None
    return found


WORLD = FrameShare(0.59, "linear (torch/nn/functional.py:9)", "World.step (ppo.py:30)")


def test_an_environment_that_steps_is_a_rollouts() -> None:
    """A PPO loop was advised to evaluate less often."""
    assert evaluating(replace(WORLD, acts=True)).sub == "rollout"


@pytest.mark.parametrize(
    ("within", "acts", "sub"),
    [
        ("main.<locals>.rollout (ppo.py:86)", None, "rollout"),
        ("main.<locals>.rollout (flow.py:86)", False, None),
        ("evaluate (ppo.py:86)", None, None),
        ("evaluate_episode (few_shot.py:86)", None, None),
    ],
)
def test_a_recording_that_knows_no_source_needs_two_names(
    within: str, acts: bool | None, sub: str | None
) -> None:
    """A method `step` within a `rollout`. Of one alone there are solvers, decoders and meters."""
    assert evaluating(replace(WORLD, acts=acts), within=within).sub == sub


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


def test_a_rollout_that_asks_its_net_for_one_state_asks_for_many_first() -> None:
    """A forward for each leaf of each of twelve games: 2.2x by one for all."""
    net = FrameShare(0.4, "Linear.forward (torch/nn/modules/linear.py:9)", None, in_net=True)
    asks = "Actors.predict (play.py:6)"
    world = replace(WORLD, share=0.1, acts=True)
    one = evaluating(replace(net, one_row=asks), world)
    assert one.advice[0] == (
        "ask the net for many states in one forward, under torch.inference_mode(): "
        f"{asks} asks for one at a time"
    )
    assert evaluating(net, world).advice[0].startswith("act for more environments")
    mostly = evaluating(replace(net, share=0.1, one_row=asks), net, world)
    assert mostly.advice[0].startswith("act for more environments")


TOKEN = "ids = torch.multinomial(probs, 1)"


@pytest.mark.parametrize(
    ("busy", "function", "line", "world", "headline", "advice"),
    [
        (15.0, "generate", TOKEN, 0.01, "generation takes", "fewer launches a token: a static"),
        (97.0, "generate", TOKEN, 0.0, "generation takes", "generate more at once"),
        (15.0, "generate", TOKEN, 0.3, "rollouts take", "act for more environments"),
        (15.0, "generate_self_play", TOKEN, 0.0, "rollouts take", "act for more environments"),
        (15.0, "generate", "x = x - noise * sigma", 0.0, "generation takes", "generate more"),
    ],
    ids=["waits for launches", "a busy GPU", "beside an environment", "moves", "no tokens"],
)
def test_a_net_that_generates_texts_waits_for_its_launches(
    busy: float, function: str, line: str, world: float, headline: str, advice: str
) -> None:
    """GRPO, 64 tokens at a time: "act for many environments in one batch", and graphs gave 3.2x."""
    token = FrameShare(0.75, "Attention.forward (gpt.py:9)", None, phase="evaluation", in_net=True)
    own = FrameShare(0.05, f"{function} (grpo.py:241)", None, line, phase="evaluation")
    apart = f"{function} (grpo.py:235)"
    places = [replace(one, evaluation=apart, feeds=True) for one in (token, own)]
    if world:
        places.append(replace(WORLD, share=world, phase="evaluation", acts=True))
    rows = {"forward_ms": 400, "backward_ms": 12, "optimizer_ms": 2}
    seen = gpu_window(
        even(60, **rows), rows, activity=activity(busy),
        stacks=Stacks(95, tuple(places), 0, (), None),
    )  # fmt: skip
    found = evaluation(seen)
    assert found is not None
    assert found.sub == "rollout"
    assert found.headline.startswith(headline)
    assert found.advice[0].startswith(advice)
    launches = advice.startswith("fewer launches")
    forecast = forecast_of(found)
    assert forecast is not None
    assert (forecast.kind == "estimate") is launches
    if launches:
        assert forecast.speedup == pytest.approx(1 / (1 - 0.8 * 0.85), rel=0.1)


@pytest.mark.parametrize("busy", [None, 15.0, 97.0])
@pytest.mark.parametrize(
    ("function", "line"),
    [
        ("generate", TOKEN),
        ("generate_text", "ids = torch.cat((ids, nxt), dim=1)"),
        ("Diffusion.generate", "x = x - noise * sigma"),
        ("VAE.sample", "return self.decode(z)"),
        ("Generator.generate_batch", "return self.net(z)"),
    ],
)
def test_what_is_drawn_for_a_look_is_no_rollout(
    function: str, line: str, busy: float | None
) -> None:
    """A small GPT that prints a sample every 20 steps: "rollouts take 54%: act for more
    environments in one batch"."""
    apart = f"{function} (train.py:41)"
    net = FrameShare(0.4, "Linear.forward (torch/nn/modules/linear.py:9)", apart, in_net=True)
    own = FrameShare(0.05, f"{function} (train.py:44)", None, line)
    if busy is None:
        found = evaluating(net, own, within=apart)
    else:
        rows = {"forward_ms": 400, "backward_ms": 12, "optimizer_ms": 2}
        places = tuple(replace(one, phase="evaluation", evaluation=apart) for one in (net, own))
        stacks = Stacks(200, places, 0, (), None)
        seen = evaluation(
            gpu_window(even(60, **rows), rows, activity=activity(busy), stacks=stacks)
        )
        assert seen is not None
        found = seen
    assert found.sub is None
    assert found.headline.startswith("evaluation takes")
    assert found.advice[0] == f"sample less often: {apart}"


@pytest.mark.parametrize(
    "function",
    [
        *("collect_predictions", "collect_features", "evaluate_episode", "predict_trajectory"),
        *("rollout_error", "collect_rollouts"),
    ],
)
def test_a_name_alone_is_no_rollout(function: str) -> None:
    """A few-shot episode, a forecast of motions, the error of a neural operator's rollout: "act for
    more environments"."""
    apart = f"{function} (train.py:80)"
    net = FrameShare(0.4, "linear (torch/nn/functional.py:9)", apart)
    found = evaluating(net, within=apart)
    assert (found.sub, found.advice[0]) == (None, f"evaluate less often: {apart}")


@pytest.mark.parametrize("method", ["NoiseScheduler.step", "Decoder.step", "Meter.reset"])
def test_any_method_step_is_no_environment(method: str) -> None:
    net = FrameShare(0.35, "linear (torch/nn/functional.py:9)", "evaluate (t.py:9)")
    own = FrameShare(0.06, f"{method} (t.py:30)", None, "x = a * x - b * noise")
    assert evaluating(net, own, within="evaluate (t.py:9)").sub is None


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
