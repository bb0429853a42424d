"""An optimizer with a group for each parameter, which it updates one after the other."""

from collections.abc import Collection
from dataclasses import dataclass
from typing import Final

from ..window import RunFacts

FEWEST_GROUPS: Final = 16
"""Fewer are hardly slower than one."""
MOST_APART: Final = 0.5
"""Of the groups, those that have settings of their own: else merging them gives little."""
LEFT_OF_GROUPS: Final = (1.0, 1.5, 3.0)
"""What an update by groups takes of one by as many more: as few of them, each of more tensors. A
group of 198 took 96 us on an H200 (AdamW), and 26 instead gave 1.5 and 1.75x of steps of which it
was 44 %."""


@dataclass(frozen=True, slots=True)
class AlikeGroups:
    """Groups that could be fewer."""

    now: int
    then: int

    @property
    def left(self) -> tuple[float, float, float]:
        """Of the update's time: the least, the middle, the most. Each 0 to 1."""
        least, middle, most = (min(1.0, self.then / self.now * one) for one in LEFT_OF_GROUPS)
        return least, middle, most

    @property
    def advice(self) -> str:
        """What to do."""
        return (
            f"one group for all parameters with the same settings, {self.then} instead of "
            f"{self.now}: each group is updated by itself"
        )


def alike_groups(window: RunFacts, together: Collection[str]) -> AlikeGroups | None:
    """On a GPU, of classes that update the tensors of a group `together`: of others each tensor is
    by itself in any group. None where most differ."""
    settings = window.settings
    if settings is None or not window.gpu_present or settings.parameter_device == "cpu":
        return None
    if settings.optimizer not in together:
        return None
    now, alike = settings.groups or 0, settings.alike_groups or 0
    if now < FEWEST_GROUPS or now - alike > MOST_APART * now or settings.foreach is False:
        return None
    return AlikeGroups(now, now - alike)
