"""`python -m tests.bench.nodes [RANKS …]`: one monitor over simulated agents of eight ranks.

A process of its own plays all agents: it sends what they would, a report a second each, and after
a while one rank comes late by 40 ms of each step of 100. Measured are the monitor's CPU, memory and
the bytes it receives, and how long it takes to name that rank.
"""

import os
import resource
import select
import sys
import time
from collections.abc import Sequence
from dataclasses import dataclass
from multiprocessing import get_context
from typing import IO, Any, Final

from msgspec.structs import replace

from gpuwatch.tui import clock
from gpuwatch.tui.cli.job import RANKS_OF_ALL_STEPS
from gpuwatch.tui.model.observations import Greeted
from gpuwatch.tui.recording.format import Header
from gpuwatch.tui.remote import frames
from gpuwatch.tui.remote.coding import EntryEncoder
from gpuwatch.tui.remote.far_clock import FarClock
from gpuwatch.tui.remote.frames import FrameReader, Kind, LinkHello, Watching, frame, message
from gpuwatch.tui.remote.line import Line
from gpuwatch.tui.remote.link import Link, begin_watching, watch_for
from gpuwatch.tui.remote.node import packed
from gpuwatch.tui.remote.places import Place
from gpuwatch.tui.remote.provider import RemoteProvider
from tests.unit.remote.jobs import report
from tests.unit.session.making import HELLO, S, delivered, steps

MOST_PER_NODE: Final = 8
QUIET_S: Final = 12.0
"""Before the rank comes late: the monitor's steady cost is measured."""
LIMIT_S: Final = 90.0
PID: Final = 1_000


class Piped:
    """Looks like the command that carries a link: its pipes lead to the process of all agents."""

    def __init__(self, stdin: IO[bytes], stdout: IO[bytes], stderr: IO[bytes]) -> None:
        self.stdin, self.stdout, self.stderr = stdin, stdout, stderr

    def wait(self, timeout: float | None = None) -> int:
        return 0

    def kill(self) -> None:
        pass


@dataclass(frozen=True)
class Figures:
    """A row of the table."""

    ranks: int
    cpu_percent: float
    rss_mib: float
    bytes_s: float
    named_s: float | None


