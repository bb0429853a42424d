"""The ranks of the target's job on this host, by their state pages: read, never asked."""

from collections import deque
from collections.abc import Mapping
from typing import Any, Final, Protocol

from ...probe.wire.marks import MARK_BYTES
from ..discovery.state_page import OpenPage
from ..messages import Hello
from ..model.observations import (
    AnyObservation,
    CollectivesSeen,
    Missing,
    RanksSeen,
    RankUse,
)
from ..verdict.job.exchange import CollectiveKind, RankDdp, exchanges, fabric_of
from ..verdict.job.matching import Bounds, Collective
from ..verdict.rules.standstill import ranks_text
from .collectives import (
    HOW_TO,
    NO_ENTRIES,
    NOT_YET,
    CollectivesAsker,
    ddp_of,
    why_not,
)
from .lacking import NOT_WHOLE, Lacking, has_collectives
from .launcher import (
    SPARE_FILES,
    STOPPED,
    is_running,
    local_ranks,
    ranks_here,
    room_for_pages,
    state_of,
)
from .marks.reader import MarkReader
from .rank_devices import FIND_NS, DeviceUse, RankDevices
from .standing import Standstill

SAMPLE_NS: Final = 200_000_000
"""How often NVML's figure of a device changes, on an H200."""
READ_NS: Final = 1_000_000_000
"""While ranks are missing: they start one after the other, and elastic launchers start them anew.
"""
FIRST_MARKS: Final = 4_096
"""Of a page that is met, the newest that are read."""
MOST_STEPS: Final = 8_192
"""Of a rank, whose bounds are kept: a minute of steps of 7 ms."""
FIRST_NS: Final = 10_000_000_000
"""Of the past that lies ready on a page, the first look takes this much."""


class WholeJob(Protocol):
    """Takes what the ranks of one host have, for a job over several."""

    def seen(self, seen: RanksSeen) -> None:
        """The ranks of this host, once a look."""

    def exchanged(
        self, entries: Mapping[int, tuple[Collective, ...]], steps: tuple[Bounds, ...]
    ) -> None:
        """Collectives by rank, and the steps of the lowest."""


class RanksSource:
    """Opens the pages of all ranks here and reads them once a second. A rank that has died keeps
    its page, which is open, until its successor is found."""

    name: Final = "ranks"
    interval_ns = SAMPLE_NS

    def __init__(
        self, pid: int, hello: Hello, nvml: Any = None, whole: WholeJob | None = None
    ) -> None:
        """`whole` takes what only all hosts of a job together can judge."""
        self._pid = pid
        self._hello = hello
        self._whole = whole
        self._members: dict[int, _Member] = {}
        self._devices = RankDevices(nvml)
        self._asker = CollectivesAsker()
        self._newest_ns = 0
        """When the last step began whose collectives were handed on."""
        self._why_not: str | None = None
        self._lacking = Lacking()
        self._standstill = Standstill(self._asker)
        self._expected = self._most = 0
        """Ranks that are here, and those of them that can be held."""
        self._reported = False
        self._find_ns = 0
        self._read_ns: int | None = None

    def open(self) -> None:
        """Ask how many ranks there should be here."""
        self._expected = local_ranks(self._pid, self._hello)
        self._most = room_for_pages(self._expected)
        self._devices.open()

    def poll(self, now_ns: int) -> list[AnyObservation]:
        """A sample of the devices, and once a second what the pages say."""
        self._devices.sample()
        exchanged = self._exchanged(now_ns)
        if self._read_ns is not None and now_ns - self._read_ns < READ_NS:
            return exchanged
        self._find(now_ns)
        interval_ns = READ_NS if self._read_ns is None else now_ns - self._read_ns
        self._read_ns = now_ns
        devices = self._devices.take(now_ns)
        seen = RanksSeen(
            t_ns=now_ns,
            world_size=self._hello.world_size or 1,
            interval_ns=interval_ns,
            ranks=tuple(
                member.use(devices.get(member.pid)) for _, member in sorted(self._members.items())
            ),
        )
        if self._whole is not None:
            self._whole.seen(seen)
        return [seen, *exchanged, *self._standstill.look(seen), *self._left_out(now_ns)]

    def close(self) -> None:
        """Let go of the pages."""
        for member in self._members.values():
            member.page.close()
        self._members.clear()
        self._devices.close()
        self._standstill.close()
        self._asker.close()

    def _exchanged(self, now_ns: int) -> list[AnyObservation]:
        """The collectives of all ranks, where they have just answered; or why there are none."""
        answers = self._asker.poll(now_ns)
        if not answers:
            unanswered = self._unanswered(now_ns)
            return self._lacks(now_ns, unanswered) if unanswered else []
        entries = {rank: answer.collectives for rank, answer in answers.items()}
        reason = why_not(answers)
        if reason == NOT_YET:
            return []
        if reason:
            return self._lacks(now_ns, reason)
        lowest = min(entries)
        if self._whole is not None:
            self._whole.exchanged(entries, tuple(self._members[lowest].steps))
        bounds = [one for one in self._members[lowest].steps if one.start_ns > self._newest_ns]
        steps = exchanges(entries, bounds)
        if steps:
            newest = {one.number: one.start_ns for one in bounds}
            self._newest_ns = newest[steps[-1].number]
        if self._whole is None and len(entries) > 1:
            lacks = not steps and has_collectives(bounds, entries[lowest])
            reason = NOT_WHOLE if self._lacking.for_long(now_ns, lacks) else ""
        found = CollectivesSeen(
            t_ns=now_ns,
            ranks=tuple(sorted(entries)),
            steps=steps,
            ddp=tuple(RankDdp(rank, times) for rank, times in sorted(ddp_of(answers).items())),
            cost_ns=self._asker.cost_ns,
            kinds=_kinds(entries[lowest]),
            fabric=fabric_of(entries),
        )
        return [*self._lacks(now_ns, reason), found]

    def _unanswered(self, now_ns: int) -> str:
        """Which ranks do not answer though they have made a step since they were asked, which is
        when a probe does; "" where all do, or none can."""
        silent = {
            rank: why
            for rank, (since_ns, why) in self._asker.unanswered(now_ns).items()
            if (steps := self._members[rank].steps) and steps[-1].start_ns > since_ns
        }
        if not silent:
            return ""
        why = next(filter(None, silent.values()), "")
        do = "does" if len(silent) == 1 else "do"
        return f"{ranks_text(sorted(silent))} {do} not answer" + (f": {why}" if why else "")

    def _lacks(self, now_ns: int, reason: str) -> list[AnyObservation]:
        """That collectives cannot be had, or can again, where that is new."""
        if reason == (self._why_not or ""):
            return []
        self._why_not = reason
        fix = HOW_TO if reason == NO_ENTRIES else ""
        return [Missing(t_ns=now_ns, source="collectives", reason=reason, fix=fix)]

    def _left_out(self, now_ns: int) -> list[AnyObservation]:
        """Once, that some ranks are not shown."""
        if self._reported or self._most >= self._expected:
            return []
        if len(self._members) < self._most:  # all are held: the others are on other hosts
            return []
        self._reported = True
        reason = f"{self._most} of the {self._expected} ranks here are shown: ulimit -n is too low"
        fix = f"ulimit -n {self._expected + SPARE_FILES}, before gpuwatch is started"
        return [Missing(t_ns=now_ns, source=self.name, reason=reason, fix=fix)]

    def _find(self, now_ns: int) -> None:
        running = {rank for rank, member in self._members.items() if member.is_running}
        for rank in self._members.keys() - running:
            self._asker.unlink(rank)
        if len(running) < min(self._expected, self._most) and now_ns >= self._find_ns:
            self._find_ns = now_ns + FIND_NS
            most = self._most
            for rank, (pid, page) in ranks_here(self._pid, self._hello, most).items():
                before = self._members.get(rank)
                if rank in running:
                    page.close()
                    continue
                if before is not None:
                    before.page.close()
                self._members[rank] = _Member(pid, page, now_ns - FIRST_NS)
                self._asker.link(rank, page.hello, pid, page.hello.uid)
        local = {one.pid: one.page.hello.local_rank for one in self._members.values()}
        self._devices.find(local, now_ns)


