"""The process's own host memory, from /proc."""


def resident_bytes() -> tuple[int | None, int | None]:
    """Resident memory of this process, and the pages of files in it; None where there is no /proc.

    A dataset that is mapped into memory makes it larger with every batch, without holding any.
    """
    figures: dict[bytes, int] = {}
    try:
        with open("/proc/self/status", "rb") as status:
            for line in status:
                if line.startswith((b"VmRSS:", b"RssFile:")):
                    name, figure, _ = line.split()
                    figures[name] = int(figure) * 1024
    except OSError:
        pass
    return figures.get(b"VmRSS:"), figures.get(b"RssFile:")
