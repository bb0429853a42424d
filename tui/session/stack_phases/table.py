"""Which frames belong to which phase: data, one row per place in the code.

A frame is identified by its file, from its package on, and by the last part of the function's name:
from 3.11 on Python names functions with what encloses them ("Module._call_impl"), before without.
Files were looked up in torch 2.13, accelerate 1.15, lightning 2.6, transformers 5.23, safetensors,
keras 3.15, fastai 2.8 and gpytorch 1.15."""

from typing import Final, NamedTuple, get_args

from ...verdict.stack_samples import StackPhase as StackPhase
from ...verdict.thresholds.samples import ENVIRONMENT_PACKAGES, ROLLOUTS

PHASES: Final[tuple[StackPhase, ...]] = tuple(
    one for one in get_args(StackPhase) if one != "starting"
)
"""In the order in which they are shown. What is "starting" is no part of the training."""


class CodeRow(NamedTuple):
    """A place in the code."""

    phase: StackPhase
    file: str
    """From its package on; ending in "/" all that lies in the folder."""
    functions: frozenset[str] = frozenset()
    """Their own names; empty: all in the file."""


def _row(phase: StackPhase, file: str, functions: str = "") -> CodeRow:
    return CodeRow(phase, file, frozenset(functions.split()))


_LIGHTNING: Final[tuple[tuple[StackPhase, str, str], ...]] = (
    ("other", "strategies/strategy.py", "training_step"),
    ("backward", "strategies/strategy.py", "backward"),
    ("backward", "plugins/precision/precision.py", "backward"),
    ("optimizer", "strategies/strategy.py", "optimizer_step"),
    ("optimizer", "plugins/precision/precision.py", "optimizer_step"),
    ("optimizer", "core/optimizer.py", "step"),
    ("data", "loops/fetchers.py", "__next__ __iter__"),
    ("data", "utilities/combined_loader.py", "__next__ __iter__"),
    ("evaluation", "loops/evaluation_loop.py", ""),
    ("evaluation", "loops/prediction_loop.py", ""),
    ("checkpoint", "trainer/trainer.py", "save_checkpoint"),
    ("checkpoint", "trainer/connectors/checkpoint_connector.py", "dump_checkpoint"),
    ("checkpoint", "callbacks/model_checkpoint.py", "_save_checkpoint"),
)
"""`pytorch_lightning` and `lightning.pytorch` are the same files. What a user's `training_step`
does is judged by what it calls, as in a loop of their own."""
_FABRIC: Final[tuple[tuple[StackPhase, str, str], ...]] = (
    ("backward", "fabric.py", "backward"),
    ("optimizer", "wrappers.py", "step"),
    ("data", "wrappers.py", "__iter__"),
    ("checkpoint", "fabric.py", "save"),
    ("checkpoint", "strategies/strategy.py", "save_checkpoint"),
    ("synchronisation", "fabric.py", "barrier all_gather all_reduce broadcast"),
)
"""`lightning_fabric` and `lightning.fabric` likewise."""

