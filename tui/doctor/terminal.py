"""What the terminal can show."""

from tui.doctor.check import Check
from tui.doctor.facts import Facts
from tui.doctor.missing import unread_check
from tui.snapshot import Snapshot

COLOURS = {"many": "256 colours or more", "16": "16 colours", "none": "no colours (NO_COLOR)"}
CHARSETS = {"unicode": "Unicode", "console": "the console's characters", "ascii": "ASCII alone"}


def terminal(facts: Facts | None, snapshot: Snapshot | None) -> Check:
    """Colours, characters, clipboard."""
    if facts is None:
        return unread_check("terminal", snapshot)
    told = facts.terminal
    if told.screen:
        said = f"{told.screen}: lines of text instead of a screen"
        return Check("terminal", "partly", said, "ssh -t, docker run -it; TERM=xterm-256color")
    clipboard = "clipboard" if told.clipboard else "no clipboard (y writes a file)"
    words = [f"TERM={told.term}", COLOURS[told.colours], CHARSETS[told.charset], clipboard]
    said = ", ".join(words)
    if told.charset == "ascii":
        fix = "LC_ALL=C.UTF-8 gpuwatch …" + (" (and tmux -u)" if told.tmux else "")
        return Check("terminal", "partly", said, fix)
    if told.colours == "16":
        return Check(
            "terminal", "partly", said, "export TERM=xterm-256color, if that is true of it"
        )
    return Check("terminal", "ok", said)
