"""The idle ledger in words: whole percents that add up to 100."""

from typing import Final

from ..verdict.busy_parts import BUSY
from ..verdict.idle_ledger import IDLE, IdleLedger, Part

PARTS: Final[dict[Part, str]] = {
    "used": "well used",
    "busy": "busy",
    "underfilled": "underfilled",
    "fp32": "fp32",
    "collectives": "collectives",
    "others": "others' work",
    "input": "waits for data",
    "pauses": "pauses",
    "copies": "copies",
    "allocator": "allocator",
    "sync": "after waits for it",
    "host": "Python",
    "launch": "launching",
    "unexplained": "unexplained",
}
"""What each part of the GPU's time is called: busy ones first, then why it idled."""


def whole_percents(ledger: IdleLedger) -> dict[Part, int]:
    """Of each part; they add up to 100: what rounding leaves goes to those that lost most by it."""
    exact = {part: 100 * ledger.shares[part] for part in (*BUSY, *IDLE)}
    whole = {part: int(value) for part, value in exact.items()}
    by_loss = sorted(exact, key=lambda part: whole[part] - exact[part])
    for part in by_loss[: max(0, 100 - sum(whole.values()))]:
        whole[part] += 1
    return whole


def ledger_words(ledger: IdleLedger, cells: int | None = None) -> list[str]:
    """ "well used 43%", "waits for data 55%", "launching 2%", in `cells` with " · " between them:
    where they do not fit the smallest are summed up as "rest"."""
    shown = {part: value for part, value in whole_percents(ledger).items() if value}
    rest = 0
    while True:
        words = [f"{PARTS[part]} {value}%" for part, value in shown.items()]
        words += [f"rest {rest}%"] if rest else []
        if cells is None or len(shown) < 2 or len(" · ".join(words)) <= cells:
            return words
        smallest = min(shown, key=shown.__getitem__)
        rest += shown.pop(smallest)