ROWS: Final[tuple[CodeRow, ...]] = (
    # -- torch -----------------------------------------------------------------------------------
    _row("data", "torch/utils/data/"),
    _row("forward", "torch/nn/modules/module.py", "_call_impl _wrapped_call_impl _slow_forward"),
    _row("forward", "torch/nn/functional.py"),
    _row("forward", "torch/functional.py"),
    _row("forward", "torch/_tensor.py", "wrapped"),  # around `**`, `1 - x` and the like
    _row("forward", "torch/_ops.py", "__call__"),
    _row("forward", "torch/distributions/"),
    _row("forward", "torch/nn/parallel/distributed.py", "forward _pre_forward _post_forward"),
    _row("forward", "torch/fx/graph_module.py", "call_wrapped __call__"),
    _row("backward", "torch/_tensor.py", "backward"),
    _row("backward", "torch/autograd/__init__.py", "backward grad"),
    _row("backward", "torch/autograd/graph.py", "_engine_run_backward"),
    _row("optimizer", "torch/optim/", "step wrapper _use_grad zero_grad profile_hook_step"),
    _row("optimizer", "torch/amp/grad_scaler.py", "step unscale_ update"),
    _row("optimizer", "torch/nn/utils/clip_grad.py"),
    _row("checkpoint", "torch/serialization.py", "save _save _legacy_save"),
    _row("checkpoint", "torch/distributed/checkpoint/state_dict_saver.py"),
    _row("checkpoint", "torch/distributed/checkpoint/filesystem.py"),
    _row("checkpoint", "safetensors/torch.py", "save_file save_model save"),
    _row("data", "torch/serialization.py", "load _load _legacy_load"),
    _row("compile", "torch/_dynamo/convert_frame.py"),
    _row("compile", "torch/_inductor/compile_fx.py"),
    _row("compile", "torch/_inductor/async_compile.py", "wait"),
    _row("synchronisation", "torch/cuda/__init__.py", "synchronize"),
    _row("synchronisation", "torch/cuda/streams.py", "synchronize"),
    _row("synchronisation", "torch/accelerator/__init__.py", "synchronize"),
    _row("synchronisation", "torch/_tensor_str.py"),
    _row("synchronisation", "torch/distributed/distributed_c10d.py"),
    _row("synchronisation", "torch/distributed/_functional_collectives.py"),
    # -- accelerate ------------------------------------------------------------------------------
    _row("data", "accelerate/data_loader.py", "__iter__ _fetch_batches"),
    _row("backward", "accelerate/accelerator.py", "backward"),
    _row("optimizer", "accelerate/optimizer.py", "step zero_grad"),
    _row("optimizer", "accelerate/accelerator.py", "clip_grad_norm_ clip_grad_value_"),
    _row("checkpoint", "accelerate/accelerator.py", "save_state save_model save"),
    _row(
        "synchronisation",
        "accelerate/accelerator.py",
        "gather gather_for_metrics reduce wait_for_everyone",
    ),
    # -- transformers ----------------------------------------------------------------------------
    _row("data", "transformers/trainer.py", "get_batch_samples"),
    _row("forward", "transformers/trainer.py", "_prepare_inputs"),
    _row("forward", "transformers/trainer_pt_utils.py", "__call__"),  # LabelSmoother's
    _row(
        "evaluation",
        "transformers/trainer.py",
        "evaluate _evaluate evaluation_loop predict prediction_step",
    ),
    _row("checkpoint", "transformers/trainer.py", "_save_checkpoint save_model _save"),
    _row("checkpoint", "transformers/modeling_utils.py", "save_pretrained"),
    # -- deepspeed -------------------------------------------------------------------------------
    _row("backward", "deepspeed/runtime/engine.py", "backward"),
    _row("optimizer", "deepspeed/runtime/engine.py", "step"),
    _row("checkpoint", "deepspeed/runtime/engine.py", "save_checkpoint"),
    # -- lightning -------------------------------------------------------------------------------
    *(
        _row(phase, package + file, functions)
        for package in ("pytorch_lightning/", "lightning/pytorch/")
        for phase, file, functions in _LIGHTNING
    ),
    *(
        _row(phase, package + file, functions)
        for package in ("lightning_fabric/", "lightning/fabric/")
        for phase, file, functions in _FABRIC
    ),
    # -- libraries with nets and optimizers of their own, called without torch.nn.Module's ---------
    _row("forward", "keras/src/layers/layer.py", "__call__"),
    _row("forward", "keras/src/trainers/trainer.py", "compute_loss _compute_loss"),
    _row("optimizer", "keras/src/optimizers/base_optimizer.py", "apply"),
    _row("data", "keras/src/trainers/epoch_iterator.py"),
    _row("evaluation", "keras/src/backend/torch/trainer.py", "evaluate"),
    _row("forward", "keras/src/backend/torch/trainer.py", "predict"),  # what a DQN is trained on
    _row("optimizer", "fastai/optimizer.py", "step zero_grad"),
    _row("forward", "gpytorch/"),
    _row("forward", "linear_operator/"),
    # -- other loaders ---------------------------------------------------------------------------
    _row("data", "gpuwatch/probe/wrapped.py", "__next__"),
    _row("data", "torchdata/"),
    _row("data", "queue.py", "get"),  # of a thread, or a process, that makes batches ahead
    _row("data", "multiprocessing/queues.py", "get"),
    _row("data", "webdataset/"),
    _row("data", "litdata/"),
    _row("data", "datasets/"),
    _row("data", "nvidia/dali/"),
    _row("data", "gpuwatch/probe/wrapped.py", "__next__"),
    # -- environments that a policy acts in --------------------------------------------------------
    *(_row("evaluation", package) for package in ENVIRONMENT_PACKAGES),
    _row("evaluation", *ROLLOUTS),
    _row("data", "stable_baselines3/common/buffers.py", "sample _get_samples"),
    # -- Python itself ---------------------------------------------------------------------------
    _row("starting", "<frozen importlib._bootstrap>"),
    _row("starting", "<frozen importlib._bootstrap_external>"),
)

SERIAL: Final = CodeRow("data", "torch/utils/data/_utils/fetch.py", frozenset({"fetch"}))
"""In the training process: it makes its batches itself."""

HANDS_OVER: Final = (
    "concurrent/futures/",
    *("multiprocessing/pool.py", "multiprocessing/connection.py", "multiprocessing/managers.py"),
)
"""Python's own files that hand over what another thread or process has made: what a loop takes of
them is its data. (A queue's `get` is a row: whoever calls it takes.)"""
OPERATORS: Final = ("torch/_tensor.py", "torch/_ops.py")
"""Files of what any line of tensors calls."""
STARTS_OR_SENDS: Final = frozenset(
    ("_launch", "_execute_child", "dumps", "dump", "send", "send_bytes", "_send", "_send_bytes")
)
"""Functions in files that wait which work: a process is started, what it gets is pickled."""

