"""The help: every key, and how to read the picture."""

from textual.app import ComposeResult
from textual.binding import Binding
from textual.containers import VerticalScroll
from textual.screen import ModalScreen
from textual.widgets import Static

from tui.keys import ACTIONS
from tui.widgets.charset import Charset

READING = """\
▲ critical  ◆ warning  ● information  ○ no verdict yet
≤ 2.3x faster   an upper bound: all of that time removed
~2.3x faster    an estimate
[hook]          measured by the probe inside the training process
[py-spy]        sampled from outside, without pausing it
[nvml] [proc]   read from the driver, from the kernel
█ mean of a column    ░ above it: its peak    ┴ a step begins
blank: not measured"""


def help_text(charset: Charset) -> str:
    """Keys, then how to read."""
    keys = [f"{action.shown:<12}{action.description}" for action in ACTIONS]
    lines = ["Keys", *keys, "", "How to read it", *READING.splitlines()]
    return "\n".join(charset.translate(line) for line in lines)


class HelpScreen(ModalScreen[None]):
    """Any of its keys closes it."""

    BINDINGS = [
        Binding("escape,question_mark,h,f1,space,enter,q", "dismiss", "back", show=False),
    ]

    def __init__(self, charset: Charset) -> None:
        super().__init__()
        self._charset = charset

    def compose(self) -> ComposeResult:
        """The text, in a box that scrolls where the terminal is short."""
        with VerticalScroll(id="help"):
            yield Static(help_text(self._charset), markup=False)
