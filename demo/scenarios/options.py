"""The command line that every scenario has."""

import argparse
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TypeVar

from machine import ON_GPU

Sizes = TypeVar("Sizes")


@dataclass(frozen=True)
class Options:
    """What the command line asked for."""

    steps: int
    """Steps to run, warm-up included; 0 sets no limit."""
    seconds: float
    """Seconds to run after the warm-up; 0 sets no limit."""
    seed: int
    cause: bool
    """Whether the injected cause is there: the main one, where a scenario has several."""
    tiny: bool
    """Sizes for a test on a laptop's core; they show that the script runs, and nothing else."""
    scale: float = 1.0
    """How many times its usual length a step takes, in a scenario that has several lengths."""
    removed: tuple[str, ...] = ()
    """Of a scenario with several causes, those that are removed."""

    def sizes(self, *, tiny: Sizes, cpu: Sizes, gpu: Sizes) -> Sizes:
        """Those of a test, of a machine without a GPU, or of one with."""
        if self.tiny:
            return tiny
        return gpu if ON_GPU else cpu

    def scaled(self, count: int) -> int:
        """Samples of a batch, or layers of a net: what makes a step longer, and nothing else."""
        return max(1, round(count * self.scale))

    def has(self, cause: str) -> bool:
        """Whether this one of a scenario's several causes is there."""
        return cause not in self.removed


def options_of(
    about: str | None, argv: Sequence[str] | None, causes: Sequence[str]
) -> tuple[Options, bool]:
    """What is asked for (without `argv` on the process's command line), and whether to wait."""
    parser = argparse.ArgumentParser(
        description=about, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--steps", type=int, default=0, metavar="N", help="0: until stopped")
    parser.add_argument("--seconds", type=float, default=0.0, metavar="S", help="after a warm-up")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument(
        "--without-cause",
        nargs="*",
        metavar="CAUSE",
        help=f"remove what makes it slow (of {', '.join(causes)}: the first, or those named)"
        if causes
        else "remove what makes it slow",
    )
    parser.add_argument("--tiny", action="store_true", help="sizes for a test without a GPU")
    parser.add_argument("--scale", type=float, default=1.0, help="longer or shorter steps")
    parser.add_argument("--wait", action="store_true", help="import, then wait for a line on stdin")
    given = parser.parse_args(argv)
    without: list[str] | None = given.without_cause
    if unknown := sorted({*(without or ())} - {*causes}):
        parser.error(f"no cause of this scenario: {', '.join(unknown)}")
    removed = () if without is None else tuple(without or causes[:1])
    options = Options(
        steps=given.steps,
        seconds=given.seconds,
        seed=given.seed,
        cause=causes[0] not in removed if causes else without is None,
        tiny=given.tiny,
        scale=given.scale,
        removed=removed,
    )
    return options, given.wait
