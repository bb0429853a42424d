"""Which of many lines are seen."""


def first_seen(chosen: int, first: int, count: int, room: int) -> int:
    """The first of the lines that are seen, moved no further than needed for the chosen one to be
    among them, and so that no room is left empty."""
    if chosen < first:
        first = chosen
    if chosen >= first + room:
        first = chosen - room + 1
    return max(0, min(first, count - room))
