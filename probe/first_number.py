"""What takes numbers off a device: loaded when a run has its first."""

from typing import TYPE_CHECKING

from .recorder import Recorder

if TYPE_CHECKING:
    from .numerics import Numerics


def numerics_of(recorder: Recorder) -> "Numerics":
    """The process's own. On the training thread, which cannot fork while it imports."""
    if recorder.notes.numerics is None:
        from .numerics import Numerics

        recorder.notes.numerics = Numerics(recorder)
    held: Numerics = recorder.notes.numerics
    return held
