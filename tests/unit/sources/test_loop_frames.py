"""Whose loop trains, and which line is named where that is a library's."""

from collections.abc import Sequence

import pytest
from msgspec import structs

from gpuwatch.tui.model.loop_frames import (
    is_by_position,
    library_of_net,
    package_of_loop,
    with_solvers,
)
from gpuwatch.tui.model.observations import StackCount
from gpuwatch.tui.model.stack_shares import summarise
from gpuwatch.tui.session.stack_phases.classify import phase_of
from gpuwatch.tui.verdict.stack_samples import StackPhase

LEARN = (
    "<module> (train.py:8)",
    "SAC.learn (stable_baselines3/sac/sac.py:316)",
    "OffPolicyAlgorithm.learn (stable_baselines3/common/off_policy_algorithm.py:347)",
)
TRAIN = (*LEARN, "SAC.train (stable_baselines3/sac/sac.py:221)")
BACKWARD = ("Tensor.backward (torch/_tensor.py:623)", "backward (torch/autograd/__init__.py:395)")
UPDATE = ("Adam.step (torch/optim/adam.py:248)",)
COLLECTS = "collect_rollouts (stable_baselines3/common/off_policy_algorithm.py:560)"


def stacks(*frames: Sequence[str], line: str = "model.learn(10_000)") -> list[StackCount]:
    return [
        StackCount(role="main", pid=1, thread="t", frames=tuple(one), count=1, line=line)
        for one in frames
    ]


def package(*frames: Sequence[str]) -> str:
    return package_of_loop((stack, phase_of(stack)) for stack in stacks(*frames))


INSTALLED = "lib/python3.11/site-packages/pytorch_tabnet/abstract_model.py"


@pytest.mark.parametrize(
    ("loop", "found"),
    [
        (TRAIN, "stable_baselines3/"),
        (("<module> (a.py:1)", f"fit ({INSTALLED}:9)"), INSTALLED.rpartition("/")[0] + "/"),
        (("<module> (train.py:8)", "train (train.py:3)"), ""),
        (("<module> (train.py:8)",), ""),
        ((*TRAIN, "Mine.train_step (train.py:3)"), ""),
        (("<module> (a.py:1)", "fit (lightning/pytorch/loops/fit_loop.py:9)"), ""),
    ],
)
def test_a_loop_is_whose_function_calls_backward_and_update(
    loop: tuple[str, ...], found: str
) -> None:
    assert package((*loop, *BACKWARD), (*loop, *UPDATE), (*loop, "relu (x.py:1)")) == found
    assert package((*loop, *BACKWARD)) == "", "no update was seen"


@pytest.mark.parametrize(
    ("layers", "found"),
    [
        (("BertModel.forward (transformers/models/bert/modeling_bert.py:9)",), "transformers/"),
        (
            ("Encoder.forward (nets.py:9)", "VGG.forward (torchvision/models/vgg.py:9)"),
            "torchvision/",
        ),
        (("Sequential.forward (torch/nn/modules/container.py:9)",), ""),
        (("Encoder.forward (nets.py:9)", "Conv2d.forward (torch/nn/modules/conv.py:9)"), ""),
    ],
)
def test_a_net_is_that_librarys_whose_layers_it_has(layers: tuple[str, ...], found: str) -> None:
    called = "Module._call_impl (torch/nn/modules/module.py:9)"
    way = ("<module> (train.py:8)", "fit (lightning/loop.py:9)", called, *layers)
    assert library_of_net(way, way.index(called)) == found


def test_a_library_that_only_calls_backward_is_no_loop() -> None:
    loop = ("<module> (train.py:8)", "train (train.py:3)")
    passed = "Accelerator.backward (accelerate/accelerator.py:9)"
    stepped = "AcceleratedOptimizer.step (accelerate/optimizer.py:9)"
    assert package((*loop, passed, *BACKWARD), (*loop, stepped, *UPDATE)) == ""


def test_a_line_that_only_starts_the_loop_is_not_named() -> None:
    """Stable-Baselines3: "do it less often: <module> (train.py:8)", which is `model.learn(…)`."""
    acts = (*LEARN, COLLECTS, "Mine.reward (env.py:4)")
    beside = (*TRAIN, "log_prob (torch/distributions/normal.py:80)")
    found = summarise(stacks((*TRAIN, *BACKWARD), (*TRAIN, *UPDATE), beside, TRAIN, acts), phase_of)
    seen = {place.frame: place for place in found.main}
    assert seen[beside[-1]].caller == TRAIN[-1]
    assert seen[beside[-1]].line == "", "that of the user's is not what takes the time"
    assert seen[TRAIN[-1]].caller is None
    assert seen[acts[-1]].frame == acts[-1], "the user's own, below it"
    assert seen[acts[-1]].line
    assert seen[acts[-1]].evaluation == COLLECTS
    assert seen[acts[-1]].acts is True
    assert seen[TRAIN[-1]].acts is None


