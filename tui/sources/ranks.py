"""The ranks of the target's job on this host, by their state pages: read, never asked."""

from itertools import pairwise
from typing import Any, Final

from probe.wire.messages import Hello
from tui.observations import AnyObservation, RanksSeen, RankUse
from tui.sources.rank_devices import DeviceUse, RankDevices
from tui.sources.siblings import is_running, local_ranks, ranks_here
from tui.state_page import OpenPage, Row

SAMPLE_NS: Final = 200_000_000
"""How often NVML's figure of a device changes, on an H200."""
LOOK_NS: Final = 1_000_000_000
FIND_NS: Final = 5_000_000_000
"""While ranks are missing: they start one after the other, and elastic launchers start them anew.
"""
FIRST_NS: Final = 10_000_000_000
"""Of the past that lies ready on a page, the first look takes this much."""


class RanksSource:
    """Opens the pages of all ranks here and reads them once a second. A rank that has died keeps
    its page, which is open, until its successor is found."""

    name = "ranks"
    interval_ns = SAMPLE_NS

    def __init__(self, pid: int, hello: Hello, nvml: Any = None) -> None:
        self._pid = pid
        self._hello = hello
        self._members: dict[int, _Member] = {}
        self._devices = RankDevices(nvml)
        self._expected = 0
        self._find_ns = 0
        self._looked_ns: int | None = None

    def open(self) -> None:
        """Ask how many ranks there should be here."""
        self._expected = local_ranks(self._pid, self._hello)
        self._devices.open()

    def poll(self, now_ns: int) -> list[AnyObservation]:
        """A sample of the devices, and once a second what the pages say."""
        self._devices.sample()
        if self._looked_ns is not None and now_ns - self._looked_ns < LOOK_NS:
            return []
        self._find(now_ns)
        interval_ns = LOOK_NS if self._looked_ns is None else now_ns - self._looked_ns
        self._looked_ns = now_ns
        devices = self._devices.take()
        seen = RanksSeen(
            t_ns=now_ns,
            world_size=self._hello.world_size or 1,
            interval_ns=interval_ns,
            ranks=tuple(
                member.use(devices.get(member.pid)) for _, member in sorted(self._members.items())
            ),
        )
        return [seen]

    def close(self) -> None:
        """Let go of the pages."""
        for member in self._members.values():
            member.page.close()
        self._members.clear()
        self._devices.close()

    def _find(self, now_ns: int) -> None:
        running = {rank for rank, member in self._members.items() if member.is_running}
        if len(running) < self._expected and now_ns >= self._find_ns:
            self._find_ns = now_ns + FIND_NS
            for rank, (pid, page) in ranks_here(self._pid, self._hello).items():
                before = self._members.get(rank)
                if rank in running:
                    page.close()
                    continue
                if before is not None:
                    before.page.close()
                self._members[rank] = _Member(pid, page, now_ns - FIRST_NS)
        local = {one.pid: one.page.hello.local_rank for one in self._members.values()}
        self._devices.find(local, now_ns)


class _Member:
    """One rank."""

    def __init__(self, pid: int, page: OpenPage, since_ns: int) -> None:
        self.pid = pid
        self.page = page
        self._since_ns = since_ns
        """Steps that ended before are not counted."""
        self._last = 0
        """Number of the newest step that was counted."""

    @property
    def is_running(self) -> bool:
        """Its process is there."""
        return is_running(self.pid, self.page.hello.start_ticks)

    def use(self, device: DeviceUse | None) -> RankUse:
        """What its page says, and the steps that are new on it."""
        words, told = self.page.words(), told_rows(self.page.rows(self._last))
        fresh = [
            (row, count)
            for row, count in told
            if row.number > self._last and row.end_ns > self._since_ns
        ]
        self._last = told[-1][0].number if told else self._last
        steps = [row for row, _ in fresh]
        return RankUse(
            rank=self.page.hello.rank or 0,
            pid=self.pid,
            running=self.is_running,
            state=words.state,
            steps=words.steps,
            open_kind=words.open_kind,
            open_since_ns=words.open_since_ns,
            heartbeat_ns=words.heartbeat_ns,
            counted=sum(count for _, count in fresh),
            wall_ns=sum(row.end_ns - row.start_ns for row in steps),
            data_ns=sum(row.data_ns for row in steps),
            forward_ns=sum(row.forward_ns for row in steps),
            backward_ns=sum(row.backward_ns for row in steps),
            optimizer_ns=sum(row.optimizer_ns for row in steps),
            device=device.index if device else None,
            device_busy_percent=device.busy_percent if device else None,
            device_memory_bytes=device.memory_bytes if device else None,
            device_total_bytes=device.total_bytes if device else None,
        )


def told_rows(rows: list[Row]) -> list[tuple[Row, int]]:
    """The rows with the number of steps in each: one of several merged steps bears the number of
    the last. Left out is a row of which that cannot be told: the oldest, and the one after a rest
    of the hooks (nobody watches, and the steps are short)."""
    told = [(row, 1) for row in rows[:1] if row.number == 1]
    for before, row in pairwise(rows):
        count = row.number - before.number
        if count == 1 or row.start_ns == before.end_ns:
            told.append((row, count))
    return told
