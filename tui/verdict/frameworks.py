"""Whose loop trains, where that is a library's, and what its users write instead of PyTorch.

Someone who calls `Trainer.train()` has no `DataLoader(...)` to give a number of workers, and no
line to put an autocast around: advice is of use to them in the arguments of that library. Names as
in transformers 5.23, lightning 2.6 and accelerate 1.15.
"""

import re
from collections.abc import Iterable
from dataclasses import replace
from functools import lru_cache
from typing import Final, Literal

from .findings import Finding, Note, Verdict

Framework = Literal["transformers", "lightning", "fabric", "accelerate"]

_FILES: Final[tuple[tuple[Framework, tuple[str, ...]], ...]] = (
    ("transformers", ("transformers/trainer.py",)),
    ("lightning", ("lightning/pytorch/", "pytorch_lightning/")),
    ("fabric", ("lightning/fabric/", "lightning_fabric/")),
    ("accelerate", ("accelerate/",)),
)
"""Those that use another come before it."""

LOOPS: Final = (
    "transformers/trainer.py",
    "lightning/pytorch/trainer/",
    "lightning/pytorch/loops/",
    "pytorch_lightning/trainer/",
    "pytorch_lightning/loops/",
)
"""Files of whole loops: the user's own line above them is `fit()`, which is no place to change."""

WITH_LOOPS: Final[tuple[Framework, ...]] = ("transformers", "lightning")
"""Whose these are: in the others the loop is the user's."""

_AUTOCAST: Final = r'(with )?torch\.autocast\("cuda", torch\.bfloat16\)'
_GRAPHS: Final = r'torch\.compile\(model, mode="reduce-overhead"\)(, or a CUDA graph of the step)?'
_ROWS: Final[tuple[tuple[Framework, tuple[tuple[str, str], ...]], ...]] = (
    (
        "transformers",
        (
            (r"\bDataLoader\(\.\.\., (pin_memory=True)\)", r"\1"),
            (
                r"\b(num_workers|persistent_workers|prefetch_factor|pin_memory=)",
                r"dataloader_\1",
            ),
            (r"^batch_size\b", "per_device_train_batch_size"),
            (r"^a larger batch\b", "a larger per_device_train_batch_size"),
            (_AUTOCAST, "bf16=True"),
            (r'torch\.set_float32_matmul_precision\("high"\)', "tf32=True"),
            (
                r"batches of texts of about one length: a batch sampler that sorts them by length",
                'group_by_length=True, in transformers 5 train_sampling_strategy="group_by_length"',
            ),
            (_GRAPHS, 'torch_compile=True, torch_compile_mode="reduce-overhead"'),
            (r"torch\.compile\(model\)", "torch_compile=True"),
            (r"^evaluate every ([\d,]+) steps", r'eval_strategy="steps", eval_steps=\1'),
            (r"^save every ([\d,]+) steps", r'save_strategy="steps", save_steps=\1'),
            (r"\bAdamW\(\.\.\., fused=True\)", 'optim="adamw_torch_fused"'),
            (r".* \(transformers/trainer\.py:\d+\): .*", "logging_nan_inf_filter=False: {nan}"),
        ),
    ),
    (
        "lightning",
        (
            (_AUTOCAST, 'Trainer(precision="bf16-mixed")'),
            (
                r"^evaluate every ([\d,]+) steps",
                r"Trainer(val_check_interval=\1, check_val_every_n_epoch=None)",
            ),
            (r"^save every ([\d,]+) steps", r"ModelCheckpoint(every_n_train_steps=\1)"),
        ),
    ),
    ("fabric", ((_AUTOCAST, 'Fabric(precision="bf16-mixed")'),)),
    ("accelerate", ((_AUTOCAST, 'Accelerator(mixed_precision="bf16")'),)),
)
_TERMS: Final = {
    framework: tuple((re.compile(pattern), instead) for pattern, instead in rows)
    for framework, rows in _ROWS
}
_ARGUMENTS: Final = " (TrainingArguments)"
"""Where those of the Trainer belong."""
_THOUSANDS: Final = re.compile(r"(?<=\d),(?=\d{3}\b)")
"""Python reads no number with them."""
_NAN: Final = "the Trainer waits for the loss of each step, to look for NaN in it"


@lru_cache(maxsize=1_024)
def framework_of(frames: tuple[str, ...]) -> Framework | None:
    """The library whose loop a stack of the main thread is in."""
    files = [frame.rpartition(" (")[2] for frame in frames]
    return next((name for name, own in _FILES if any(one.startswith(own) for one in files)), None)


def outermost(found: Iterable[Framework | None]) -> Framework | None:
    """The one that trains, of those that stacks show: it uses the others."""
    seen = set(found)
    return next((name for name, _ in _FILES if name in seen), None)


def in_terms_of(framework: Framework | None, verdict: Verdict) -> Verdict:
    """The verdict with its advice as users of that library write it."""
    if framework is None:
        return verdict
    return replace(
        verdict,
        finding=_finding(framework, verdict.finding),
        contributors=tuple(_finding(framework, one) for one in verdict.contributors),
        notes=tuple(_note(framework, one) for one in verdict.notes),
    )


def _finding(framework: Framework, finding: Finding) -> Finding:
    put = tuple(_put(framework, one) for one in finding.advice)
    waits = [one for one in put if _NAN in one]
    # Beside that one the other advice is for lines of one's own.
    return replace(finding, advice=tuple(waits) or put)


def _note(framework: Framework, note: Note) -> Note:
    return replace(note, text=_put(framework, note.text))


def _put(framework: Framework, advice: str) -> str:
    text = advice
    for pattern, instead in _TERMS[framework]:
        text = pattern.sub(instead, text)
    if text == advice:
        return advice
    text = _THOUSANDS.sub("", text.replace("{nan}", _NAN))
    return text + _ARGUMENTS if framework == "transformers" else text
