"""How many steps may be marked on the device: the arithmetic of the probe's promise on cost."""

from typing import Final

SHARE: Final = 0.003
"""Part of the training thread's time that device marks may take (diagnosis.md 2.1: 0.3 %). With
the host's marks that leaves a 20 ms step below 0.5 %, and a 5 ms step below 1 %."""
STEP_NS: Final = 18_000
"""What they may take of a step on average, however long it is: with the host's marks less than the
promised 30 us. Measured on an H200: 35 to 60 us a stamped step, so every second or third is."""
GUESSED_NS: Final = 40_000
"""Cost of a stamped step before one was measured."""
KEPT_STEPS: Final = 4
"""Unspent budget that is kept, in stamped steps: a pause must not be followed by a burst."""
SMOOTHING: Final = 0.25
"""Weight of the newest turn in the published cost."""
NEAR_NS: Final = 30_000
NEAR_SHARE: Final = 0.002
"""Marks closer than both share one event: 0.2 points of a step, below what is promised."""


class Budget:
    """A purse that fills with the time that passes and pays for what was spent. All ns."""

    def __init__(self) -> None:
        self.cost_ns = GUESSED_NS
        """Smoothed cost of one stamped step, with the reading of another."""
        self._purse_ns = KEPT_STEPS * GUESSED_NS

    def spend(self, spent_ns: int, stamped: int) -> None:
        """So much was spent since the last call, on so many complete steps."""
        self._purse_ns -= spent_ns
        if stamped:
            self.cost_ns += round(SMOOTHING * (spent_ns // stamped - self.cost_ns))

    def earn(self, turn_ns: int, steps: int) -> None:
        """So much time passed, in so many steps."""
        earned_ns = min(round(SHARE * turn_ns), STEP_NS * steps)
        self._purse_ns = min(self._purse_ns + earned_ns, self._most_ns(earned_ns))

    def affordable(self) -> int:
        """Steps that may be stamped now."""
        return max(0, self._purse_ns // max(1, self.cost_ns))

    def _most_ns(self, earned_ns: int) -> int:
        return max(KEPT_STEPS * self.cost_ns, 2 * earned_ns)


def near_ns(step_ns: int) -> int:
    """How soon after another a mark may share its event, in a run of such steps."""
    return min(NEAR_NS, round(NEAR_SHARE * step_ns))
