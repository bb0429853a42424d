"""`gpuwatch lab -- python train.py …`: what each change would give, by trying it."""

import argparse
import json
from functools import partial
from typing import Any, Final

from .attach import seconds
from .options import Manual, examples
from .output import width, write_lines, write_notes

WARM_UP: Final = 20
SECONDS: Final = 8.0
ROUNDS: Final = 3
LIMIT_S: Final = 180.0


def add_to(commands: "argparse._SubParsersAction[Any]") -> None:
    """The command's part of the command line."""
    command = commands.add_parser(
        "lab",
        help="try changes to a program in short turns: what each gives",
        usage="gpuwatch lab [--variants LIST] [--] {SCRIPT | PROGRAM} [ARGS]",
        description="Start a training again and again for a few seconds, each time with one change "
        "that needs no edit of it: precision, torch.compile, DataLoader workers, pinned memory, "
        "batch size. The turns are interleaved and warm up alike; gains have intervals, and losses "
        "are compared. Checkpoints that the program writes are written in every turn.",
        epilog=examples(
            ("gpuwatch lab -- python train.py --lr 3e-4", "the usual changes"),
            ("gpuwatch lab --variants bf16,pin -- python train.py", "these"),
            ("gpuwatch lab --variants batch=2x --rounds 5 -- train.py", "five rounds"),
        ),
        formatter_class=Manual,
        allow_abbrev=False,
    )
    command.add_argument(
        "--variants",
        metavar="LIST",
        default=None,
        help="fp32, tf32, bf16, compile, workers=8, pin, batch=2x (default: "
        "tf32,bf16,compile,workers=4,pin)",
    )
    command.add_argument("--rounds", type=_whole, default=ROUNDS, metavar="N", help="default: 3")
    command.add_argument(
        "--warmup", type=_whole, default=WARM_UP, metavar="STEPS", help="default: 20"
    )
    command.add_argument(
        "--seconds", type=seconds, default=SECONDS, metavar="S", help="measured (default: 8)"
    )
    command.add_argument(
        "--limit", type=seconds, default=LIMIT_S, metavar="S", help="of a turn (default: 180)"
    )
    command.add_argument("--json", action="store_true", help="JSON instead of text")
    command.add_argument(
        "command",
        metavar="PROGRAM",
        nargs=argparse.REMAINDER,
        help="with its own arguments",
    )
    command.set_defaults(run=run)


def run(arguments: argparse.Namespace) -> int:
    """Raises GpuwatchError where the program cannot be started or makes no steps."""
    from ..errors import NothingToMeasureError
    from ..lab import faces, plan
    from ..lab.turns import Lengths, turn
    from ..lab.variants import DEFAULT, variants_of
    from ..launch.command import command_of
    from .target import watch_live

    words = arguments.command[1:] if arguments.command[:1] == ["--"] else arguments.command
    command_of(words, asked="gpuwatch lab --")
    variants = variants_of(arguments.variants or DEFAULT)
    lengths = Lengths(arguments.warmup, arguments.seconds, arguments.limit)
    lab = plan.Lab()
    watch = partial(watch_live, stacks=False)
    try:
        plan.run(
            lab,
            variants,
            arguments.rounds,
            lambda variant: turn(words, variant, lengths, watch),
            lambda text: write_notes([f"gpuwatch: {text}"]),
        )
    finally:  # after ctrl-c too: what was measured is there
        if any(one.step_ms is not None for one in lab.turns):
            if arguments.json:
                write_lines([json.dumps(faces.as_json(lab), allow_nan=False)])
            else:
                write_lines(faces.text_lines(lab, width()))
    if not any(one.step_ms is not None for one in lab.turns):
        why = next((one.why_not for one in lab.turns if one.why_not), "")
        raise NothingToMeasureError("the program made no steps", why)
    return 0


def _whole(text: str) -> int:
    """A number of rounds or steps. Raises ArgumentTypeError for anything else."""
    if not text.isascii() or not text.isdecimal() or not 0 < int(text) <= 10_000:
        raise argparse.ArgumentTypeError(f"{text!r} is not a number from 1 to 10,000")
    return int(text)
