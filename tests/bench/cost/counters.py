"""What a block of steps used, by every clock there is: read before it and after it."""

import ctypes
import os
import platform
import struct
import sys
from collections.abc import Callable
from time import perf_counter_ns, process_time_ns, thread_time_ns
from typing import Final

PERF_EVENT_OPEN: Final = {"x86_64": 298, "aarch64": 241}
"""Number of the system call."""
HARDWARE, INSTRUCTIONS = 0, 1
EXCLUDE_KERNEL_AND_HYPERVISOR: Final = 1 << 5 | 1 << 6
ATTRIBUTES_BYTES: Final = 128
CLOSE_ON_EXEC: Final = 8


class RunQueue:
    """How long this thread was ready to run while the machine gave its core to others.

    Kept out of a step's length: it is the neighbours' doing, and on a busy machine a hundred times
    what is to be measured.
    """

    def __init__(self) -> None:
        try:
            self._file: int | None = os.open("/proc/thread-self/schedstat", os.O_RDONLY)
        except OSError:
            self._file = None

    def waited_ns(self) -> int:
        """Since the thread began, as Linux counts it; where it does not, always 0."""
        if self._file is None:
            return 0
        return int(os.pread(self._file, 64, 0).split()[1])


class Instructions:
    """Of this thread, in user space, by the processor's own counter. Raises OSError where the
    system or the machine has none (most virtual machines)."""

    def __init__(self) -> None:
        number = PERF_EVENT_OPEN.get(platform.machine())
        if sys.platform != "linux" or number is None:
            raise OSError(f"no perf_event_open on {sys.platform} {platform.machine()}")
        wanted = struct.pack(
            "IIQQQQQ",
            HARDWARE,
            ATTRIBUTES_BYTES,
            INSTRUCTIONS,
            0,
            0,
            0,
            EXCLUDE_KERNEL_AND_HYPERVISOR,
        )
        attributes = ctypes.create_string_buffer(wanted, ATTRIBUTES_BYTES)
        call = ctypes.CDLL(None, use_errno=True).syscall
        self._file: int = call(number, attributes, 0, -1, -1, CLOSE_ON_EXEC)
        if self._file < 0:
            error = ctypes.get_errno()
            raise OSError(error, os.strerror(error))

    def count(self) -> int:
        """Since this was made."""
        return int.from_bytes(os.read(self._file, 8), sys.byteorder)


class Counters:
    """All of them, of the thread that makes this and of its process."""

    def __init__(self, publisher_ns: Callable[[], int]) -> None:
        queue = RunQueue()
        self._clocks: dict[str, Callable[[], int]] = {
            "objects": sys.getallocatedblocks,
            "queue_ns": queue.waited_ns,
            "publisher_ns": publisher_ns,
            "process_ns": process_time_ns,
            "thread_ns": thread_time_ns,
            "wall_ns": perf_counter_ns,
        }
        self.no_instructions = ""
        """Why they are not counted; "" where they are."""
        try:
            self._clocks["instructions"] = Instructions().count
        except OSError as error:
            self.no_instructions = f"perf_event_open: {error.strerror or error}"

    def read(self) -> dict[str, int]:
        """Each since some moment of its own."""
        return {name: clock() for name, clock in self._clocks.items()}
