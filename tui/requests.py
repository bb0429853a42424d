"""What a monitor asks of the probe: the requests on its socket.

The probe reads them with the standard library (`probe.encoding`), by the same fields, which are
only ever appended, with defaults: a newer probe reads the requests of an older monitor.
"""

import msgspec


class Subscribe(msgspec.Struct, frozen=True, array_like=True, tag="subscribe"):
    """A monitor's request; repeated every second, it is also the sign that somebody watches."""

    schema: int
    pid: int
    """Unused: the kernel knows the monitor's."""
    history: bool
    """Send the ring's past first."""
    behind_ns: int = 0
    """How far the device was behind the host at the last step that was seen."""
    device_ppm: int = 3_000
    """Part of the training thread's time, in millionths, that marks on the device may take."""
    key: str = ""
    """What the file beside the socket holds."""
    count_flops: bool = False
    """Count the FLOPs of one step, once in the run."""


class Leave(msgspec.Struct, frozen=True, array_like=True, tag="leave"):
    """A monitor goes away politely."""

    pid: int


class AskStacks(msgspec.Struct, frozen=True, array_like=True, tag="stacks"):
    """Where is every thread? Answered only while no step progresses, with nothing beside."""


class AskCollectives(msgspec.Struct, frozen=True, array_like=True, tag="collectives"):
    """What has PyTorch's flight recorder? Counters at once; entries once a step has ended."""

    at_ns: int
    """Not before this moment (perf_counter_ns): all ranks read in the same step, for one pause."""
    entries: bool
    key: str
    """As in `Subscribe`: who asks need not watch."""


class AskProfile(msgspec.Struct, frozen=True, array_like=True, tag="profile"):
    """A profiler's window over some steps."""

    steps: int
    """0: none, only how many collectives each process group has issued."""
    most_ns: int
    """Longest that each of its recordings may last."""
    operators: bool
    """One more step first, slower, that records what operator and shapes each kernel is of."""
    key: str
    group: str = ""
    """Name of a process group: the window begins once that has issued `number` collectives, so that
    all ranks record the same steps."""
    number: int = 0


class AskMemory(msgspec.Struct, frozen=True, array_like=True, tag="memory"):
    """What is allocated for so long and not freed?"""

    for_ns: int
    host: bool
    """With Python's own allocations, which slows Python down by tens of percent meanwhile."""
    key: str


Request = Subscribe | Leave | AskStacks | AskCollectives | AskProfile | AskMemory
"""All that a monitor can ask for. An older probe does not answer what it does not know."""
