"""One line of a table: what was promised, and what was measured."""

from dataclasses import dataclass, field
from typing import Any, Final

HEADER: Final = "| item | loop | measured | bar | |\n|---|---|---|---|---|"


@dataclass(frozen=True)
class Claim:
    """A promise and its measurement."""

    item: str
    loop: str
    measured: str
    """In words and units, as the table shows it."""
    bar: str
    met: bool | None
    """None: there is nothing to meet (a row for comparison), or it is not resolved."""
    figures: dict[str, Any] = field(default_factory=dict)
    """All that was measured, for the JSON."""

    def line(self) -> str:
        """A row of a markdown table."""
        word = {True: "PASS", False: "FAIL", None: ""}[self.met]
        return f"| {self.item} | {self.loop} | {self.measured} | {self.bar} | {word} |"


def broken(item: str, loop: str, error: BaseException | str) -> Claim:
    """A row for what could not be measured at all, with its cause."""
    return Claim(item, loop, f"not measured: {cause(error)}", "", False, {"error": str(error)})


def cause(error: BaseException | str) -> str:
    """One line of an error or of a process's last words: the last that names an error."""
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    named = [line for line in lines if "Error" in line or "Exception" in line or ".exc." in line]
    return (named or lines or [type(error).__name__])[-1][:200]
