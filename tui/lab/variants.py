"""What the lab can change from outside, and what it cannot."""

import json
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final

from ..errors import UsageError

DEFAULT: Final = "tf32,bf16,compile,workers=4,pin"
PRECISIONS: Final = ("fp32", "tf32", "bf16")
CANNOT: Final = (
    "cannot be changed from outside: the optimizer's own code, what a step computes, "
    "activation checkpointing, CUDA graphs, sharding; functions outside modules are not compiled"
)
EXAMPLES: Final = "fp32, tf32, bf16, compile, workers=8, pin, batch=2x"


@dataclass(frozen=True, slots=True)
class Variant:
    """One change, or several together; none for the program as it is."""

    name: str
    changes: tuple[tuple[str, Any], ...] = ()
    """Key and value for the probe."""

    @property
    def wanted(self) -> str:
        """For the probe's environment."""
        return json.dumps(dict(self.changes))

    @property
    def changes_batch(self) -> bool:
        """Steps then hold other samples: time a sample is what compares, and losses do not."""
        return any(key == "batch" for key, _ in self.changes)


AS_IS: Final = Variant("as it is")


def variants_of(text: str) -> list[Variant]:
    """Those that a person has listed. Raises UsageError for what is none."""
    found: list[Variant] = []
    for word in filter(None, (part.strip() for part in text.split(","))):
        variant = _variant_of(word)
        if variant not in found:
            found.append(variant)
    if not found:
        raise UsageError("--variants names none", f"There are: {EXAMPLES}")
    return found


def _variant_of(word: str) -> Variant:
    name, _, value = word.partition("=")
    if word in PRECISIONS:
        return Variant(word, (("precision", word),))
    if word in ("compile", "pin"):
        return Variant(word, ((word, True),))
    if name == "workers" and value.isdecimal():
        return Variant(word, (("workers", int(value)),))
    if name == "batch" and value.endswith("x"):
        try:
            times = float(value[:-1])
        except ValueError:
            times = 0.0
        if 0 < times <= 64:
            return Variant(f"batch={times:g}x", (("batch", times),))
    raise UsageError(f"there is no variant {word!r}", f"There are: {EXAMPLES}")


def together(variants: Sequence[Variant]) -> Variant:
    """All of them at once; of two that set the same thing the first."""
    changes: dict[str, Any] = {}
    names = []
    for variant in variants:
        if not any(key in changes for key, _ in variant.changes):
            changes |= dict(variant.changes)
            names.append(variant.name)
    return Variant(" + ".join(names), tuple(changes.items()))
