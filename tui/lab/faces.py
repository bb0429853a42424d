"""What a lab has measured, as text and as JSON."""

from collections.abc import Sequence
from math import isfinite
from typing import Any, Final

from ..formats.report_layout import wrapped
from ..wording.numbers import milliseconds
from .gains import Gain
from .plan import Lab, expected, worth_combining
from .variants import AS_IS, CANNOT

SCHEMA: Final = 1
NAME: Final = 16


def text_lines(lab: Lab, width: int) -> list[str]:
    """The table, what adds up, and what cannot be changed."""
    found = lab.gains
    if not found:
        return ["no turn was finished"]
    lines = [f"  {'':{NAME}}{'step':>10}   gain (95% interval)"]
    for one in found:
        step = "-" if one.step_ms is None else milliseconds(one.step_ms)
        lines.append(f"  {one.variant.name:{NAME}}{step:>10}   {gain_words(one)}".rstrip())
        if one.loss is not None and one.variant != AS_IS:
            lines += wrapped(" " * (NAME + 15), loss_words(one), width)
        for note in one.notes:
            lines += wrapped(" " * (NAME + 15), note, width)
    lines += ["", *wrapped("", together_words(lab), width)]
    if any(one.variant.changes_batch for one in found):
        lines += wrapped("", "gains are by time a sample, since batches differ", width)
    lines += wrapped("", CANNOT, width)
    return lines


def gain_words(gain: Gain) -> str:
    """ "2.31x (2.20 to 2.43x)", or that chance may be all of it."""
    if gain.variant == AS_IS:
        return "1.00x"
    if gain.gain is None:
        return "not measured"
    text = f"{gain.gain:.2f}x ({gain.low:.2f} to {gain.high:.2f}x)"
    if gain.low <= 1.0 <= gain.high:
        return f"{text}: no change found"
    return text


def loss_words(gain: Gain) -> str:
    """ "loss 2.31, as it is 2.29 (steps 41 to 80): close"."""
    loss = gain.loss
    if loss is None:
        return ""
    first, last = loss.steps
    mean = f"{loss.mean:.4g}" if isfinite(loss.mean) else "not finite"
    word = {
        True: "close",
        False: "NOT close",
        None: "not resolved, the program's own turns differ as much: set a seed",
    }[loss.close]
    return f"loss {mean}, as it is {loss.as_is:.4g} (steps {first} to {last}): {word}"


def together_words(lab: Lab) -> str:
    """Which of the gains add up, and which are left out for their loss."""
    found = lab.gains
    left_out = [
        f"{one.variant.name} ({one.gain:.2f}x)"
        for one in found
        if one.is_faster and not one.is_worth and one.gain is not None
    ]
    words = _best_words(lab)
    if left_out:
        words += f" Left out, faster with another loss: {', '.join(left_out)}."
    return words


def _best_words(lab: Lab) -> str:
    found = lab.gains
    best = worth_combining(found)
    if not best:
        faster = any(one.is_faster for one in found)
        return f"No change is faster {'with a close loss' if faster else 'beyond chance'}."
    if len(best) == 1:
        return f"Best: {best[0].name}."
    both = lab.together
    product = expected(best, found)
    names = " + ".join(one.name for one in best)
    if both is None:
        return f"Worth it: {names}; not tried together."
    if both.gain is None:
        return f"Worth it: {names}; not measured together: {'; '.join(both.notes)}."
    text = f"Together, {names}: {both.gain:.2f}x ({both.low:.2f} to {both.high:.2f}x)"
    if both.high < product:
        return f"{text}, less than {product:.2f}x, the product: they remove the same time in part."
    return f"{text}; the product is {product:.2f}x: they add up."


def as_json(lab: Lab) -> dict[str, Any]:
    """One object."""
    both = lab.together
    return {
        "schema": SCHEMA,
        "variants": [_row(one) for one in lab.gains],
        "together": None if both is None else _row(both),
        "turns": [
            {
                "variant": turn.variant.name,
                "step_ms": None if turn.step_ms is None else round(turn.step_ms.mean, 5),
                "steps": turn.steps,
            }
            for turn in (*lab.turns, *lab.combined)
        ],
    }


def _row(one: Gain) -> dict[str, Any]:
    return {
        "variant": one.variant.name,
        "gain": _number(one.gain),
        "interval": None if one.gain is None else [_number(one.low), _number(one.high)],
        "step_ms": _number(one.step_ms),
        "loss": _number(one.loss.mean) if one.loss else None,
        "loss_close": one.loss.close if one.loss else None,
        "notes": _notes(one.notes),
    }


def _notes(notes: Sequence[str]) -> list[str]:
    return list(notes)


def _number(value: float | None) -> float | None:
    return None if value is None or not isfinite(value) else float(f"{value:.6g}")
