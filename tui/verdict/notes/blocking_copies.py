"""Pinned batches that are copied without `non_blocking`."""

import re
from typing import Final

from tui.verdict.findings import Note
from tui.verdict.notes.costs import first_at, in_samples, sampled
from tui.verdict.places import main_places
from tui.verdict.window import FrameShare, Window

_WHOLE_CALL: Final = re.compile(r"\.(to|cuda)\((?P<given>[^()]*(\([^()]*\)[^()]*)*)\)")
_NO_COPY: Final = re.compile(r"non_blocking|\*|dtype|float|half|double|int|long|bool|memory_format")
"""What a call says that does not block, may not, or changes a type rather than a place."""


def blocking_copies(window: Window) -> Note | None:
    """The host waits in `.to(device)` until the batch is there. The GPU feels that only where it
    has caught up; that part is the verdict's."""
    loader = window.loaders[0] if window.loaders else None
    if loader is None or not loader.pinned:
        return None
    share = sampled(window, _blocks)
    if not share:
        return None
    where = first_at(main_places(window), _blocks)
    text = f"batches are pinned, but the host waits for their copy{where}: non_blocking=True"
    return Note(text, in_samples(share), "py-spy")


def _blocks(place: FrameShare) -> bool:
    """Only calls that end on their line: what follows on the next may be `non_blocking`."""
    calls = [match["given"] for match in _WHOLE_CALL.finditer(place.line)]
    return bool(calls) and not any(_NO_COPY.search(given) for given in calls)
