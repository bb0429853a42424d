"""Where the GPU's time goes, in one row: what it was used for, and what it idled for."""

from collections.abc import Sequence
from typing import Final

from ..verdict.idle_ledger import IdleLedger
from ..wording.ledger import ledger_words
from .panel import Panel, View
from .text import Row, Span, ends

LABEL: Final = " GPU time  "
SOURCE_FROM: Final = 100
"""Width from which its source is named."""


class LedgerPanel(Panel):
    """One row; nothing where the GPU's clock is not read."""

    def rows(self, view: View, width: int, height: int) -> Sequence[Row]:
        """Of the verdict's window."""
        ledger = view.snapshot.ledger
        return [] if ledger is None else [ledger_row(ledger, width)]


def ledger_row(ledger: IdleLedger, width: int) -> Row:
    """ " GPU time  well used 43% · waits for data 55% · launching 2%"."""
    tag = f"[{ledger.source}] " if width >= SOURCE_FROM else ""
    words = ledger_words(ledger, width - len(LABEL) - len(tag) - 1)
    return ends((Span(LABEL, "dim"), Span(" · ".join(words))), (Span(tag, "dim"),), width)
