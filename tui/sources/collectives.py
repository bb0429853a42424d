"""The collectives of a job's ranks, asked of their probes in one and the same step.

A rank's probe answers any monitor that holds its key, whether that watches the rank or not. What
comes is parsed and matched here, and only what each step's exchange took is handed on.
"""

import re
from collections.abc import Collection, Mapping
from math import prod
from typing import TYPE_CHECKING, Any, Final, NamedTuple

import msgspec

from ..discovery.sockets import HeldSocket, open_socket
from ..errors import NotPermittedError
from ..messages import Collectives, DdpTimes, Hello, decode_reply, encode_message
from ..model.plausible import MOST
from ..requests import AskCollectives
from ..verdict.job.matching import WORLD, Collective

if TYPE_CHECKING:
    import zmq


class _Group(msgspec.Struct):
    ranks: str = ""
    """Their numbers in the job, as "[0, 1]"."""


class Status(msgspec.Struct):
    """PyTorch writes numbers as texts here."""

    last_enqueued_collective: int = -1
    last_completed_collective: int = -1


class Entry(msgspec.Struct):
    """A collective in a flight recorder's dump, as PyTorch names its fields."""

    collective_seq_id: int = 0
    process_group: list[str] = []
    profiling_name: str = ""
    input_sizes: list[list[int]] = []
    input_dtypes: list[str] = []
    is_p2p: bool = False
    time_created_ns: int = 0
    duration_ms: float | None = None
    retired: bool = False
    state: str = ""


class Trace(msgspec.Struct):
    """The flight recorder's JSON, as far as it is used. PyTorch adds fields freely."""

    entries: list[Entry] = []
    pg_config: dict[str, _Group] = {}
    pg_status: dict[str, Status] = {}

    def members_of(self, group: str) -> tuple[int, ...]:
        """All ranks of a process group, by number; empty where they are not known."""
        known = self.pg_config.get(group, _Group())
        return tuple(sorted(map(int, _RANK.findall(known.ranks))))


_RANK: Final = re.compile(r"\d{1,9}")
_decoder: Final[msgspec.json.Decoder[Trace]] = msgspec.json.Decoder(Trace, strict=False)
BYTES: Final = {
    "Double": 8, "Long": 8, "Float": 4, "Int": 4, "Half": 2, "BFloat16": 2, "Byte": 1, "Char": 1,
    "Bool": 1,
}  # fmt: skip
"""Of an element, by PyTorch's name of its type; others count as 4."""


MOST_MS: Final = 1e10
"""Four months."""
MOST_TENSORS: Final = 10_000
MOST_DIMENSIONS: Final = 16


def trace_of(reply: Collectives) -> Trace:
    """Raises ValueError where it is malformed."""
    return _decoder.decode(reply.body)


def collectives_of(
    reply: Collectives, trace: Trace, groups: Mapping[str, str] | None = None
) -> tuple[Collective, ...]:
    """All entries but those between two ranks, oldest first, on the clock of the steps. `groups`:
    what process groups are called instead of their names."""
    ahead_ns = reply.unix_ns - reply.taken_ns
    called = groups or {}
    return tuple(
        Collective(
            group=called.get(_group_of(one), _group_of(one)),
            number=one.collective_seq_id,
            name=one.profiling_name,
            bytes=bytes_of(one),
            created_ns=one.time_created_ns - ahead_ns,
            duration_ns=_duration_ns(one.duration_ms),
            done=one.retired or one.state == "completed",
        )
        for one in trace.entries
        if not one.is_p2p
    )


def groups_with_ranks(trace: Trace) -> dict[str, str]:
    """By name, process groups with their ranks, where these are known: `split_group` gives all that
    it makes at once the same name."""
    return {
        name: f"{name} {group.ranks}"
        for name, group in trace.pg_config.items()
        if group.ranks and name != WORLD
    }


def _group_of(entry: Entry) -> str:
    return entry.process_group[0] if entry.process_group else ""


def _duration_ns(ms: float | None) -> int | None:
    """None for what no collective takes."""
    return round(ms * 1e6) if ms is not None and 0 <= ms < MOST_MS else None


def bytes_of(entry: Entry) -> int:
    """Of its inputs, by shapes and types."""
    total = 0
    for at, sizes in enumerate(entry.input_sizes[:MOST_TENSORS]):
        dtype = entry.input_dtypes[at] if at < len(entry.input_dtypes) else ""
        count = prod(sizes[:MOST_DIMENSIONS]) * BYTES.get(dtype, 4)
        total += count if 0 <= count < MOST else 0
    return total


