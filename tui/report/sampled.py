"""What samples of the main thread tell where no probe tells of steps."""

from tui.report.lines import labelled
from tui.snapshot import Snapshot
from tui.wording.sampled import (
    NAMES,
    WORTH,
    count_words,
    interval_words,
    share_words,
    step_words,
)


def sampled_lines(snapshot: Snapshot, width: int) -> list[str]:
    """A row for each thing that the thread did, with the interval of its share."""
    told = snapshot.sampled
    if told is None or not told.samples:
        return []
    rows = [f"of {count_words(told)}: {' · '.join(share_words(told))}   [py-spy]"]
    rows += [
        f"{NAMES.get(name, name)} {interval_words(told, name)}, nine times in ten"
        for name, share in told.shares.items()
        if name == "data" and share.mean >= WORTH
    ]
    return labelled("sampled", [*rows, step_words(told)], width)