def per_node(ranks: int) -> int:
    """On at least two agents."""
    return min(MOST_PER_NODE, ranks // 2)


def main(sizes: Sequence[int]) -> None:
    """Print the table."""
    print("| ranks | agents | monitor CPU | memory | received | named after |")
    print("| --- | --- | --- | --- | --- | --- |")
    for ranks in sizes:
        one = _apart(ranks)
        named = "not" if one.named_s is None else f"{one.named_s:.0f} s"
        agents = ranks // per_node(ranks)
        print(
            f"| {ranks:,} | {agents} | {one.cpu_percent:.0f}% | {one.rss_mib:.0f} MiB "
            f"| {one.bytes_s / 1e3:.0f} kB/s | {named} |",
            flush=True,
        )


def _apart(ranks: int) -> Figures:
    """In a process of its own, whose memory is that of this size alone."""
    context = get_context("spawn")
    ours, theirs = context.Pipe()
    process = context.Process(target=_measured, args=(ranks, theirs))
    process.start()
    found: Figures = ours.recv()
    process.join()
    return found


def _measured(ranks: int, answer: Any) -> None:
    nodes = ranks // per_node(ranks)
    late = frozenset({ranks - 3})
    to_agents = [os.pipe() for _ in range(nodes)]
    from_agents = [os.pipe() for _ in range(nodes)]
    begins, begun = os.pipe()
    pid = os.fork()
    if pid == 0:
        try:
            _agents(ranks, late, [r for r, _ in to_agents], [w for _, w in from_agents], begun)
        finally:
            os._exit(0)
    pairs = []
    every = max(1, -(-ranks // RANKS_OF_ALL_STEPS))
    for node in range(nodes):
        os.close(to_agents[node][0])
        os.close(from_agents[node][1])
        quiet, end = os.pipe()
        os.close(end)
        process: Any = Piped(
            os.fdopen(to_agents[node][1], "wb"),
            os.fdopen(from_agents[node][0], "rb", buffering=0),
            os.fdopen(quiet, "rb"),
        )
        line = Line(Place(f"node{node}"), process, quiet=True)
        line.begin_link(20.0)
        watch = watch_for(
            PID, stacks=False, whole_argv=False, keep_s=0, node_every=every, ranks_alone=node > 0
        )
        pairs.append((begin_watching(line, watch), _never))
    others = [Link(*pair, FarClock()) for pair in pairs[1:]]
    provider = RemoteProvider(*pairs[0], others).connect()
    provider.start()
    provider.snapshot()
    time.sleep(QUIET_S / 2)
    before = time.monotonic(), clock.own_cpu_ns(), _received(pairs)
    time.sleep(QUIET_S / 2)
    after = time.monotonic(), clock.own_cpu_ns(), _received(pairs)
    wall_s = after[0] - before[0]
    began_s, named_s = float(os.read(begins, 64)), None
    while time.monotonic() - began_s < LIMIT_S:
        found = provider.snapshot().job
        if found is not None and found.late is not None and found.late.rank.rank in late:
            named_s = time.monotonic() - began_s
            break
        time.sleep(0.1)
    provider.close()
    os.kill(pid, 9)
    os.waitpid(pid, 0)
    answer.send(
        Figures(
            ranks,
            100 * (after[1] - before[1]) / 1e9 / wall_s,
            resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024,
            (after[2] - before[2]) / wall_s,
            named_s,
        )
    )


def _received(pairs: Sequence[Any]) -> int:
    return sum(began.line.bytes_in for began, _ in pairs)


def _never() -> Line:
    raise AssertionError("a link was lost")


def _agents(
    ranks: int, late: frozenset[int], reads: list[int], writes: list[int], begun: int
) -> None:
    """All of them: reports are spread over the second. Says in `begun` when the rank comes late."""
    header = Header(
        gpuwatch="0", probe="0", torch=None, host="node", pid=PID, script="train.py",
        started_ns=S, started_unix=time.time(), begins_ns=S,
    )  # fmt: skip
    hello = LinkHello(
        protocol=1, oldest=1, coding=frames.CODING, gpuwatch="0", python="3", host="node"
    )
    watching = Watching(pid=PID, header=header, token="", now_ns=S)
    for write in writes:
        data = frames.GREETING + message(Kind.HELLO, hello) + message(Kind.WATCHING, watching)
        os.write(write, data)
    encoder, readers = EntryEncoder(), [FrameReader() for _ in reads]
    began_s, every = time.monotonic() - 1.0, max(1, -(-ranks // RANKS_OF_ALL_STEPS))
    greeted = replace(HELLO, rank=0, world_size=ranks, pid=PID)
    entries: list[Any] = [Greeted(t_ns=S, hello=greeted)]
    each = per_node(ranks)
    turn, quiet = 0, 4 * (QUIET_S + len(reads) / 40 + 2)
    while True:
        turn += 1
        second, part = 1 + turn // 4, turn % 4
        is_late = late if turn > quiet else frozenset()
        if turn == int(quiet) + 1:
            os.write(begun, f"{time.monotonic()}".encode())
        for node, write in enumerate(writes):
            if node % 4 == part and second > 1:
                own = range(node * each, (node + 1) * each)
                made = report(second, own, ranks, is_late, every)
                os.write(write, frame(Kind.NODE, packed(made)))
        if part == 0 and second > 1:
            made_steps = steps(
                10, first=10 * second - 9, start_ms=1_000.0 * (second - 1),
                data_ms=5, forward_ms=30, backward_ms=60, optimizer_ms=5,
            )  # fmt: skip
            entries.append(delivered(made_steps, t_ms=1_000.0 * second))
        body = encoder.encode(entries, turn, second * S + part * S // 4, 0)
        entries = []
        os.write(writes[0], frame(Kind.ENTRIES, body))
        _answer(reads, writes, readers, second)
        time.sleep(max(0.0, began_s + 1.0 + turn / 4 - time.monotonic()))


def _answer(reads: list[int], writes: list[int], readers: list[FrameReader], second: int) -> None:
    """Pings; credits are not counted."""
    ready, _, _ = select.select(reads, [], [], 0)
    for read in ready:
        at = reads.index(read)
        for one in readers[at].feed(os.read(read, 65_536)):
            if one.kind == Kind.PING:
                (near_ns,) = frames.PING.unpack(one.body)
                body = frames.PONG.pack(near_ns, second * S, time.time())
                os.write(writes[at], frame(Kind.PONG, body))


if __name__ == "__main__":
    main([int(word) for word in sys.argv[1:]] or [8, 64, 256, 1_024])
