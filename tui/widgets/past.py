"""What was said before, as a note beside the verdict's heading."""

from tui.snapshot import Snapshot
from tui.widgets.spans import cell_len
from tui.wording.past import lasted
from tui.wording.words import ABSTAINS, name_of

BEFORE = "before: "


def past_note(snapshot: Snapshot, width: int) -> str:
    """ "before: compute 2h10m → host 9m00s", the oldest left out where there is no room; "" where
    nothing else was said."""
    said = [
        f"{name_of(one.kind, one.sub)} {lasted(one)}"
        for one in snapshot.timeline.said[:-1]
        if one.kind not in ABSTAINS
    ]
    while said and cell_len(BEFORE + " → ".join(said)) > width:
        del said[0]
    return BEFORE + " → ".join(said) if said else ""
