"""What a stack of the main thread shows."""

import pytest

from gpuwatch.tui.model.frames import worth_naming
from gpuwatch.tui.model.observations import StackCount
from gpuwatch.tui.session.stack_phases.classify import Classified, classify, phase_of
from gpuwatch.tui.verdict.stack_samples import StackPhase
from tests.unit.stack_phases.real_stacks import (
    BACKWARD,
    CALL,
    COMPILE,
    FETCH,
    FORWARD,
    IMPORT,
    SAVE,
    STEP,
    TRAIN,
    WAIT,
)


def phase(*frames: str, line: str = "", evaluates: bool = False) -> str:
    stack = StackCount(
        role="main", pid=1, thread="", frames=frames, count=1, line=line, evaluates=evaluates
    )
    return phase_of(stack)


LIGHTNING = (
    "<module> (train.py:60)",
    "Trainer.fit (pytorch_lightning/trainer/trainer.py:560)",
    "_FitLoop.advance (pytorch_lightning/loops/fit_loop.py:455)",
    "_TrainingEpochLoop.advance (pytorch_lightning/loops/training_epoch_loop.py:320)",
)
AUTOMATIC = (
    *LIGHTNING,
    "_AutomaticOptimization.run (pytorch_lightning/loops/optimization/automatic.py:192)",
    "LightningModule.optimizer_step (pytorch_lightning/core/module.py:1306)",
    "LightningOptimizer.step (pytorch_lightning/core/optimizer.py:153)",
    "Strategy.optimizer_step (pytorch_lightning/strategies/strategy.py:238)",
    "Precision.optimizer_step (pytorch_lightning/plugins/precision/precision.py:123)",
    *STEP,
    "Precision._wrap_closure (pytorch_lightning/plugins/precision/precision.py:109)",
    "Closure.__call__ (pytorch_lightning/loops/optimization/automatic.py:146)",
)
HF = (
    "<module> (train.py:60)",
    "Trainer.train (transformers/trainer.py:1500)",
    "Trainer._inner_training_loop (transformers/trainer.py:1650)",
)


@pytest.mark.parametrize(
    ("frames", "phase"),
    [
        ((*TRAIN, *WAIT), "data"),
        ((*TRAIN, *FETCH, "Photos.__getitem__ (photos.py:20)"), "data"),
        ((*TRAIN, *FORWARD), "forward"),
        ((*TRAIN, "cross_entropy (torch/nn/functional.py:3494)"), "forward"),
        ((*TRAIN, *BACKWARD), "backward"),
        ((*TRAIN, *STEP, "_single_tensor_adam (torch/optim/adam.py:544)"), "optimizer"),
        ((*TRAIN, "Optimizer.zero_grad (torch/optim/optimizer.py:1024)"), "optimizer"),
        ((*TRAIN, "clip_grad_norm_ (torch/nn/utils/clip_grad.py:200)"), "optimizer"),
        ((*TRAIN, *SAVE), "checkpoint"),
        ((*TRAIN, "save_checkpoint (train.py:20)", "fsync (os.py:1)"), "checkpoint"),
        ((*TRAIN, "synchronize (torch/cuda/__init__.py:1040)"), "synchronisation"),
        ((*TRAIN, "log (train.py:12)", "dumps (json/__init__.py:231)"), "other"),
        ((*TRAIN, *IMPORT), "starting"),
        ((*TRAIN, *CALL, *COMPILE), "compile"),
    ],
)
def test_a_plain_loop(frames: tuple[str, ...], phase: str) -> None:
    reported = classify(frames, "")
    assert (reported.phase, reported.evaluates) == (phase, False)


@pytest.mark.parametrize(
    ("line", "phase"),
    [("for batch in tqdm(loader):", "data"), ("for images, labels in bar:", "data"), ("", "other")],
)
def test_a_bar_around_a_loader_is_the_line_that_takes_from_it(line: str, phase: str) -> None:
    """18 % of a CLIP's time, in which batches of 18 MiB are given back, were "Python that launches
    nothing"."""
    passed_on = "tqdm.__iter__ (tqdm/std.py:1186)"
    assert classify((*TRAIN, passed_on), line).phase == phase
    assert worth_naming((*TRAIN, passed_on)) == TRAIN[-1]
    assert classify((*TRAIN, passed_on, "tqdm.update (tqdm/std.py:9)"), line).phase == "other"


@pytest.mark.parametrize(
    ("frames", "phase"),
    [
        (AUTOMATIC, "optimizer"),
        ((*AUTOMATIC, "Net.training_step (train.py:30)", *FORWARD), "forward"),
        ((*AUTOMATIC, *BACKWARD), "backward"),
        (
            (*TRAIN, *BACKWARD, "recompute_fn (torch/utils/checkpoint.py:1100)", *FORWARD),
            "backward",
        ),
        ((*TRAIN, *FETCH, "Photos.__getitem__ (photos.py:20)", *CALL), "data"),
        ((*TRAIN, *FORWARD, "grad (torch/autograd/__init__.py:503)"), "backward"),
        ((*TRAIN, *STEP, *IMPORT), "starting"),
        ((*TRAIN, *BACKWARD, *COMPILE), "compile"),
    ],
)
def test_what_is_nested(frames: tuple[str, ...], phase: str) -> None:
    assert classify(frames, "").phase == phase


