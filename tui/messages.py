"""What the probe sends: versioned structs, decoded with validation by msgspec.

The probe has the same fields in `probe.encoding` and writes them as JSON with the standard library:
a training environment needs no codec. Every message is a tagged array: fields are only ever
appended, with defaults, so an older reader skips what it does not know. What a monitor asks is in
`requests`.
"""

from typing import Final

import msgspec

from ..probe.wire.marks import MARK_BYTES
from .settings import Settings

SCHEMA: Final = 3
"""Version of these structs: raised when a field changes meaning, not when one is appended."""

MAX_FRAME_BYTES: Final = 4 * 1024 * 1024
"""A reader refuses longer frames (a full history of 4,096 steps is under 1 MB)."""


class Loader(msgspec.Struct, frozen=True, array_like=True):
    """One DataLoader (or wrapped iterable) as its iterator was last made or reset."""

    key: int
    """Identity of the loader within the process."""
    kind: str
    """Class name of the loader's iterator, "stream" of an iterable dataset, or "wrap"."""
    num_workers: int | None
    """0 loads in the training thread; None where nobody can know (a wrapped iterable)."""
    prefetch_factor: int | None
    pin_memory: bool
    persistent_workers: bool
    batch_size: int | None
    batches: int | None
    """Length of the loader: where torch itself counts it, else as its first whole epoch had."""
    worker_pids: tuple[int, ...]
    dataset: str
    """Class name of the dataset."""
    iterations: int = 1
    """How often an iterator was made or reset: epochs, usually."""
    evaluation: bool = False
    """Its batches have been used for evaluation."""
    batch_bytes: int | None = None
    """Of the tensors of a batch that was looked at; None while none was."""
    batch_tensors: int | None = None
    batch_device: str | None = None
    """Where its first tensor lies: "cpu", "cuda"."""
    pinned: bool | None = None
    """Whether that lies in pinned memory; None where it is not on the CPU, or the process uses no
    accelerator."""
    varies: bool | None = None
    """Its batches differ in size, and not only the last of an epoch; None until that is known."""
    trains: bool = False
    """A backward has followed a batch of it. An evaluation that leaves gradients on does not show
    that it is one before its first end."""

    @property
    def restarts(self) -> bool:
        """Each of its iterators starts workers of its own: they do not persist."""
        return bool(self.num_workers) and not self.persistent_workers


class Hello(msgspec.Struct, frozen=True, kw_only=True):
    """Who the process is. Also the JSON on the state page."""

    schema: int
    pid: int
    start_ticks: int
    """Field 22 of /proc/PID/stat: with the pid it names the process for ever."""
    started_unix: float
    argv: list[str]
    cwd: str
    executable: str
    python: str
    torch: str | None
    probe: str
    host: str
    uid: int
    rank: int | None
    local_rank: int | None
    world_size: int | None
    restart_count: int | None
    endpoint: str | None
    """`ipc://…`, or None with a `fault` where no socket could be had."""
    fault: str | None
    """Why the probe is disarmed or has no socket."""


class Greeting(msgspec.Struct, frozen=True, array_like=True, tag="hello"):
    """First answer to a new peer."""

    hello: Hello
    now_ns: int
    """perf_counter_ns of the sender: the reader shares the clock on one host and checks it."""


class PaddingSeen(msgspec.Struct, frozen=True, array_like=True):
    """How much of a batch is padding, by its attention mask or by its ids."""

    rows: int
    """That were looked at: nearly always all."""
    length: int
    """Positions of each."""
    kept: int
    """How many of all their positions are no padding."""
    longest: int
    """How many of the row that has most."""
    by_ids: bool = False
    """There is no mask: one id ends the rows, or begins them, and is nowhere else in them."""


class BatchSeen(msgspec.Struct, frozen=True, array_like=True):
    """What a batch looks like."""

    samples: int | None
    """First dimension of its first tensor that has one."""
    tensors: int
    bytes: int
    device: str | None
    """Type of the first tensor's device."""
    pinned: bool | None
    """Whether the first tensor lies in pinned memory; None where it is not on the CPU, or the
    process uses no accelerator."""
    tokens: int | None = None
    """Of all samples, padding too, where its first tensor may be a text: samples by positions."""
    padding: PaddingSeen | None = None
    """None where it has no mask on the host."""
    lengths: tuple[int, ...] = ()
    """Of it and of what it holds, where these are lists or tuples."""


class Passed(msgspec.Struct, frozen=True, array_like=True):
    """A device has passed these marks; the last of them at `t_ns` of the host at the latest."""

    t_ns: int
    device: int
    times: list[tuple[int, int]]
    """(detail of the STAMPED mark, ns on the device's clock), in order of the marks."""


class Aligned(msgspec.Struct, frozen=True, array_like=True):
    """An idle stream passed an event between two moments of the host."""

    device: int
    before_ns: int
    device_ns: int
    after_ns: int


class Allocated(msgspec.Struct, frozen=True, array_like=True):
    """What a device's allocator holds at a step's end: bytes, and counts since the start."""

    t_ns: int
    device: int
    at_backward: int | None
    allocated: int
    reserved: int
    active: int
    peak_allocated: int
    peak_reserved: int
    retries: int
    ooms: int
    inactive_split: int | None
    device_allocs: int | None
    allocations: int | None
    lowest: int
    fraction: float | None
    device_frees: int | None = None


