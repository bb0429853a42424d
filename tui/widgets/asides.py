"""A sentence without room for all of it: rather whole without its parentheses than cut."""

from tui.widgets.spans import wrap


def is_cut(text: str, width: int, lines: int) -> bool:
    """Whether it takes more than so many lines."""
    return len(wrap(text, width, lines + 1)) > lines


def within(text: str, width: int, lines: int = 1) -> list[str]:
    """The text over at most `lines` lines: whole, or else without its asides, or else clipped."""
    shown = without_asides(text) if is_cut(text, width, lines) else text
    return wrap(shown, width, lines)


def without_asides(text: str) -> str:
    """What stands outside of parentheses. Those that follow a name at once are calls."""
    kept: list[str] = []
    depth = 0
    for at, sign in enumerate(text):
        if sign == "(" and (depth or text[at - 1 : at] == " "):
            depth += 1
            if depth == 1:
                kept.pop()
        elif sign == ")" and depth:
            depth -= 1
        elif not depth:
            kept.append(sign)
    return "".join(kept)