def _kinds(entries: tuple[Collective, ...]) -> tuple[CollectiveKind, ...]:
    """By name."""
    by_name: dict[str, list[Collective]] = {}
    for one in entries:
        by_name.setdefault(one.name, []).append(one)
    return tuple(
        CollectiveKind(
            name,
            len(every),
            sum(one.done for one in every),
            sum(one.duration_ns is not None for one in every),
        )
        for name, every in sorted(by_name.items())
    )


class _Member:
    """One rank."""

    def __init__(self, pid: int, page: OpenPage, since_ns: int) -> None:
        self.pid = pid
        self.page = page
        self._since_ns = since_ns
        """Steps that ended before are not counted."""
        self._next: int | None = None
        """Number of the first mark that was not read yet."""
        self._marks = MarkReader()
        self.steps: deque[Bounds] = deque(maxlen=MOST_STEPS)
        """The newest, for the collectives in them."""

    @property
    def is_running(self) -> bool:
        """Its process is there."""
        return is_running(self.pid, self.page.hello.start_ticks)

    def use(self, device: DeviceUse | None) -> RankUse:
        """What its page says, and the steps that are new on it."""
        words = self.page.words()
        kernel_state = state_of(self.pid, self.page.hello.start_ticks)
        if self._next is None:
            self._next = max(0, words.marks - FIRST_MARKS)
        first, body = self.page.marks(self._next)
        self._next = first + len(body) // MARK_BYTES  # more, by now, than in `words`
        steps = [
            step
            for step in self._marks.page_steps(first, body, words.steps)
            if step.end_ns > self._since_ns
        ]
        self.steps.extend(Bounds(row.number, row.start_ns, row.end_ns) for row in steps)
        return RankUse(
            rank=self.page.hello.rank or 0,
            pid=self.pid,
            running=kernel_state is not None,
            state=words.state,
            steps=words.steps,
            open_kind=words.open_kind,
            open_since_ns=words.open_since_ns,
            heartbeat_ns=words.heartbeat_ns,
            counted=sum(step.count for step in steps),
            wall_ns=sum(row.end_ns - row.start_ns for row in steps),
            data_ns=sum(row.data_ns + row.startup_ns for row in steps),
            forward_ns=sum(row.forward_ns for row in steps),
            backward_ns=sum(row.backward_ns for row in steps),
            optimizer_ns=sum(row.optimizer_ns for row in steps),
            checkpoint_ns=sum(row.checkpoint_ns for row in steps),
            evaluation_ns=sum(row.evaluation_ns for row in steps),
            device=device.index if device else None,
            device_busy_percent=device.busy_percent if device else None,
            device_memory_bytes=device.memory_bytes if device else None,
            device_total_bytes=device.total_bytes if device else None,
            device_others=device.others if device else None,
            device_others_sm=device.others_sm if device else None,
            device_active_percent=device.active_percent if device else None,
            device_sm_percent=device.sm_percent if device else None,
            stopped=kernel_state in STOPPED,
        )