class Noted(msgspec.Struct, frozen=True, array_like=True):
    """A number that a run has beside its times."""

    t_ns: int
    kind: str
    """"norm" of the gradients, "log" of the user's, "skipped" steps in a row of a GradScaler,
    "total" of a unit since the start, "flops" of a step, "refused": why they were not counted;
    "tokens" of a sample, as a batch looks."""
    name: str
    figure: float
    """0 where it is no finite number."""
    why: str = ""
    """ "nan", "inf" or "-inf"; the reason of a refusal."""


class Marks(msgspec.Struct, frozen=True, array_like=True, tag="marks"):
    """The marks since the last message, and what their numbers do not hold: a line of JSON, then
    two columns in the machine's byte order, all times (perf_counter_ns) and all words
    (`marks.word_of`), 8 bytes each."""

    sequence: int
    """Per peer, so that a loss is counted."""
    sent_ns: int
    marks: int
    """Since the start of the process: the number behind that of the last one here."""
    steps: int
    """Completed since the start, by the probe's own simple rule (`figures.StepCount`)."""
    names: list[str]
    """All user phases so far: a mark of one has its index."""
    loaders: list[tuple[int, Loader, bool, int]]
    """(detail of the LOADER mark, loader, whether gradients were on, iterator)."""
    batches: list[tuple[int, BatchSeen]]
    """(detail of the BATCH mark, what was seen)."""
    rss_bytes: int | None
    file_bytes: int | None
    mark_cost_ns: int | None
    """As `steps.Batch` has it."""
    fault: str | None
    settings: Settings | None
    refused: int
    switched: list[tuple[int, bool]]
    """(detail of a STAMPED mark, whether complete steps are stamped on the device from there)."""
    passed: list[Passed]
    aligned: list[Aligned]
    allocated: list[Allocated]
    stamp_cost_ns: int | None
    """Of one stamped step; None without a device."""
    stamps_dropped: int
    body: bytes = b""
    """Behind the line end; "" in the line itself."""
    notes: list[Noted] = []
    update_wrapper_ns: tuple[int, int] | None = None
    """As `steps.Batch` has it."""

    @property
    def first(self) -> int:
        """Number of the first mark here."""
        return self.marks - len(self.body) // MARK_BYTES


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


class Bye(msgspec.Struct, frozen=True, array_like=True, tag="bye"):
    """The probe is leaving: `reason` is "uninstalled", "exiting", "disarmed", or "raised " with the
    type of an exception that nobody caught."""

    reason: str
    steps: int


class DdpTimes(msgspec.Struct, frozen=True, array_like=True):
    """What a DistributedDataParallel measured in one iteration by itself: in its first ten and
    every hundredth from then on. 0: not measured."""

    iteration: int
    comm_ns: int
    """From the first gradient bucket's all-reduce to the end of the last; waiting included."""
    overlap_ns: int
    """Of that, while the backward still computed."""
    backward_ns: int
    forward_ns: int
    bucket_cap_bytes: int
    gradient_as_bucket_view: int
    parameter_bytes: int
    buckets: int


class Profiled(msgspec.Struct, frozen=True, array_like=True, tag="profile"):
    """The answer to `AskProfile`: a line of JSON, then an object (`sources.deep_answers`)."""

    body: bytes = b""


class MemorySeen(msgspec.Struct, frozen=True, array_like=True, tag="memory"):
    """The answer to `AskMemory`, in the same way."""

    body: bytes = b""


class Collectives(msgspec.Struct, frozen=True, array_like=True, tag="collectives"):
    """What the flight recorder has: a line of JSON, then the recorder's own JSON."""

    taken_ns: int
    unix_ns: int
    """The same moment on the clock of the entries (time_ns)."""
    entries: bool
    """All that it holds; else counters alone."""
    cost_ns: int
    """To the thread that read it: the training thread, for entries."""
    modules: list[DdpTimes]
    why_not: str
    """Why there is none; "" where there is."""
    frames: list[tuple[str, str, int]] = []
    """With counters, where the training thread stands: function, file and line, outermost first."""
    body: bytes = b""


Reply = Greeting | Marks | Dump | Collectives | Profiled | MemorySeen | Bye

encode_message = msgspec.json.Encoder().encode
"""Encode any message, or request, to bytes."""
_reply_decoder: Final[msgspec.json.Decoder[Reply]] = msgspec.json.Decoder(Reply)
_hello_decoder: Final = msgspec.json.Decoder(Hello)


def decode_reply(frame: bytes) -> Reply:
    """What a probe sent. Raises ValueError for a frame that is too long or malformed."""
    if len(frame) > MAX_FRAME_BYTES:
        raise ValueError(f"a frame of {len(frame)} bytes")
    head, _, body = frame.partition(b"\n")
    reply = _reply_decoder.decode(head)
    if isinstance(reply, (Marks, Collectives, Profiled, MemorySeen)):
        return msgspec.structs.replace(reply, body=body)
    return reply


def decode_hello(page_json: bytes) -> Hello:
    """The hello of a state page. Raises ValueError when it is malformed."""
    return _hello_decoder.decode(page_json)
