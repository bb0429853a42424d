"""Moments at which the GPU was idle, or busy: which samples tell what it waits for."""

from typing import Final

IDLE_BELOW: Final = 5.0
"""Percent of a reading in which anything ran: below, the GPU was idle all through it. Of 283 such
readings in two recorded runs 279 were 0."""
BUSY_FROM: Final = 75.0
"""From here on a moment of the reading is three times as likely a busy one. In between nothing is
known of a moment: steps shorter than a reading leave it at 25 to 70."""
MOMENT_NS: Final = 8_000_000
"""How well a moment is known: a GPM reading speaks of 85 to 100 ms before it came, and py-spy
writes a sample down up to 5 ms after it was taken. So much on both sides must be alike."""