PASSES_ON: Final = ("tqdm/std.py", "__iter__")
"""A generator around the loader that the user's `for` takes from: as its caller's innermost frame
it is that line, where the batch before is given back."""

WITHOUT_GRAD: Final = CodeRow(
    "other", "torch/utils/_contextlib.py", frozenset({"decorate_context"})
)
"""Calls a function that is decorated with `torch.no_grad()` or `inference_mode()`: one that runs a
net then learns nothing by it. (A `with` leaves no frame.)"""

NESTED: Final[dict[StackPhase, frozenset[StackPhase]]] = {
    "other": frozenset(PHASES) | {"starting"},
    "optimizer": frozenset(
        ("data", "forward", "backward", "checkpoint", "compile", "starting", "other")
    ),
    "forward": frozenset(("backward", "compile", "starting")),
    "backward": frozenset(("compile",)),
    "synchronisation": frozenset(),
    "waiting": frozenset(),
    "data": frozenset(),
    "checkpoint": frozenset(),
    "compile": frozenset(),
    "starting": frozenset(),
    "evaluation": frozenset(),
}
"""What may be found inside a phase and then replaces it. An optimizer's step may call a
closure that runs forward and backward, and with a framework all of the user's step; a forward may
take gradients; a backward that runs a part of the forward again is a backward, and a dataset that
uses modules is a dataset. Importing inside anything is starting: the first step imports most of
torch."""

_EVALUATES: Final = r"(evaluate|evaluation|eval|validate|validation|valid|val)"
_EVALUATED: Final = r"(one_|full_)?(epochs?|loop|steps?|models?|net|network|policy|agent|episodes?)"
EVALUATION_NAMES: Final = (
    r"(?!\w*(train|fit))("
    r"(run_|do_|_)*(evaluate|evaluation|validate|validation)(_and_\w+)?|"
    rf"(run_|do_)+{_EVALUATES}|(run_|do_|_)*{_EVALUATES}_{_EVALUATED}|"
    r"estimate_(\w+_)?loss(es)?|(\w+_)?rollouts?|(select|choose)_actions?|"
    r"(_|do_|run_)*(collect|gather)_(rollouts?|trajector\w+|experiences?|episodes?)|"
    r"(\w+_)?self_?play(_\w+)?)"
)
"""A user's own functions that evaluate, or act in an environment, by their names:
`train_and_evaluate` does more…"""
EVALUATION_NAMES_OF_A_NET: Final = (
    r"(?!\w*(train|fit)|evaluate_actions?$)("
    rf"(run_|do_|_)*{_EVALUATES}(_\w+)?|"
    r"\w+_(evaluate|evaluation|eval|validate|validation)|"
    rf"{_EVALUATED}_(valid|val))|"
    r"(run_|do_|compute_|_)*(test|accuracy|perplexity)(_\w+)?|"
    r"(\w+_)?generate(_completions|_responses)?|get_actions?"
)
"""…or where they run a net or fetch batches: a metric of scores that lie there is none, nor are
`eval_sh`, a function's value at a point, `validate_shapes` and `valid_mask`. Behind another word
"valid" and "val" say less: `filter_valid`, `clip_val`. PPO learns from its `evaluate_actions`."""
RUNS_A_NET: Final = frozenset(("_call_impl", "_wrapped_call_impl"))
PREDICTS: Final = ("keras/src/backend/torch/trainer.py", "predict")
"""Runs one too, without a module's call."""
GRADIENTS: Final = ("torch/autograd/__init__.py", "grad")
"""Hands out gradients and leaves none at the parameters: a force, a field, an attack."""
CHECKPOINT_NAMES: Final = (
    r"_*(save|write|store|dump)_(checkpoint|ckpt|snapshot)\w*|"
    r"_*(save|write|dump)_(model|state)(s|_dict|_weights|_to_\w+)?"
)
"""Of a model and a state there is more than to write them: `_model_forward`, `make_state_mask`."""
DATA_NAMES: Final = (
    r"_*(get|next|load|fetch|sample|read|draw|make|build|random|retrieve)_(mini)?(batch|batches)|"
    r"(get|next|load|fetch|sample|read)_data"
)
"""Loops that have no DataLoader…"""
_NETS: Final = (
    r"(Net|Network|Model|Module|Policy|Agent|Actor|Critic|Encoder|Decoder|Generator|Transformer|"
    r"Layer|Cell|RNN|LSTM|GRU|VAE|GAN)"
)
REPLAYS: Final = rf"(?!\w*{_NETS}\d*\.)\w*(Replay|Buffer|Memory|Experience|Rollout)\w*\._*sample\w*"
"""…and what a learner draws from what its agent has met, by a method's class and name: a memory
network samples as any net does."""
