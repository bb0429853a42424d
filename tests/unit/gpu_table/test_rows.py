"""The table's rows, and what makes one fail."""

from tests.gpu.graphs import compared
from tests.measuring.claims import Claim, broken


def test_a_row() -> None:
    line = Claim("partition", "GPU-bound", "0.1 %", "1 %", True).line()
    assert line == "| partition | GPU-bound | 0.1 % | 1 % | PASS |"


def test_a_row_for_comparison_has_no_word() -> None:
    assert Claim("cost, A/A", "2 ms", "+1 us", "", None).line().endswith("|  |  |")


def test_what_could_not_be_measured_fails_and_names_the_error() -> None:
    text = "Traceback\n  File x\nValueError: no device\n\nfrom user code:\n  step()"
    claim = broken("lag", "fp32", text)
    assert claim.met is False
    assert claim.measured == "not measured: ValueError: no device"


def test_captures_that_are_the_same() -> None:
    bare = {"losses": ["0x1p-1", "0x1p-2"], "counts": {"stats": {"unique_graphs": 1}}}
    assert compared(bare, dict(bare)) == []


def test_captures_that_differ() -> None:
    bare = {"losses": ["0x1p-1", "0x1p-2"], "counts": {"stats": {"unique_graphs": 1}}}
    probed = {"losses": ["0x1p-1", "0x1p-3"], "counts": {"stats": {"unique_graphs": 2}}}
    losses, counts = compared(bare, probed)
    assert losses == "losses from step 2 of 2 on"
    assert "'unique_graphs': 2" in counts
