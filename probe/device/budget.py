"""How many steps may be marked on the device: the arithmetic of the probe's promise on cost."""

from typing import Final

PPM: Final = 3_000
"""Part of the training thread's time that device marks may take while nobody asks for another: with
the host's marks a 20 ms step stays below 0.5 %. Measured on an H200: 50 to 160 us a stamped step
(reading an event fetches what the device wrote, 3 us each; caches are cold after a wait), so that
of steps of 2 ms one in 8 to 26 is stamped."""
MOST_PPM: Final = 20_000
"""Of what a monitor may ask for."""
STAMPED_S: Final = 50
"""Steps a second that are stamped at most, while that delays the host: 500 make a window of ten
seconds, and each costs the publisher 30 us besides."""
BEHIND_NS: Final = 1_000_000
BEHIND_SHARE: Final = 0.02
"""A device that is this far behind does not wait for the host: then its marks delay nothing, and
may take this part of the host's time."""
GUESSED_NS: Final = 80_000
"""Cost of a stamped step before one was measured."""
BURST_STEPS: Final = 3
"""Steps stamped in a row: to begin and to end costs something too."""
KEPT_STEPS: Final = 6
"""Unspent budget that is kept, in stamped steps: a pause must not be followed by a long burst."""
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

    def earn(self, turn_ns: int, ppm: int, behind_ns: int) -> None:
        """So much time passed, of which such a part may be spent, with the device so far behind the
        host."""
        if behind_ns >= BEHIND_NS:
            earned_ns = round(BEHIND_SHARE * turn_ns)
        else:
            most_ns = STAMPED_S * self.cost_ns * turn_ns // 1_000_000_000
            earned_ns = min(turn_ns * min(ppm, MOST_PPM) // 1_000_000, most_ns)
        self._purse_ns = min(self._purse_ns + earned_ns, self._most_ns(earned_ns))

    def affordable(self) -> int:
        """Steps that may be stamped now; 0 while there are not enough for a burst."""
        steps = self._purse_ns // max(1, self.cost_ns)
        return steps if steps >= BURST_STEPS else 0

    def _most_ns(self, earned_ns: int) -> int:
        return max(KEPT_STEPS * self.cost_ns, 2 * earned_ns)


def near_ns(step_ns: int) -> int:
    """How soon after another a mark may share its event, in a run of such steps."""
    return min(NEAR_NS, round(NEAR_SHARE * step_ns))