class Answer(NamedTuple):
    """Of one rank, parsed as it comes: many ranks' entries would hold the monitor up for long."""

    reply: Collectives
    """Without its body."""
    trace: Trace
    collectives: tuple[Collective, ...]


def answer_of(reply: Collectives, with_ranks: bool = False) -> Answer:
    """What is malformed has no entries, and why not. `with_ranks`: process groups bear those of
    theirs."""
    try:
        trace = trace_of(reply)
    except ValueError as error:
        trace = Trace()
        reply = msgspec.structs.replace(reply, why_not=f"its entries are malformed: {error}")
    groups = groups_with_ranks(trace) if with_ranks else None
    collectives = collectives_of(reply, trace, groups) if reply.entries else ()
    return Answer(msgspec.structs.replace(reply, body=b""), trace, collectives)


class RankLink:
    """A connection to one rank's probe, for this one question."""

    def __init__(self, hello: Hello, pid: int, uid: int) -> None:
        self._hello = hello
        self._pid = pid
        self._uid = uid
        self._socket: zmq.Socket[bytes] | None = None
        self._held: HeldSocket | None = None
        self.why_not = ""
        """Why it could not be asked the last time; "" where it could."""

    def ask(self, context: "zmq.Context[Any]", at_ns: int, entries: bool) -> None:
        """Ask; nothing is waited for, and where there is no socket that can be trusted, nothing
        happens."""
        import zmq

        if self._socket is None and not self._connect(context):
            return
        assert self._socket is not None
        assert self._held is not None
        try:
            request = AskCollectives(at_ns, entries, self._held.key)
            self._socket.send(encode_message(request), zmq.NOBLOCK)
        except zmq.Again:
            self.close()

    def answers(self) -> list[Collectives]:
        """What has arrived. What is malformed is left out."""
        import zmq

        found: list[Collectives] = []
        while self._socket is not None:
            try:
                frame = self._socket.recv(zmq.NOBLOCK)
            except zmq.Again:
                break
            try:
                reply = decode_reply(frame)
            except ValueError:
                continue
            if isinstance(reply, Collectives):
                found.append(reply)
        return found

    def close(self) -> None:
        """Disconnect."""
        if self._socket is not None:
            self._socket.close(linger=0)
            self._socket = None
        if self._held is not None:
            self._held.close()
            self._held = None

    def _connect(self, context: "zmq.Context[Any]") -> bool:
        import zmq

        if self._hello.endpoint is None:
            self.why_not = self._hello.fault or NO_SOCKET
            return False
        try:
            self._held = open_socket(self._hello.endpoint, self._pid, self._uid)
        except (NotPermittedError, OSError) as error:
            self.why_not = error.what if isinstance(error, NotPermittedError) else str(error)
            return False
        self.why_not = NO_SOCKET if self._held is None else ""
        if self._held is None:
            return False
        self._socket = context.socket(zmq.DEALER)
        self._socket.linger = 0
        self._socket.connect(self._held.address)
        return True


FIRST_NS: Final = 200_000_000
"""Until the first question, with which timing is switched on…"""
EVERY_NS: Final = 3_000_000_000
"""…and between the others, where entries cost little…"""
COST_PPM: Final = 3_000
"""…and else so long that they take this part of the time: a probe allows no more."""
AHEAD_NS: Final = 1_300_000_000
"""A probe that nobody watches looks for questions once a second."""
READS_A_POLL: Final = 3
"""Of 2,000 entries each: 24 ms a rank."""
A_RANK_NS: Final = 500_000_000
"""Least pause for each rank: parsing then takes 5 % of a core, however many there are."""
COUNT_NS: Final = 2_000_000_000
"""Between two looks at counters while nothing moves."""
PATIENCE_NS: Final = 8_000_000_000
"""After the moment that was asked for: a rank that has not ended its step by then is left out."""
SILENT_NS: Final = 20_000_000_000
"""Of two such questions: a rank that makes steps meanwhile and answers neither does not answer."""
NO_SOCKET: Final = "its probe has no socket"


