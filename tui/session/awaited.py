"""The picture of a process that nobody has looked at yet: there before all that makes it is loaded.

The session, the rules and the sources take longer to import than a screen takes to draw its first
frame. So that frame shows this picture, and the real one is made right after it.
"""

from collections.abc import Callable

from tui.errors import GpuwatchError
from tui.picture import RecordedPicture
from tui.snapshot import Snapshot, gone


class AwaitedPicture:
    """Shows `first` until the first frame after it was started, from then on what `make` returns
    (`tui.picture.RecordedPicture`).

    Not in `start`: that comes before the first frame has reached the terminal, and making the
    picture would hold it up.
    """

    def __init__(self, first: Snapshot, make: Callable[[], RecordedPicture]) -> None:
        self._first = first
        self._make = make
        self._picture: RecordedPicture | None = None
        self._is_due = False

    def start(self) -> None:
        """From the next frame on it is the real one."""
        self._is_due = True

    def _begin(self) -> None:
        """Make the real one. A process that cannot be watched any more is shown as gone."""
        self._is_due = False
        try:
            self._picture = self._make()
        except GpuwatchError as error:
            self._first = gone(self._first, str(error).splitlines()[0])
        else:
            self._picture.start()

    def snapshot(self) -> Snapshot:
        """The picture at this moment."""
        if self._is_due:
            self._begin()
        return self._first if self._picture is None else self._picture.snapshot()

    def close(self) -> None:
        """Let go of the target."""
        if self._picture is not None:
            self._picture.close()

    @property
    def news(self) -> str:
        """What was said last about a recording."""
        return "" if self._picture is None else self._picture.news

    def toggle_recording(self) -> None:
        """Begin a recording, or end it."""
        if self._picture is not None:
            self._picture.toggle_recording()
