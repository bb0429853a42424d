"""Stacks of real runs, as py-spy reports them (torch 2.13, Python 3.11), and of frameworks by their
sources (accelerate 1.15, lightning 2.6, transformers 5.23)."""

from gpuwatch.tui.model.observations import StackCount
from gpuwatch.tui.session.stack_phases.classify import phase_of

TRAIN = ("<module> (train.py:90)", "main (train.py:84)", "train (train.py:48)")
CALL = (
    "Module._wrapped_call_impl (torch/nn/modules/module.py:1778)",
    "Module._call_impl (torch/nn/modules/module.py:1789)",
)
FORWARD = (
    *CALL,
    "ResNet.forward (nets.py:40)",
    *CALL,
    "Conv2d._conv_forward (torch/nn/modules/conv.py:560)",
)
BACKWARD = (
    "Tensor.backward (torch/_tensor.py:623)",
    "backward (torch/autograd/__init__.py:395)",
    "_engine_run_backward (torch/autograd/graph.py:979)",
)
STEP = (
    "Optimizer.profile_hook_step.<locals>.wrapper (torch/optim/optimizer.py:523)",
    "_use_grad_for_differentiable.<locals>._use_grad (torch/optim/optimizer.py:81)",
    "AdamW.step (torch/optim/adam.py:244)",
)
NEXT = ("_BaseDataLoaderIter.__next__ (torch/utils/data/dataloader.py:725)",)
WAIT = (
    *NEXT,
    "_MultiProcessingDataLoaderIter._next_data (torch/utils/data/dataloader.py:1480)",
    "_MultiProcessingDataLoaderIter._get_data (torch/utils/data/dataloader.py:1464)",
    "_MultiProcessingDataLoaderIter._try_get_data (torch/utils/data/dataloader.py:1291)",
    "Queue.get (multiprocessing/queues.py:113)",
    "wait (multiprocessing/connection.py:947)",
    "_SelectorMapping.select (selectors.py:415)",
)
FETCH = (
    *NEXT,
    "_SingleProcessDataLoaderIter._next_data (torch/utils/data/dataloader.py:785)",
    "_MapDatasetFetcher.fetch (torch/utils/data/_utils/fetch.py:54)",
)
SAVE = ("save (torch/serialization.py:1003)", "_save (torch/serialization.py:1312)")
IMPORT = (
    "_find_and_load (<frozen importlib._bootstrap>:1176)",
    "_call_with_frames_removed (<frozen importlib._bootstrap>:241)",
    "<module> (torch/_dynamo/__init__.py:13)",
)
COMPILE = (
    "compile_wrapper (torch/_dynamo/eval_frame.py:840)",
    "ConvertFrameAssert.__call__ (torch/_dynamo/convert_frame.py:700)",
)
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


def phase(*frames: str, line: str = "", evaluates: bool = False) -> str:
    stack = StackCount(
        role="main", pid=1, thread="", frames=frames, count=1, line=line, evaluates=evaluates
    )
    return phase_of(stack)
