"""What a stack of the main thread shows."""

import pytest

from gpuwatch.tui.model.frames import worth_naming
from gpuwatch.tui.session.stack_phases.classify import classify
from tests.unit.stack_phases.real_stacks import (
    AUTOMATIC,
    BACKWARD,
    CALL,
    COMPILE,
    FETCH,
    FORWARD,
    HF,
    IMPORT,
    LIGHTNING,
    SAVE,
    STEP,
    TRAIN,
    WAIT,
    phase,
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
        ((*TRAIN, *STEP, "Lion.update (lion.py:20)", "wrapped (torch/_tensor.py:39)"), "optimizer"),
        (
            (
                *TRAIN,
                "all_reduce (torch/distributed/_functional_collectives.py:180)",
                "OpOverloadPacket.__call__ (torch/_ops.py:1255)",
            ),
            "synchronisation",
        ),
        ((*TRAIN, "load (torch/serialization.py:1540)", "persistent_load (a.py:9)"), "data"),
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
        ("image = torch.from_numpy(np.asarray(pictures[8 * at : 8 * at + 8]))", "other"),
        ("label = torch.tensor(rows, dtype=torch.float32)", "other"),
        ("return torch.as_tensor(rows)", "other"),
        ("x = x * torch.tensor(2.0)", "forward"),
        ("y = torch.tensor(2.0) * f(x)", "forward"),
        ("y: torch.Tensor = self.attention(x)", "forward"),
        ("y = torch.tensor(net(x))", "forward"),
        ("image = torch.tensor(rows, device=device)", "forward"),
        ("image = torch.from_numpy(rows).to(device)", "forward"),
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


@pytest.mark.parametrize(
    ("frame", "line", "known"),
    [
        ("Normal.log_prob (torch/distributions/normal.py:98)", "return q.log_prob(z)", "forward"),
        ("_handle.<locals>.wrapped (torch/_tensor.py:39)", "return (a - b) ** 2", "forward"),
        ("OpOverload.__call__ (torch/_ops.py:841)", "return my_op(a)", "forward"),
        ("vmap_impl (torch/_functorch/vmap.py:282)", "y = torch.vmap(f)(x)", "forward"),
        ("Tensor.__deepcopy__ (torch/_tensor.py:260)", "best = deepcopy(weights)", "other"),
        (
            "SummaryWriter.add_scalar (torch/utils/tensorboard/writer.py:380)",
            'writer.add_scalar("loss", losses.mean(), step)',
            "other",
        ),
    ],
)
def test_what_pytorchs_own_python_computes_below_a_line(frame: str, line: str, known: str) -> None:
    """A VAE's loss of `torch.distributions` was "Python between the phases: in one tensor
    expression, 2.5x", which it is."""
    assert classify((*TRAIN, "elbo (train.py:8)", frame), line).phase == known


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
