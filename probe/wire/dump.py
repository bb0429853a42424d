"""One look at all threads of a process that stands still, as the probe itself took it."""

import msgspec


class ThreadStack(msgspec.Struct, frozen=True, array_like=True):
    """Where one thread is."""

    name: str
    training: bool
    """It is the one that trains; the main thread where none has trained yet."""
    frames: list[tuple[str, str, int]]
    """Function, file and line, outermost first."""
    cut: bool
    """It has more frames, further out."""


class Dump(msgspec.Struct, frozen=True, array_like=True, tag="dump"):
    """The answer to `AskStacks`: to nobody who has not asked."""

    taken_ns: int
    """perf_counter_ns."""
    threads: list[ThreadStack]
    """The training thread first."""
    left_out: int
    """Threads beyond those."""
    why_not: str = ""
    """Why there is none; "" where there is."""