def test_below_a_librarys_environment_the_users_own_code_acts() -> None:
    """Only a method of one's own with the name `step` did, and any such method."""
    mine = ("<module> (dqn.py:8)", "evaluate (dqn.py:3)")
    wrapped = (*mine, "TimeLimit.step (gymnasium/wrappers/common.py:9)", "Mine.reward (world.py:4)")
    found = summarise(stacks(wrapped, (*mine, "Meter.reset (meter.py:4)")), phase_of)
    acts = {place.frame: place.acts for place in found.main}
    assert acts == {"Mine.reward (world.py:4)": True, "Meter.reset (meter.py:4)": None}


def test_a_line_of_ones_own_is_named_where_the_loop_is() -> None:
    mine = ("<module> (train.py:8)", "train (train.py:3)")
    beside = (*mine, "log (wandb/run.py:80)")
    found = summarise(stacks((*mine, *BACKWARD), (*mine, *UPDATE), beside), phase_of)
    seen = {place.frame: place for place in found.main}
    assert seen[beside[-1]].caller == mine[-1]


SOLVES = ("<module> (ode.py:107)", "odeint (torchdiffeq/_impl/odeint.py:80)")
STEPS = (*SOLVES, "_runge_kutta_step (torchdiffeq/_impl/rk_common.py:77)")
NET = (*STEPS, "Module._call_impl (torch/nn/modules/module.py:1)", "ODEFunc.forward (ode.py:69)")
AFTER = ("<module> (ode.py:109)",)
SUBTRACTS = (*STEPS, "Tensor.__rsub__ (torch/_tensor.py:9)")


def phases(*frames: Sequence[str]) -> dict[StackPhase | None, float]:
    found = dict[StackPhase | None, float]()
    for place in summarise(stacks(*frames, line="y = odeint(net, y0, t)"), phase_of).main:
        found[place.phase] = found.get(place.phase, 0.0) + place.share
    return found


def test_what_a_solver_computes_beside_the_net_is_its_forward() -> None:
    """torchdiffeq's ode_demo on an H200: "68 % of each step is Python that launches nothing"."""
    found = phases(NET, SUBTRACTS, SUBTRACTS, (*AFTER, *BACKWARD))
    assert found == {"forward": 0.75, "backward": 0.25}


def test_a_solver_that_calls_no_net_is_none() -> None:
    assert phases(STEPS, STEPS, (*AFTER, *BACKWARD), (*AFTER, *UPDATE))["other"] == 0.5


def test_a_trainer_is_no_solver() -> None:
    """Its line leads to the backward too: what it does between the phases is no forward."""
    fit = ("<module> (train.py:8)", "Trainer.fit (anylib/trainer.py:9)")
    net = (*fit, "Module._call_impl (torch/nn/modules/module.py:1)", "Net.forward (train.py:3)")
    logs = (*fit, "Logger.log (anylib/logger.py:3)")
    assert phases(net, logs, (*fit, *BACKWARD), (*fit, *UPDATE))["other"] == 0.25


def test_what_a_solver_computes_where_a_net_does_not_learn_is_evaluation() -> None:
    def evaluated(stack: StackCount) -> StackPhase:
        found = phase_of(stack)
        return "evaluation" if "_call_impl" in "".join(stack.frames) else found

    line = StackCount(role="main", pid=1, thread="t", frames=STEPS, count=1, computes=True)
    every = [*stacks(NET, SUBTRACTS, (*AFTER, *BACKWARD)), line]
    found = with_solvers(every, evaluated)
    assert [found(one) for one in every] == ["evaluation", "evaluation", "backward", "evaluation"]


CALL = "Module._call_impl (torch/nn/modules/module.py:1787)"


@pytest.mark.parametrize(
    ("frames", "by_position"),
    [
        (("LSTM.forward (torch/nn/modules/rnn.py:1169)",), True),
        (("forward (torch/nn/modules/rnn.py:1169)",), True),
        (("Conv1d._conv_forward (torch/nn/modules/conv.py:371)",), True),
        (("Conv2d._conv_forward (torch/nn/modules/conv.py:548)",), False),
        (
            ("MultiheadAttention.forward (torch/nn/modules/activation.py:9)", "linear (x.py:1)"),
            True,
        ),
        (
            (
                "TransformerEncoderLayer._ff_block (torch/nn/modules/transformer.py:960)",
                CALL,
                "Linear.forward (torch/nn/modules/linear.py:134)",
            ),
            True,
        ),
        (
            (
                "BertLayer.forward (transformers/models/bert/modeling_bert.py:9)",
                CALL,
                "Linear.forward (torch/nn/modules/linear.py:134)",
            ),
            True,
        ),
        (
            ("Tower.forward (rec.py:9)", CALL, "Linear.forward (torch/nn/modules/linear.py:9)"),
            False,
        ),
        (("Tower.forward (rec.py:9)", CALL, "embedding (torch/nn/functional.py:2542)"), False),
        ((CALL, "Net.forward (a.py:9)", CALL, "MultiHeadAttention.forward (a.py:9)"), True),
        ((CALL, "Net.forward (a.py:9)", CALL, "PositionwiseFeedForward.forward (a.py:9)"), True),
        (("SelfAttentionTrainer.fit (a.py:9)", CALL, "Attention.forward (a.py:9)", CALL), False),
        ((CALL, "Rec.forward (rec.py:9)", CALL, "AttentionPooling.forward (rec.py:9)"), False),
    ],
)
def test_layers_that_compute_at_each_position(frames: tuple[str, ...], by_position: bool) -> None:
    assert is_by_position(frames) is by_position
    whole = frames if CALL in frames else (CALL, *frames)
    (place,) = summarise(stacks(whole), phase_of).main
    assert place.by_position is by_position


