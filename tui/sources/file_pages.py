"""What of a process's memory is pages of files: they are let go when memory is short.

A dataset that is mapped into memory makes a process larger with every batch, without holding any.
Read from /proc: what psutil calls shared is file pages and shared memory, and the latter is held.
"""


def resident_file_bytes(pid: int) -> int | None:
    """Pages of files in the resident memory; None where the kernel does not tell."""
    return _figures(f"/proc/{pid}/status").get("RssFile")


def proportional_bytes(pid: int) -> tuple[int | None, int | None]:
    """The proportional set size, and the pages of files in it. Walks the page table."""
    figures = _figures(f"/proc/{pid}/smaps_rollup")
    return figures.get("Pss"), figures.get("Pss_File")


def _figures(path: str) -> dict[str, int]:
    """The lines in kB, as bytes."""
    figures: dict[str, int] = {}
    try:
        with open(path) as lines:
            for line in lines:
                name, _, figure = line.partition(":")
                if figure.endswith(" kB\n"):
                    figures[name] = int(figure.split()[0]) * 1024
    except OSError:
        return {}
    return figures
