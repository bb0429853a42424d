"""Messages to bytes and back with the standard library alone: JSON, which the monitor validates.

Runs on the publisher's thread.
"""

import json
from typing import TYPE_CHECKING, Any, Final, Literal

from .identity import Identity
from .peers import PPM, Dump

if TYPE_CHECKING:
    from .collectives import Taken

MOST_REQUEST_BYTES: Final = 4096
SETTINGS: Final = (
    *("threads", "matmul_precision", "cudnn_benchmark", "deterministic", "anomaly", "autocast"),
    *("scaler", "optimizer", "foreach", "fused", "parameters", "parameter_bytes"),
    *("parameter_dtype", "parameter_device", "cudnn_tf32", "capability", "set_to_none"),
    *("failed_guard", "table_rows", "table_bytes", "table_lookups", "training_thread"),
    *("profiler", "unused_parameters", "graph_parameters", "unused_nodes"),
    *("graph_nodes", "graph_uses", "graph_added_bytes", "cpu_bf16", "host_parameters"),
    *("filters", "depthwise_filters", "repeated_layer", "cpu_intel", "cleared_parameters"),
    *("cleared_nodes", "cleared_weights", "cleared_for_input", "fusible"),
    *("same_products", "gathered_products", "unused_products", "resting_parameters"),
    *("recomputed_products", "repeated_backward", "penalty", "attention_weights"),
    "diagonal_solves",
    "formats",
    "step_operations",
    "groups",
    "alike_groups",
    "breakable_filters",
)
"""The fields of `settings.Settings` in their order, which a test holds together."""

_encode: Final = json.JSONEncoder(
    check_circular=False, ensure_ascii=False, separators=(",", ":")
).encode


class Subscribe:
    """A monitor watches: the fields of `requests.Subscribe`."""

    __slots__ = ("behind_ns", "count_flops", "device_ppm", "history", "key", "pid", "schema")

    def __init__(
        self,
        schema: int,
        pid: int,
        history: bool,
        behind_ns: int = 0,
        device_ppm: int = PPM,
        key: str = "",
        count_flops: bool = False,
    ) -> None:
        self.schema = schema
        self.pid = pid
        self.history = history
        self.behind_ns = behind_ns
        self.device_ppm = device_ppm
        self.key = key
        self.count_flops = count_flops


class AskCollectives:
    """What has the flight recorder? The fields of `requests.AskCollectives`."""

    __slots__ = ("at_ns", "entries", "key")

    def __init__(self, at_ns: int, entries: bool, key: str) -> None:
        self.at_ns = at_ns
        self.entries = entries
        self.key = key


class AskProfile:
    """A profiler's window. The fields of `requests.AskProfile`."""

    __slots__ = ("group", "key", "most_ns", "number", "operators", "steps")

    def __init__(
        self,
        steps: int,
        most_ns: int,
        operators: bool,
        key: str,
        group: str = "",
        number: int = 0,
    ) -> None:
        self.steps = steps
        self.most_ns = most_ns
        self.operators = operators
        self.key = key
        self.group = group
        self.number = number


class AskMemory:
    """What is allocated and not freed? The fields of `requests.AskMemory`."""

    __slots__ = ("for_ns", "host", "key")

    def __init__(self, for_ns: int, host: bool, key: str) -> None:
        self.for_ns = for_ns
        self.host = host
        self.key = key


Asked = Subscribe | AskCollectives | AskProfile | AskMemory
Request = Asked | Literal["leave", "stacks"]
"""`leave`: the monitor disconnects. `stacks`: it asks where every thread is."""
_FIELDS: Final[dict[str, tuple[tuple[type, ...], int]]] = {
    "subscribe": ((int, int, bool, int, int, str, bool), 3),
    "leave": ((int,), 1),
    "stacks": ((), 0),
    "collectives": ((int, bool, str), 3),
    "profile": ((int, int, bool, str, str, int), 4),
    "memory": ((int, bool, str), 3),
}
"""Types of each request's fields, and how many it has at least. What is appended by a newer monitor
is passed over."""
_MADE: Final[dict[str, type[Asked]]] = {
    "subscribe": Subscribe,
    "collectives": AskCollectives,
    "profile": AskProfile,
    "memory": AskMemory,
}


def decode_request(frame: bytes) -> Request:
    """What a monitor asked. Raises ValueError for a frame that is too long or no request."""
    if len(frame) > MOST_REQUEST_BYTES:
        raise ValueError(f"a request of {len(frame)} bytes")
    try:
        words = json.loads(frame)
    except RecursionError:
        raise ValueError("a request that is nested too deep") from None
    if not isinstance(words, list) or not words or not isinstance(words[0], str):
        raise ValueError("not a request")
    if words[0] not in _FIELDS:
        raise ValueError(f"Invalid value {words[0][:40]!r}")
    types, fewest = _FIELDS[words[0]]
    fields = words[1 : 1 + len(types)]
    types = types[: max(len(fields), fewest)]
    numbers = [it for it in fields if isinstance(it, int)]
    if tuple(map(type, fields)) != types or not all(-(2**63) <= it < 2**64 for it in numbers):
        raise ValueError(f"fields of {words[0]!r}")
    if words[0] in _MADE:
        return _MADE[words[0]](*fields)
    return "leave" if words[0] == "leave" else "stacks"


def encode_greeting(identity: Identity, now_ns: int) -> bytes:
    """The first answer to a new peer."""
    return _bytes(_encode(["hello", vars(identity), now_ns]))


def encode_bye(reason: str, steps: int) -> bytes:
    """The last message."""
    return _bytes(_encode(["bye", reason, steps]))


def encode_dump(dump: Dump) -> bytes:
    """Where every thread is."""
    return _bytes(_encode(["dump", *dump]))


def encode_collectives(taken: "Taken") -> bytes:
    """`messages.Collectives`: its fields but the last, a line end, the recorder's own JSON."""
    return b"%b\n%b" % (_bytes(_encode(["collectives", *taken[:-1]])), taken.body)


def encode_profile(answer: dict[str, Any]) -> bytes:
    """`messages.Profiled`: an empty head, a line end, the answer as an object."""
    return b'["profile"]\n' + _bytes(_encode(answer))


def encode_memory(answer: dict[str, Any]) -> bytes:
    """`messages.MemorySeen`, in the same way."""
    return b'["memory"]\n' + _bytes(_encode(answer))


def settings_row(reading: dict[str, Any] | None) -> list[Any] | None:
    """`settings.Settings`, of what is known by name."""
    return None if reading is None else [reading.get(name) for name in SETTINGS]


def encode_marks(head: tuple[Any, ...]) -> bytes:
    """`messages.Marks` up to the marks themselves: its fields but the last, and a line end."""
    return _bytes(_encode(["marks", *head])) + b"\n"


def _bytes(text: str) -> bytes:
    return text.encode("utf-8", "replace")  # a file's name may hold any bytes
