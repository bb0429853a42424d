"""A share as a horizontal bar."""


def share_bar(share: float, cells: int) -> str:
    """In eighths of a cell, never nothing: a share of 0 has no row."""
    eighths = max(1, round(share * cells * 8))
    return "█" * (eighths // 8) + " ▏▎▍▌▋▊▉"[eighths % 8].strip()
