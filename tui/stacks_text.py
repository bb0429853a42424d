"""Stacks as one line each, as flamegraph.pl, speedscope and inferno read them."""

from collections import Counter
from collections.abc import Iterable

from tui.stack_trees import Merged


def collapsed(stacks: Iterable[Merged]) -> str:
    """ "main;train (train.py:88);wait (threading.py:359) 17", the most samples first."""
    counts: Counter[str] = Counter()
    for stack in stacks:
        parts = (stack.role, *stack.frames)
        counts[";".join(part.replace(";", ",") for part in parts)] += stack.samples
    return "".join(f"{stack} {count}\n" for stack, count in counts.most_common())


def with_text(stacks: Iterable[Merged], text: str) -> list[Merged]:
    """Those with a frame, or a line of the user's, that has the text in it, in any case."""
    wanted = text.casefold()
    return [one for one in stacks if any(wanted in part.casefold() for part in _parts(one))]


def _parts(stack: Merged) -> tuple[str, ...]:
    return (*stack.frames, stack.line)