@pytest.mark.parametrize(
    ("frames", "phase"),
    [
        (
            (
                *LIGHTNING,
                "_PrefetchDataFetcher.__next__ (pytorch_lightning/loops/fetchers.py:134)",
                *WAIT,
            ),
            "data",
        ),
        (
            (
                *LIGHTNING,
                "Strategy.training_step (pytorch_lightning/strategies/strategy.py:391)",
                "Net.training_step (train.py:30)",
                *FORWARD,
            ),
            "forward",
        ),
        (
            (
                *AUTOMATIC,
                "Strategy.training_step (pytorch_lightning/strategies/strategy.py:391)",
                "Net.training_step (train.py:30)",
                "Net.count_words (train.py:40)",
            ),
            "other",
        ),
        (
            (
                *AUTOMATIC,
                "Strategy.training_step (pytorch_lightning/strategies/strategy.py:391)",
                "Net.training_step (train.py:30)",
                *STEP,
            ),
            "optimizer",
        ),
        (
            (
                "_FitLoop.advance (lightning/pytorch/loops/fit_loop.py:455)",
                "Strategy.backward (lightning/pytorch/strategies/strategy.py:213)",
            ),
            "backward",
        ),
        (("train (train.py:9)", "Fabric.backward (lightning/fabric/fabric.py:455)"), "backward"),
        (
            (
                "train (train.py:9)",
                "_FabricDataLoader.__iter__ (lightning_fabric/wrappers.py:325)",
                *WAIT,
            ),
            "data",
        ),
        (
            (
                "train (train.py:9)",
                "DataLoaderShard.__iter__ (accelerate/data_loader.py:590)",
                "send_to_device (accelerate/utils/operations.py:180)",
                "BatchEncoding.to (transformers/tokenization_utils_base.py:777)",
            ),
            "forward",  # 36 % of the samples where batches took 3 % of the time (H200)
        ),
        (
            (
                *LIGHTNING,
                "Strategy.batch_to_device (pytorch_lightning/strategies/strategy.py:278)",
                "move_data_to_device.<locals>.batch_to (lightning_fabric/utilities/apply.py:104)",
            ),
            "forward",
        ),
        (
            ("train (train.py:9)", "Accelerator.backward (accelerate/accelerator.py:2850)"),
            "backward",
        ),
        (
            ("train (train.py:9)", "Accelerator.save_state (accelerate/accelerator.py:3700)"),
            "checkpoint",
        ),
        ((*HF, "Trainer.get_batch_samples (transformers/trainer.py:2290)"), "data"),
        ((*HF, "Trainer.training_step (transformers/trainer.py:2060)", *FORWARD), "forward"),
        ((*HF, "MyTrainer.compute_loss (train.py:20)", "count_words (train.py:40)"), "other"),
        (
            (
                *HF,
                "Trainer.compute_loss (transformers/trainer.py:2100)",
                "LabelSmoother.__call__ (transformers/trainer_pt_utils.py:450)",
            ),
            "forward",
        ),
        ((*HF, "Trainer._save_checkpoint (transformers/trainer.py:3360)"), "checkpoint"),
    ],
)
def test_frameworks(frames: tuple[str, ...], phase: str) -> None:
    assert classify(frames, "").phase == phase


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


@pytest.mark.parametrize(
    ("line", "phase"),
    [
        ("running += loss.item()", "synchronisation"),
        ("scores = scores.cpu().numpy()", "synchronisation"),
        ("torch.cuda.synchronize()", "synchronisation"),
        ("loss = net(images)", "forward"),
        ("y = x @ weight", "forward"),
        ("parameter.sub_(parameter.grad, alpha=LEARNING_RATE)", "forward"),
        ("losses.append(likeness.logsumexp(dim=0) - likeness[number])", "forward"),
        ("scale = math.exp(rate) * np.sqrt(width)", "other"),
        ("for images, classes in tqdm(train_loader):", "data"),
        ("for word in WORD.findall(TEXT):", "other"),
        ("images = images.to(device, non_blocking=True)", "forward"),
        ("loss.backward()", "backward"),
        ("scaler.step(optimizer)", "optimizer"),
        ("self.opt.zero_grad()", "optimizer"),
        ("optD.step()", "optimizer"),
        ("optim_wrapper.step()", "optimizer"),
        ("self.grad_scaler.update()", "optimizer"),
        ("opts.update(vars(args))", "other"),
        ("adopted.update(ids)", "other"),
        ("optimizer_kwargs.update(given)", "other"),
        ("reward_scaler.update(rewards)", "other"),
        ("quadcopter.step(action)", "other"),
        ("best = sorted(range(CLASSES), key=row.__getitem__)", "other"),
        ("time.sleep(0.03)", "other"),
        ("time.sleep(0.03); loss.backward()", "other"),
        ("optimizer.step() or sleep(PAUSE_S)", "other"),
        ("", "other"),
    ],
)
def test_a_line_that_calls_c_leaves_no_frame(line: str, phase: str) -> None:
    assert classify(TRAIN, line).phase == phase


