"""What is seen of a job once none of its ranks moves: the collective they stand in, who is in it,
and where each rank's training thread is.

A rank's probe answers as long as its Python lock is given up now and then. One that holds it in C
answers nothing: its own silence, the others' counters, and py-spy, which needs no help of the
process, say what there is to say.
"""

import subprocess
import tempfile
from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace
from typing import IO, Final

import msgspec

from ..model.frames import way_to
from ..model.observations import AnyObservation, PendingSeen, RanksSeen, RankUse
from ..verdict.job.standing import Pending, StandingRank
from .collectives import Answer, CollectivesAsker, Entry, Status, Trace, bytes_of
from .py_spy import Frame
from .source_text.files import ShortPaths
from .stack_samples import frame_text
from .stacks import find_py_spy

STANDS_NS: Final = 5_500_000_000
"""Without a mark of any rank: half of what the monitor takes for a stall, and what a probe waits
for before it reads which collectives have not ended."""
SILENT_NS: Final = 3_000_000_000
"""A probe writes four times a second: who is silent for so long cannot answer."""
ASKS_NS: Final = 3_000_000_000
"""…and from when on all are asked: a rank that is at two places since then is at work."""
AGAIN_NS: Final = 10_000_000_000
"""Between two looks of py-spy at one rank."""
MOST_LOOKS: Final = 8
"""Ranks that py-spy looks at: 9 ms each, in C 50 ms."""
MOST_DUMP_BYTES: Final = 4 * 1024 * 1024


class Standstill:
    """Looks once a second, and asks only while nothing moves."""

    def __init__(self, asker: CollectivesAsker, py_spy: str | None = None) -> None:
        self._asker = asker
        self._program = py_spy or find_py_spy()
        self._stands = False
        """A collective was reported that does not end."""
        self._looks: dict[int, _Look] = {}
        """By pid."""
        self._places: dict[int, Sequence[Frame]] = {}
        """By rank, where its training thread was at the last answer."""

    def look(self, seen: RanksSeen) -> list[AnyObservation]:
        """What stands; or, once, that nothing does any more."""
        live = [one for one in seen.ranks if one.running]
        moved_ns = max((one.open_since_ns for one in live), default=seen.t_ns)
        if seen.t_ns - moved_ns < ASKS_NS:
            self.close()
            self._places.clear()
            if not self._stands:
                return []
            self._stands = False
            return [PendingSeen(t_ns=seen.t_ns, number=-1)]
        silent = [one for one in live if seen.t_ns - one.heartbeat_ns >= SILENT_NS]
        frames = self._silent_frames(silent, seen.t_ns)
        answering = [one.rank for one in live if one not in silent]
        answers = self._asker.poll_counters(seen.t_ns, answering)
        if answers is None:
            return []
        fresh = {rank: one for rank, one in answers.items() if one.reply.taken_ns >= moved_ns}
        all_here = len(live) >= seen.world_size
        found = pending_of(fresh, [one.rank for one in silent], all_here)
        if found is None and moved_ns and all_here:
            return []
        standing = tuple(
            self._standing(one, found, fresh.get(one.rank), frames.get(one.rank)) for one in live
        )
        if seen.t_ns - moved_ns < STANDS_NS:
            return []
        self._stands = True
        if found is None:
            # They may be who ranks on other hosts wait for, or none has made its first step.
            return [PendingSeen(t_ns=seen.t_ns, number=-1, ranks=standing)]
        return [
            PendingSeen(
                t_ns=seen.t_ns,
                number=found.number,
                name=found.name,
                bytes=found.bytes,
                inside=found.inside,
                outside=found.outside,
                ranks=standing,
                group=found.group,
                members=found.members,
            )
        ]

    def _standing(
        self,
        use: RankUse,
        pending: Pending | None,
        answer: Answer | None,
        unasked: Sequence[Frame] | None,
    ) -> StandingRank:
        """Its place, and what it is in. `unasked`: what py-spy saw of one that is silent."""
        own = unasked if unasked is not None else answer.reply.frames if answer is not None else ()
        short_of = ShortPaths(use.pid).of
        way = way_to(tuple(frame_text(frame, short_of) for frame in own))
        its = (pending and pending.of(use.rank)) or StandingRank(use.rank)
        before, self._places[use.rank] = self._places.get(use.rank), own
        silent = unasked is not None
        stays = silent or (bool(own) and own == before)
        return StandingRank(
            use.rank, way, silent, its.name, its.bytes, stays, its.group, its.number
        )

    def close(self) -> None:
        """End what runs."""
        for look in self._looks.values():
            look.close()
        self._looks.clear()

    def _silent_frames(self, silent: Sequence[RankUse], now_ns: int) -> dict[int, Sequence[Frame]]:
        """By rank, where py-spy saw its main thread; a look is begun here and read later."""
        found: dict[int, Sequence[Frame]] = {one.rank: () for one in silent}
        if self._program is None:
            return found
        for one in silent[:MOST_LOOKS]:
            look = self._looks.get(one.pid)
            if look is None or now_ns - look.began_ns >= AGAIN_NS:
                before = look.frames() if look is not None else ()
                if look is not None:
                    look.close()
                look = self._looks[one.pid] = _Look(self._program, one.pid, now_ns, before)
            found[one.rank] = look.frames()
        return found


