"""The runs of the suite: each a script under a real framework, and what the probe reports of it."""

from collections.abc import Mapping
from dataclasses import dataclass, field


@dataclass(frozen=True)
class Case:
    """One script with its arguments."""

    name: str
    script: str
    arguments: tuple[str, ...] = ()
    package: str = "torch"
    """The distribution that it needs, whose version the table names."""
    ranks: int = 1
    elsewhere: bool = False
    """The training is in a process that the framework starts and kills."""
    on_gpu: bool = False
    """Needs a CUDA device, and a torch that can use it."""
    steps: int = 10
    first_waits: bool = False
    """The first rank waits for the data of all."""
    into: Mapping[str, str] = field(default_factory=dict)
    """Waits that are reported under another name than their own: by kind, the phase."""
    note: str = ""
    """What a user has to know."""

    @property
    def id(self) -> str:
        """For pytest."""
        return "-".join((self.script.removesuffix(".py"), *self.arguments))


IN_FORWARD = {"data": "forward"}
AS_OTHER = {"optimizer": "other"}
COMPILED = "no optimizer phase: its time is in `other`; steps are known from the 16th on"
WRAP = "`probe.wrap(...)` around it"
BARE = "the wait counts as forward; see the next row"
CASES = (
    Case("PyTorch alone", "plain_loop.py"),
    Case("HF Trainer", "hf_trainer.py", ("1", "no"), "transformers"),
    Case("HF Trainer, 2 batches a step", "hf_trainer.py", ("2", "no"), "transformers"),
    Case(
        "HF Trainer with evaluation",
        "hf_trainer.py",
        ("1", "evaluate"),
        "transformers",
        note="the last batch of an evaluation counts as `other`",
    ),
    Case("Accelerate", "accelerate_loop.py", ("sharded", "bare"), "accelerate"),
    Case(
        "Accelerate, sharded over 2 ranks",
        "accelerate_loop.py",
        ("sharded", "bare"),
        "accelerate",
        ranks=2,
    ),
    Case(
        "Accelerate, dispatched to 2 ranks",
        "accelerate_loop.py",
        ("dispatched", "bare"),
        "accelerate",
        ranks=2,
        first_waits=True,
        note="the ranks behind the first wait for its batches, which counts as data",
    ),
    Case("Lightning, automatic", "lightning_trainer.py", ("automatic",), "lightning"),
    Case("Lightning, manual", "lightning_trainer.py", ("manual",), "lightning"),
    Case("Lightning with validation", "lightning_trainer.py", ("evaluate",), "lightning"),
    Case("Lightning Fabric", "fabric_loop.py", (), "lightning"),
    Case("torchdata StatefulDataLoader", "torchdata_stateful.py", (), "torchdata"),
    Case(
        "torchdata.nodes", "torchdata_nodes.py", ("bare",), "torchdata", into=IN_FORWARD, note=BARE
    ),
    Case("torchdata.nodes", "torchdata_nodes.py", ("wrapped",), "torchdata", note=WRAP),
    Case("HF datasets in a DataLoader", "hf_datasets.py", ("map",), "datasets"),
    Case("HF datasets, iterable, in a DataLoader", "hf_datasets.py", ("iterable",), "datasets"),
    Case(
        "HF datasets, `.iter()`",
        "hf_datasets.py",
        ("bare",),
        "datasets",
        into=IN_FORWARD,
        note=BARE,
    ),
    Case("HF datasets, `.iter()`", "hf_datasets.py", ("wrapped",), "datasets", note=WRAP),
    Case("WebDataset in a DataLoader", "webdataset_loop.py", ("DataLoader",), "webdataset"),
    Case("WebDataset, WebLoader", "webdataset_loop.py", ("WebLoader",), "webdataset"),
    Case("WebDataset itself", "webdataset_loop.py", ("wrapped",), "webdataset", note=WRAP),
    Case("DistributedDataParallel, gloo", "distributed.py", ("ddp",), ranks=2),
    Case("FSDP2, gloo", "distributed.py", ("fsdp2",), ranks=2),
    Case("torch.compile of the model", "compiled.py", ("model",)),
    Case(
        "torch.compile of the step",
        "compiled.py",
        ("step",),
        steps=40,
        into=AS_OTHER,
        note=COMPILED,
    ),
    Case(
        "torch.compile of the optimizer",
        "compiled.py",
        ("optimizer",),
        steps=40,
        into=AS_OTHER,
        note=COMPILED,
    ),
    Case("Checkpointed, reentrant", "checkpointed.py", ("reentrant",)),
    Case("Checkpointed, not reentrant", "checkpointed.py", ("plain",)),
    Case(
        "Optimizer in backward",
        "optimizer_in_backward.py",
        note="the updates are counted; their time is backward's",
    ),
    Case("torchao AdamW8bit", "eight_bit.py", ("torchao",), "torchao"),
    Case("bitsandbytes AdamW8bit", "eight_bit.py", ("bitsandbytes",), "bitsandbytes"),
    Case(
        "CUDA graph of the step",
        "cuda_graph.py",
        on_gpu=True,
        note="`probe.step()` behind the replay, whose time counts as forward",
    ),
    Case(
        "Ray Train",
        "ray_train.py",
        (),
        "ray",
        elsewhere=True,
        note="`install()` in the training function",
    ),
)