@pytest.mark.parametrize(
    ("line", "phase"),
    [
        ('print("loss.backward() done")', "other"),
        ('seen.update({"optimizer.step(": 1})', "other"),
        ('log.write(f"{step} model(x) took {t}")', "other"),
        ("log.write(f'{{model(x)}}')", "other"),
        ("count += 1  # then loss.backward()", "other"),
        ('print(f"loss {loss.item():.3f}")', "synchronisation"),
        ('log("step # loss", loss.item())', "synchronisation"),
        ("raise_if(bad, \"it's\"); loss.backward()  # don't", "backward"),
        ('scores = net(batch["image"])', "forward"),
    ],
)
def test_a_text_or_a_comment_does_nothing(line: str, phase: str) -> None:
    assert classify(TRAIN, line).phase == phase


def test_a_line_shows_nothing_of_what_it_calls_in_a_library() -> None:
    """The user's line is `log(loss.item())`; the sample lies in json."""
    assert classify((*TRAIN, "dumps (json/__init__.py:231)"), "log(loss.item())").phase == "other"


def test_who_makes_the_batch() -> None:
    assert classify((*TRAIN, *FETCH, "Photos.__getitem__ (photos.py:20)"), "").serial
    assert not classify((*TRAIN, *WAIT), "").serial


def test_before_3_11_functions_have_no_class() -> None:
    frames = ("train (train.py:48)", "_call_impl (torch/nn/modules/module.py:1789)")
    assert classify(frames, "").phase == "forward"
    frames = ("train (train.py:48)", "_get_data (torch/utils/data/dataloader.py:1464)")
    assert classify(frames, "").phase == "data"


@pytest.mark.parametrize(
    ("frame", "known"),
    [
        ("ExperienceReplay.sample (memory.py:51)", "data"),
        ("ReplayBuffer.sample_sequences (buffer.py:51)", "data"),
        ("ExperienceReplay._retrieve_batch (memory.py:43)", "data"),
        ("random_minibatch (train.py:12)", "data"),
        ("GaussianDiffusion.sample (diffusion.py:51)", "forward"),
        ("NTMMemory.read (memory.py:51)", "forward"),
        ("MemoryNetwork.sample (memory.py:51)", "forward"),
        ("RolloutPolicy.sample_plan (planner.py:51)", "forward"),
    ],
)
def test_what_a_learner_draws_of_what_its_agent_has_met_is_its_batch(
    frame: str, known: str
) -> None:
    """PlaNet's pictures of 2,500 moments, made floats on the CPU: 58 % of "the forward's launches"
    came from there."""
    stack = ("<module> (train.py:94)", frame, "to_floats (env.py:21)")
    assert classify(stack, "x.div_(256).sub_(0.5)").phase == known


@pytest.mark.parametrize(
    ("function", "known"),
    [
        ("Trainer._save_checkpoint", "checkpoint"),
        ("save_ckpt_if_best", "checkpoint"),
        ("store_snapshot", "checkpoint"),
        ("write_state_dict", "checkpoint"),
        ("save_model", "checkpoint"),
        ("Trainer._model_forward", "forward"),
        ("Policy._state_value", "forward"),
        ("Net._checkpoint_layers", "forward"),
        ("make_state_mask", "forward"),
        ("Agent.store_state", "forward"),
        ("save_model_outputs", "forward"),
    ],
)
def test_only_what_writes_a_model_or_a_state_is_a_checkpoint(function: str, known: str) -> None:
    """`_model_forward` was "checkpoints take 40% of the time: save less often"."""
    assert phase(*TRAIN, f"{function} (train.py:20)", *FORWARD) == known


@pytest.mark.parametrize("queue", ["queue.py:171", "multiprocessing/queues.py:103"])
def test_what_a_thread_of_the_users_makes_ahead_is_data(queue: str) -> None:
    frames = ("train (train.py:9)", "Prefetcher.next (train.py:40)", f"Queue.get ({queue})")
    assert phase(*frames) == "data"


def test_what_the_user_wrapped_is_data() -> None:
    stack = ("train (a.py:9)", "__next__ (gpuwatch/probe/wrapped.py:33)", "batches (a.py:4)")
    assert phase(*stack, line="yield torch.stack(rows)") == "data"


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