def test_a_librarys_python_beside_a_frozen_net_is_no_evaluation() -> None:
    """sentence-transformers: `encode` tokenizes for 46 %, and its encoder takes 8 %: "evaluation
    takes 54 %, evaluate less often", of what each step trains on."""
    encode = (
        "<module> (train.py:30)",
        "decorate_context (torch/utils/_contextlib.py:120)",
        "SentenceTransformer.encode (sentence_transformers/SentenceTransformer.py:600)",
    )
    tokenizes = (*encode, "_tokenize (transformers/tokenization_utils.py:9)")
    net = (*encode, "Module._call_impl (torch/nn/modules/module.py:1)", "relu (torch/nn/fun.py:1)")
    found = phases(tokenizes, tokenizes, net, (*AFTER, *BACKWARD))
    assert found == {"other": 0.5, "evaluation": 0.25, "backward": 0.25}


KERAS = "keras/src/backend/torch/trainer.py"
CATCHES = "filter_traceback.<locals>.error_handler (keras/src/utils/traceback_utils.py:113)"


def test_what_keras_predicts_between_its_fits_is_named_by_the_users_line() -> None:
    """A DQN's targets: "evaluate less often: filter_traceback (keras/src/utils/…:113)"."""
    mine = ("<module> (dqn.py:80)", "replay (dqn.py:41)")
    predict = (*mine, CATCHES, f"TorchTrainer.predict ({KERAS}:640)", "matmul (keras/numpy.py:1)")
    fit = (mine[0], "replay (dqn.py:42)", CATCHES, f"TorchTrainer.fit ({KERAS}:400)")
    found = summarise(stacks(predict, (*fit, *BACKWARD), (*fit, *UPDATE)), phase_of)
    seen = {place.phase: place for place in found.main}
    assert seen["forward"].caller == mine[1]
    assert seen["backward"].caller == fit[-1], "the loop is Keras's there"


def test_what_keras_evaluates_is_named_without_its_wrapper() -> None:
    fit = ("<module> (mlp.py:80)", CATCHES, f"TorchTrainer.fit ({KERAS}:400)")
    tests = (*fit, CATCHES, f"TorchTrainer.evaluate ({KERAS}:500)", "matmul (keras/numpy.py:1)")
    found = summarise(stacks(tests, (*fit, *BACKWARD), (*fit, *UPDATE)), phase_of)
    (evaluated,) = [place for place in found.main if place.phase == "evaluation"]
    assert evaluated.evaluation == f"TorchTrainer.evaluate ({KERAS}:500)"


def test_what_draws_pictures_of_its_answers_is_named_and_not_a_layer() -> None:
    """SVG-LP: "evaluate less often: dcgan_upconv.forward (models/dcgan_64.py:29)"."""
    loop, plots = "<module> (train.py:300)", "plot (train.py:175)"
    net = ("Module._call_impl (torch/nn/modules/module.py:1789)", "Up.forward (dcgan.py:29)")
    answers = structs.replace(stacks((loop, plots, *net))[0], evaluates=True)
    saves = (loop, "plot (train.py:218)", "save (PIL/Image.py:2712)")
    trained = stacks(saves, (loop, *BACKWARD), (loop, *UPDATE))
    found = summarise([answers, *trained], phase_of)
    (evaluated,) = [place for place in found.main if place.phase == "evaluation"]
    assert evaluated.evaluation == plots


def test_what_a_callback_evaluates_is_named_and_not_what_calls_all_of_them() -> None:
    """A running accuracy asked the net again, and "Trainer.emit" was to be called less often."""
    fit, emit = "Trainer.fit (trainer.py:60)", "Trainer.emit (trainer.py:26)"
    asks = "TrainAccuracy.on_batch_end (callbacks.py:40)"
    net = ("Module._call_impl (torch/nn/modules/module.py:1789)", "GIN.forward (gin.py:29)")
    answers = structs.replace(stacks((fit, emit, asks, *net))[0], evaluates=True)
    trained = stacks((fit, *BACKWARD), (fit, *UPDATE))
    found = summarise([answers, *trained], phase_of)
    (evaluated,) = [place for place in found.main if place.phase == "evaluation"]
    assert evaluated.evaluation == asks
