"""The turns of a lab in their order, and those that try the good changes together."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from random import Random
from typing import Final

from .gains import Gain, gains
from .turns import Turn
from .variants import AS_IS, Variant, together

SEED: Final = 20
Take = Callable[[Variant], Turn]
"""One turn of a variant."""
Report = Callable[[str], None]


@dataclass(slots=True)
class Lab:
    """What was measured so far."""

    turns: list[Turn] = field(default_factory=list)
    combined: list[Turn] = field(default_factory=list)
    """Turns of the good changes together, and of the program as it is beside them."""

    @property
    def gains(self) -> list[Gain]:
        """Of each variant."""
        return gains(self.turns) if self.turns else []

    @property
    def together(self) -> Gain | None:
        """Of the good changes together; None where they were not tried."""
        if not self.combined:
            return None
        return next((one for one in gains(self.combined) if one.variant != AS_IS), None)


def run(lab: Lab, variants: Sequence[Variant], rounds: int, take: Take, report: Report) -> None:
    """All turns, into `lab`. In each round every variant has one, in an order of its own."""
    order = [AS_IS, *(one for one in variants if one != AS_IS)]
    _rounds(lab.turns, order, rounds, take, report)
    best = worth_combining(lab.gains)
    if len(best) > 1:
        _rounds(lab.combined, [AS_IS, together(best)], rounds, take, report)


def worth_combining(found: Sequence[Gain]) -> list[Variant]:
    """Those that are faster beyond chance, the best first; of two that set the same thing one."""
    good = sorted((one for one in found if one.is_worth), key=lambda one: -(one.gain or 0.0))
    kept: list[Variant] = []
    for one in good:
        keys = {key for variant in kept for key, _ in variant.changes}
        if not any(key in keys for key, _ in one.variant.changes):
            kept.append(one.variant)
    return kept


def expected(best: Sequence[Variant], found: Sequence[Gain]) -> float:
    """The product of their gains: what they would give if none took away from another."""
    product = 1.0
    for one in found:
        if one.variant in best:
            product *= one.gain or 1.0
    return product


def _rounds(
    into: list[Turn], variants: Sequence[Variant], rounds: int, take: Take, report: Report
) -> None:
    random = Random(SEED)
    dead: set[Variant] = set()
    for number in range(rounds):
        order = list(variants)
        if number:
            random.shuffle(order)
        for variant in order:
            if variant in dead:
                continue
            report(f"round {number + 1} of {rounds}: {variant.name}")
            turn = take(variant)
            into.append(turn)
            if turn.step_ms is None:
                dead.add(variant)
                report(f"{variant.name}: {turn.why_not}")
                if variant == AS_IS:
                    return
            elif not turn.made:
                dead.add(variant)  # it would only measure the program as it is again