class CollectivesAsker:
    """Asks all ranks for the entries of one moment, and hands on what all have answered."""

    def __init__(self) -> None:
        self._context: zmq.Context[Any] | None = None
        self._links: dict[int, RankLink] = {}
        """By rank."""
        self._asked_ns: int | None = None
        self._due_ns: int | None = None
        self._answers: dict[int, Answer] = {}
        self._since_ns: dict[int, int] = {}
        """By rank, of which moment it was asked first of those that it has not answered."""
        self._counters: dict[int, Answer] = {}
        self._counted_ns = 0
        """When counters were last asked for."""
        self.cost_ns = 0
        """Of the last answers, the largest."""

    def link(self, rank: int, hello: Hello, pid: int, uid: int) -> None:
        """A rank is found, or started anew."""
        self.unlink(rank)
        self._links[rank] = RankLink(hello, pid, uid)

    def unlink(self, rank: int) -> None:
        """A rank has ended."""
        if (before := self._links.pop(rank, None)) is not None:
            before.close()
            self._answers.pop(rank, None)
            self._counters.pop(rank, None)
            self._since_ns.pop(rank, None)

    def poll(self, now_ns: int) -> Mapping[int, Answer] | None:
        """Ask if it is time to; the answers by rank once all have come. Where one does not come,
        there are none: of the others alone a wait for that rank would look like transfer."""
        self._read()
        if self._asked_ns is not None:
            late = now_ns > self._asked_ns + AHEAD_NS + PATIENCE_NS
            complete = bool(self._links) and len(self._answers) == len(self._links)
            if not complete and not late:
                return None
            self._asked_ns = None
            found, self._answers = self._answers, {}
            self.cost_ns = max((one.reply.cost_ns for one in found.values()), default=0)
            self._due_ns = now_ns + self._pause_ns()
            return found if complete else None
        if self._due_ns is None:
            self._due_ns = now_ns + FIRST_NS
        if now_ns >= self._due_ns and self._links:
            self._ask(now_ns)
        return None

    def _read(self) -> None:
        """What has arrived, of some ranks at a time."""
        left = READS_A_POLL
        for rank, link in self._links.items():
            for reply in link.answers():
                answer = answer_of(reply, with_ranks=True)
                (self._answers if reply.entries else self._counters)[rank] = answer
                if reply.entries:
                    self._since_ns.pop(rank, None)
                left -= 1
            if left <= 0:
                return

    def unanswered(self, now_ns: int) -> dict[int, tuple[int, str]]:
        """By rank that has not answered for long: since which moment, and why it could not be asked
        ("" where it could)."""
        return {
            rank: (since_ns, self._links[rank].why_not)
            for rank, since_ns in self._since_ns.items()
            if now_ns - since_ns > SILENT_NS
        }

    def poll_counters(self, now_ns: int, of: Collection[int]) -> Mapping[int, Answer] | None:
        """The counters of these ranks, of which none moves: once all have answered, or those that
        have by the time that all are asked again."""
        late = now_ns - self._counted_ns >= COUNT_NS
        found = {rank: reply for rank in of if (reply := self._counters.get(rank)) is not None}
        if len(found) < len(of) and not late:
            return None
        self._counters = {}
        if late:
            self._counted_ns = now_ns
            for rank in of:
                if rank in self._links:
                    self._links[rank].ask(self._opened(), 0, entries=False)
        return found or None

    def close(self) -> None:
        """Disconnect."""
        for link in self._links.values():
            link.close()
        self._links.clear()
        if self._context is not None:
            self._context.term()
            self._context = None

    def _pause_ns(self) -> int:
        by_cost_ns = self.cost_ns * 1_000_000 // COST_PPM
        return max(EVERY_NS, by_cost_ns, A_RANK_NS * len(self._links))

    def _ask(self, now_ns: int) -> None:
        self._asked_ns = now_ns
        self._answers = {}
        for rank, link in self._links.items():
            self._since_ns.setdefault(rank, now_ns + AHEAD_NS)
            link.ask(self._opened(), now_ns + AHEAD_NS, entries=True)

    def _opened(self) -> "zmq.Context[Any]":
        if self._context is None:
            import zmq

            self._context = zmq.Context()
        return self._context


def why_not(answers: Mapping[int, Answer]) -> str:
    """Why nothing is known of them; "" where they are there, or none has begun yet."""
    for answer in answers.values():
        if answer.reply.why_not:
            return answer.reply.why_not
    counters = (one for answer in answers.values() for one in answer.trace.pg_status.values())
    begun = any(one.last_enqueued_collective > 0 for one in counters)
    return NO_ENTRIES if begun and not any(one.collectives for one in answers.values()) else ""


NOT_YET: Final = "torch.distributed is not initialised"
"""As the probe words it."""
NO_ENTRIES: Final = "PyTorch's flight recorder is off"
HOW_TO: Final = (
    "start the run with TORCH_FR_BUFFER_SIZE=2000 (torch 2.8 and newer; TORCH_NCCL_TRACE_BUFFER_"
    "SIZE=2000 before), or by gpuwatch run"
)


def ddp_of(answers: Mapping[int, Answer]) -> dict[int, DdpTimes]:
    """By rank, of the DistributedDataParallel that holds most parameters."""
    return {
        rank: max(answer.reply.modules, key=lambda one: one.parameter_bytes)
        for rank, answer in answers.items()
        if answer.reply.modules
    }
