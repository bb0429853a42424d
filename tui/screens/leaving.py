"""Leaves an empty screen behind: what the terminal keeps of it is nobody's history."""

from typing import Final

from textual.drivers.linux_driver import LinuxDriver

CLEARED: Final = "\x1b[H\x1b[2J"


class LeavesEmpty(LinuxDriver):
    """Clears the alternate screen before it leaves it, for good or while it is suspended.

    tmux first makes that screen as high as the shell's was, and moves the rows that are then too
    many to the shell's history: after a window has become higher, some of ours.
    """

    def stop_application_mode(self) -> None:
        """Give the terminal back."""
        self.write(CLEARED)
        super().stop_application_mode()
