"""Stacks that evaluate, act in an environment, or only sound like it."""

import pytest

from gpuwatch.tui.session.stack_phases.classify import Classified, classify
from gpuwatch.tui.verdict.stack_samples import StackPhase
from tests.unit.stack_phases.real_stacks import (
    FETCH,
    FORWARD,
    HF,
    LIGHTNING,
    TRAIN,
    WAIT,
    phase,
)


def test_a_net_that_runs_without_gradients_is_evaluated() -> None:
    """`@torch.no_grad()` leaves a frame of its own, whatever the function is called."""
    decorated = "decorate_context (torch/utils/_contextlib.py:120)"
    assert classify((*TRAIN, decorated, "check (train.py:30)", *FORWARD), "").evaluates
    assert not classify((*TRAIN, decorated, "update_average (train.py:30)"), "").evaluates
    assert not classify((*TRAIN, "check (train.py:30)", *FORWARD), "").evaluates
    clipped = "_clip_grads_with_norm_ (torch/nn/utils/clip_grad.py:165)"
    assert not classify((*TRAIN, decorated, clipped), "").evaluates


@pytest.mark.parametrize(
    "frames",
    [
        (*TRAIN, "validate (train.py:30)", *WAIT),
        (*TRAIN, "evaluate (train.py:30)", *FORWARD),
        (*TRAIN, "accuracy (train.py:30)", *FORWARD),
        (*TRAIN, "estimate_loss (train.py:30)"),
        (*TRAIN, "eval_one_epoch (train.py:30)"),
        (*TRAIN, "Trainer._validate_model (train.py:30)"),
        (*TRAIN, "run_val (train.py:30)"),
        (*TRAIN, "eval_ddp (train.py:30)", *FORWARD),
        (*TRAIN, "epoch_val (train.py:30)", *WAIT),
        (*LIGHTNING, "_EvaluationLoop.run (pytorch_lightning/loops/evaluation_loop.py:145)", *WAIT),
        (*HF, "Trainer.evaluation_loop (transformers/trainer.py:2930)", *FORWARD),
    ],
)
def test_evaluation_beats_what_it_consists_of(frames: tuple[str, ...]) -> None:
    assert classify(frames, "").evaluates


@pytest.mark.parametrize(
    "frames",
    [
        (*TRAIN, "accuracy (metrics.py:4)"),
        (*TRAIN, *FETCH, "evaluate (formula.py:8)"),
        (*TRAIN, *FORWARD),
        (*TRAIN, "eval_sh (sh_utils.py:57)"),
        (*TRAIN, "validate_shapes (nets.py:5)"),
        (*TRAIN, "clip_val (nets.py:5)"),
        (*TRAIN, "filter_valid (losses.py:12)", *WAIT),
        (*TRAIN, "Policy.evaluate_actions (model.py:70)", *FORWARD),
    ],
)
def test_what_only_sounds_like_an_evaluation(frames: tuple[str, ...]) -> None:
    assert not classify(frames, "").evaluates


def test_what_trains_and_evaluates_is_no_evaluation() -> None:
    """A whole program may run in `train_and_evaluate`; what learns does not evaluate."""
    net = "Module._call_impl (torch/nn/modules/module.py:1779)"
    assert phase("main (a.py:1)", "train_and_evaluate (a.py:5)", net) == "forward"
    assert phase("main (a.py:1)", "evaluate (a.py:5)", net) == "evaluation"
    learns = "_engine_run_backward (torch/autograd/graph.py:869)"
    assert phase("validate_all (a.py:5)", learns) == "backward"


def test_rollouts_are_evaluation_with_their_environment() -> None:
    net, step = "Module._call_impl (torch/nn/modules/module.py:1779)", "step (envs.py:9)"
    for name, without_net in (
        ("rollout", "evaluation"),
        ("collect_rollouts", "evaluation"),
        ("generate", "other"),
        ("select_action", "evaluation"),
        ("get_action", "other"),
        ("start_self_play", "evaluation"),
        ("collect_selfplay_data", "evaluation"),
    ):
        assert phase(f"{name} (ppo.py:5)", net) == "evaluation"
        assert phase(f"{name} (ppo.py:5)", step) == without_net


def test_a_net_that_by_its_source_learns_nothing_is_evaluated() -> None:
    net = "Module._call_impl (torch/nn/modules/module.py:1779)"
    assert phase("main (a.py:9)", net, evaluates=True) == "evaluation"
    assert phase("main (a.py:9)", net) == "forward"
    learns = "_engine_run_backward (torch/autograd/graph.py:869)"
    assert phase("main (a.py:9)", learns, evaluates=True) == "backward"
    # A force, or a field, is a gradient that nothing learns from.
    handed_out = ("grad (torch/autograd/__init__.py:594)", learns)
    assert phase("main (a.py:9)", *handed_out, evaluates=True) == "evaluation"
    assert phase("main (a.py:9)", *handed_out) == "backward"


@pytest.mark.parametrize(
    ("frames", "phase", "evaluates"),
    [
        ((*TRAIN, "TimeLimit.step (gym/wrappers/time_limit.py:17)"), "other", True),
        ((*TRAIN, "select_action (actor_critic.py:82)"), "other", True),
        (
            (*TRAIN, "ReplayBuffer._get_samples (stable_baselines3/common/buffers.py:309)"),
            "data",
            False,
        ),
    ],
)
def test_a_policy_that_acts_and_a_buffer_that_is_drawn_from(
    frames: tuple[str, ...], phase: StackPhase, evaluates: bool
) -> None:
    found = classify(frames, "")
    assert (found.phase, found.evaluates) == (phase, evaluates)


def test_keras_predict_is_an_evaluation_only_where_the_users_function_is() -> None:
    """A DQN's targets come of it: half of each step was "evaluate less often"."""
    predict = (
        "TorchTrainer.predict (keras/src/backend/torch/trainer.py:640)",
        "EpochIterator.__init__ (keras/src/trainers/epoch_iterator.py:90)",
    )

    def found(function: str, unlearning: bool = False) -> Classified:
        return classify((f"{function} (dqn.py:41)", *predict), "q = net.predict(x)", unlearning)

    assert found("replay") == Classified("forward", False, False)
    assert found("replay", unlearning=True).evaluates
    assert found("validate").evaluates
    assert found("test").evaluates
