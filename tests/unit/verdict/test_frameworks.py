"""Advice in the terms of the library whose loop trains."""

from dataclasses import replace

import pytest
from msgspec import structs

from gpuwatch.tui.model.observations import StackCount
from gpuwatch.tui.model.stack_shares import summarise
from gpuwatch.tui.session.stack_phases.classify import phase_of
from gpuwatch.tui.verdict.engine import Engine
from gpuwatch.tui.verdict.findings import Finding, Note, Verdict
from gpuwatch.tui.verdict.frameworks import Framework, in_terms_of
from gpuwatch.tui.verdict.stack_samples import FrameShare, Stacks
from tests.unit.verdict.advice_runs import waiting

TRAINER = (
    "<module> (train.py:60)",
    "Trainer.train (transformers/trainer.py:1500)",
    "Trainer._run_epoch (transformers/trainer.py:1842)",
)
FORWARD = (
    "Trainer.training_step (transformers/trainer.py:2014)",
    "convert (accelerate/utils/operations.py:800)",
    "Module._call_impl (torch/nn/modules/module.py:1779)",
)


def stack(*frames: str) -> StackCount:
    return StackCount(role="main", pid=1, thread="", frames=frames, count=10, line="")


@pytest.mark.parametrize(
    ("frames", "framework"),
    [
        ((*TRAINER, *FORWARD), "transformers"),
        (
            ("<module> (t.py:1)", "Trainer.fit (lightning/pytorch/trainer/trainer.py:5)"),
            "lightning",
        ),
        (("<module> (t.py:1)", "fit (pytorch_lightning/trainer/trainer.py:5)"), "lightning"),
        (("<module> (t.py:1)", "_FabricOptimizer.step (lightning/fabric/wrappers.py:9)"), "fabric"),
        (("<module> (t.py:1)", "Accelerator.backward (accelerate/accelerator.py:9)"), "accelerate"),
        (("<module> (t.py:1)", "forward (transformers/models/bert/modeling_bert.py:9)"), None),
        (("<module> (transformers.py:1)",), None),
    ],
)
def test_the_library_whose_loop_trains(
    frames: tuple[str, ...], framework: Framework | None
) -> None:
    assert summarise([stack(*frames)], phase_of).framework == framework


def verdict(*advice: str, note: str = "") -> Verdict:
    finding = Finding(
        "input", None, "warning", 0.5, 0.4, 0.6, 2.0, "estimate", "waiting", (), advice
    )
    notes = (Note(note, None, "hook"),) if note else ()
    return Verdict(finding, 0.9, 1, 1, (), (), notes=notes)


@pytest.mark.parametrize(
    ("framework", "plain", "put"),
    [
        (
            "transformers",
            "num_workers 0 → 4, 2.1x (a batch takes 20 ms)",
            "dataloader_num_workers 0 → 4, 2.1x (a batch takes 20 ms) (TrainingArguments)",
        ),
        (
            "transformers",
            'bf16: with torch.autocast("cuda", torch.bfloat16), about 3x',
            "bf16: bf16=True, about 3x (TrainingArguments)",
        ),
        (
            "transformers",
            "evaluate every 12,500 steps: it would cost 2%",
            'eval_strategy="steps", eval_steps=12500: it would cost 2% (TrainingArguments)',
        ),
        ("transformers", "cheaper transforms: decode (data.py:3)", None),
        (
            "lightning",
            'bf16: with torch.autocast("cuda", torch.bfloat16), about 3x',
            'bf16: Trainer(precision="bf16-mixed"), about 3x',
        ),
        ("lightning", "num_workers 0 → 4, 2.1x", None),
        (
            "accelerate",
            'bf16: with torch.autocast("cuda", torch.bfloat16), about 3x',
            'bf16: Accelerator(mixed_precision="bf16"), about 3x',
        ),
    ],
)
def test_advice_is_in_the_arguments_of_the_library(
    framework: Framework, plain: str, put: str | None
) -> None:
    assert in_terms_of(framework, verdict(plain)).finding.advice == (put or plain,)
    assert in_terms_of(None, verdict(plain)) == verdict(plain)


def test_notes_are_too() -> None:
    noted = in_terms_of("transformers", verdict("x", note="copied: pin_memory=True")).notes[0]
    assert noted.text == "copied: dataloader_pin_memory=True (TrainingArguments)"


def test_the_trainers_own_wait_is_a_synchronisation_that_an_argument_ends() -> None:
    found = summarise([stack(*TRAINER)], phase_of)
    assert [place.phase for place in found.main] == ["synchronisation"]
    read = "_run_epoch (transformers/trainer.py:1847): keep it on the GPU (.detach())"
    advice = in_terms_of("transformers", verdict(read, "or read it a step later")).finding.advice
    assert len(advice) == 1
    assert advice[0].startswith("logging_nan_inf_filter=False: ")


@pytest.mark.parametrize(
    ("frame", "caller"),
    [
        ("RichProgressBar.update (lightning/pytorch/callbacks/progress/rich.py:9)", None),
        ("Net.training_step (train.py:9)", None),
        ("log (lightning/pytorch/core/module.py:9)", "Net.training_step (train.py:9)"),
    ],
)
def test_the_line_that_starts_a_librarys_loop_is_named_for_nothing(
    frame: str, caller: str | None
) -> None:
    way = (
        "<module> (train.py:132)",
        "Trainer.fit (lightning/pytorch/trainer/trainer.py:560)",
        "_FitLoop.advance (lightning/pytorch/loops/fit_loop.py:455)",
    )
    below = (*way, *(one for one in (caller, frame) if one))
    seen = structs.replace(stack(*below), line="the user's innermost line")
    (place,) = summarise([seen], phase_of).main
    assert (place.frame, place.caller) == (frame, caller)
    assert bool(place.line) == ("train.py" in f"{frame} {caller}")


def test_the_engine_puts_a_verdict_in_these_terms() -> None:
    place = FrameShare(1.0, "_next_data (torch/utils/data/dataloader.py:9)", None, phase="data")
    stacks = Stacks(20, (place,), 0, (), None, framework="transformers")
    window = replace(waiting(0, 30.0), stacks=stacks)
    advice = Engine().judge(window).finding.advice
    assert any("dataloader_num_workers 0 → " in one for one in advice)