def pending_of(
    answers: Mapping[int, Answer], silent: Collection[int] = (), all_here: bool = True
) -> Pending | None:
    """The collective that some ranks are in and others not, or that all are in; None where every
    rank has ended what it began. Where all who answer are in it, those of its group that are silent
    are not. `all_here`: the job has no ranks elsewhere."""
    traces = {rank: answer.trace for rank, answer in answers.items()}
    groups: dict[tuple[str, tuple[int, ...]], dict[int, Status]] = {}
    for rank, trace in traces.items():
        for group, status in trace.pg_status.items():
            groups.setdefault((group, trace.members_of(group)), {})[rank] = status
    found: list[Pending] = []
    for (group, members), known in sorted(groups.items()):
        # Numbers begin at 1, and none has ended at -1.
        number = max(0, min(one.last_completed_collective for one in known.values())) + 1
        inside = [
            rank
            for rank, one in known.items()
            if one.last_enqueued_collective >= number > one.last_completed_collective
        ]
        if not inside:
            continue
        outside = [rank for rank, one in known.items() if one.last_enqueued_collective < number]
        outside += [rank for rank in members if rank in traces and rank not in known]
        mute = tuple(rank for rank in silent if not members or rank in members)
        entries = {rank: entry_of(traces[rank], group, number) for rank in inside}
        entry = entries[inside[0]]
        found.append(
            Pending(
                number=number,
                name=_name_of(entry),
                bytes=bytes_of(entry) if entry else None,
                inside=tuple(sorted(inside)),
                outside=tuple(sorted(outside or mute)),
                ranks=tuple(
                    StandingRank(
                        rank,
                        name=_name_of(one),
                        bytes=bytes_of(one) if one else None,
                        group=group,
                        number=number,
                    )
                    for rank, one in sorted(entries.items())
                ),
                group=group,
                members=members,
            )
        )
    most = _first_of(found, {*traces, *silent}, all_here)
    if most is None:
        return None
    places = {place.rank: place for one in (*found, most) for place in one.ranks}
    return replace(most, ranks=tuple(places[rank] for rank in sorted(places)))


def _first_of(found: Sequence[Pending], here: Collection[int], all_here: bool) -> Pending | None:
    """Of collectives in several groups the one that waits for a rank that is in none, which holds
    up the others through those that wait for it; else one that waits for ranks elsewhere."""
    busy = {rank for one in found for rank in one.inside}

    def weight(one: Pending) -> tuple[bool, bool, bool, int]:
        elsewhere = not set(one.members) <= set(here) if one.members else not all_here
        waits_here = not busy.issuperset(one.outside)
        return waits_here, elsewhere and not one.outside, bool(one.outside), len(one.inside)

    return max(found, key=weight, default=None)


def entry_of(trace: Trace, group: str, number: int) -> Entry | None:
    """The collective of that number in the group."""
    return next(
        (
            one
            for one in trace.entries
            if one.collective_seq_id == number and one.process_group[:1] == [group]
        ),
        None,
    )


def _name_of(entry: Entry | None) -> str:
    return entry.profiling_name.partition(":")[2] if entry else ""


class _DumpedFrame(msgspec.Struct):
    name: str
    filename: str = ""
    line: int = 0


class _DumpedThread(msgspec.Struct):
    thread_name: str | None = None
    os_thread_id: int | None = None
    frames: list[_DumpedFrame] = []


_dump_decoder: Final = msgspec.json.Decoder(list[_DumpedThread])


class _Look:
    """One `py-spy dump` of a process, which it does not pause."""

    def __init__(self, program: str, pid: int, began_ns: int, before: Sequence[Frame]) -> None:
        """`before`: what holds until this one has ended."""
        self.began_ns = began_ns
        self._pid = pid
        self._frames = before
        self._written: IO[bytes] | None = tempfile.TemporaryFile()  # noqa: SIM115 (closed below)
        command = [program, "dump", "--nonblocking", "--json", "--pid", str(pid)]
        self._process: subprocess.Popen[bytes] | None = None
        try:
            self._process = subprocess.Popen(
                command,
                stdin=subprocess.DEVNULL,
                stdout=self._written,
                stderr=subprocess.DEVNULL,
                start_new_session=True,  # Ctrl-C and Ctrl-Z on our terminal are not for it
            )
        except OSError:
            self.close()

    def frames(self) -> Sequence[Frame]:
        """Of the main thread, outermost first; empty until they are there, and where they cannot be
        had."""
        if self._process is not None and self._process.poll() is not None:
            assert self._written is not None
            self._written.seek(0)
            own = main_frames(self._written.read(MOST_DUMP_BYTES), self._pid)
            self._frames = own or self._frames
            self.close()
        return self._frames

    def close(self) -> None:
        """End it. A py-spy that does not block can be killed at any moment."""
        if self._process is not None:
            self._process.kill()
            self._process.wait()
            self._process = None
        if self._written is not None:
            self._written.close()
            self._written = None


def main_frames(dumped: bytes, pid: int) -> Sequence[Frame]:
    """The main thread's frames, outermost first, of py-spy's JSON; empty where that is malformed
    or lacks it."""
    try:
        threads = _dump_decoder.decode(dumped)
    except msgspec.DecodeError:
        return ()
    main = [one for one in threads if one.thread_name == "MainThread" or one.os_thread_id == pid]
    if not main:
        return ()
    return [(one.name, one.filename, one.line) for one in reversed(main[0].frames)]
