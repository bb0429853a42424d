"""A job over several hosts: what their agents report, laid on one clock and made one."""

from collections import deque
from collections.abc import Collection, Mapping, Sequence
from threading import Thread
from typing import Final

from msgspec.structs import replace

from ..model.observations import (
    AnyObservation,
    CollectivesSeen,
    Missing,
    PendingSeen,
    RanksSeen,
    RankUse,
)
from ..session.collector import Clock
from ..sources.lacking import NOT_WHOLE, Lacking, has_collectives
from ..verdict.findings import Signal
from ..verdict.job.exchange import exchanges, fabric_of
from ..verdict.job.matching import WORLD, Bounds, Collective
from ..verdict.rules.standstill import ranks_text
from .link import Link
from .node import SHARED_ROWS, NodeReport, collectives_of, which

EXCHANGE_NS: Final = 2_000_000_000
"""Between two looks for steps whose collectives are known on every rank."""
MOST_ROWS: Final = 2_000
"""Of a rank's collectives that are kept: as many as a flight recorder holds."""
MOST_BOUNDS: Final = 4_000
MOST_ERRORS: Final = 3
"""Reports, one a second, whose collectives may still wait for those of other hosts: the longer a
link goes on, the better its clock is known."""
NO_ANSWER_NS: Final = 3_600_000_000_000
"""How far a clock may be off of which no round trip has come back yet."""
FEWER: Final = "watch one host alone, without --job and --hosts: its ranks are judged by themselves"
STANDING_NS: Final = 30_000_000_000
"""What an agent reports of ranks that stand holds for so long: it does so every few seconds."""


class JobMerge:
    """The ranks of all hosts, as one host's ranks would be seen. Its clock is the first host's."""

    def __init__(self, first: str) -> None:
        """`first`: the target's host; its ranks bear no host's name."""
        self._first = first
        self._newest: dict[str, NodeReport] = {}
        self._unread: dict[str, RanksSeen] = {}
        """By host, what came since the last look, one second or several."""
        self._shifts_ns: dict[str, int] = {}
        self._errors_ns: dict[str, deque[int]] = {}
        """By host, of the last reports: by how much its clock may be off."""
        self._host_of: dict[int, str] = {}
        self._rows: dict[int, list[Collective]] = {}
        self._bounds: deque[Bounds] = deque(maxlen=MOST_BOUNDS)
        self._pending: dict[str, PendingSeen] = {}
        self._stands = False
        self._lacking = Lacking()
        self._why_not = ""
        self._has_new = False
        """Collectives have come since then."""
        self._exchanged_ns = 0
        self._last_step_ns = 0
        """When the last step began whose collectives were handed on."""

    @property
    def _most_rows(self) -> int:
        """Of each rank's collectives that are kept."""
        return max(16, min(MOST_ROWS, SHARED_ROWS // max(1, self.ranks)))

    @property
    def ranks(self) -> int:
        """How many are known."""
        return len(self._host_of)

    def add(self, host: str, report: NodeReport, shift_ns: int, error_ns: int = 0) -> None:
        """Take a report; `shift_ns`: the first host's clock less this one's, `error_ns`: what that
        may be off by this one's link."""
        if host in self._newest:
            self._forget(host, self._newest[host].seen, report.seen)
        before = self._unread.get(host)
        self._newest[host] = report
        self._unread[host] = report.seen if before is None else _both(before, report.seen)
        self._shifts_ns[host] = shift_ns
        self._errors_ns.setdefault(host, deque(maxlen=MOST_ERRORS)).append(error_ns)
        for use in report.seen.ranks:
            if self._host_of.setdefault(use.rank, host) != host:  # it was started anew elsewhere
                self._host_of[use.rank] = host
                self._rows.pop(use.rank, None)
        self._has_new = self._has_new or bool(report.rows)
        for rows in report.rows:
            if self._host_of.get(rows.rank) != host:
                continue
            came = collectives_of(rows, shift_ns)
            again = {which(one) for one in came}
            kept = [
                one
                for one in self._rows.get(rows.rank, ())
                if one.done or which(one) not in again  # comes once more when it has ended
            ]
            in_order = sorted((*kept, *came), key=lambda one: one.created_ns)
            self._rows[rows.rank] = in_order[-self._most_rows :]
        if self._host_of and self._host_of[min(self._host_of)] == host:
            newest_ns = self._bounds[-1].start_ns if self._bounds else 0
            for number, start_us, end_us in report.bounds_us:
                start_ns, end_ns = 1_000 * start_us + shift_ns, 1_000 * end_us + shift_ns
                if start_ns > newest_ns:
                    self._bounds.append(Bounds(number, start_ns, end_ns))

    def _forget(self, host: str, older: RanksSeen, newer: RanksSeen) -> None:
        """Ranks that the host has no more: an agent could name new ones for ever."""
        left = {use.rank for use in newer.ranks}
        for use in older.ranks:
            if use.rank not in left and self._host_of.get(use.rank) == host:
                del self._host_of[use.rank]
                self._rows.pop(use.rank, None)

    @property
    def reports(self) -> dict[str, NodeReport]:
        """The newest of each host."""
        return dict(self._newest)

    def stands(self, host: str, seen: PendingSeen) -> None:
        """In which collective ranks of a host stand, or that none does."""
        self._pending[host] = seen

    def take(self, now_ns: int, lost: Mapping[str, bool]) -> list[AnyObservation]:
        """All ranks, if the first host has reported anew; and the steps whose collectives are known
        by now. `lost`: hosts whose link is."""
        found: list[AnyObservation] = []
        if self._first in self._unread:
            found.append(self._seen(now_ns, lost))
        if now_ns - self._exchanged_ns >= EXCHANGE_NS and self._has_new and self.ranks > 1:
            self._exchanged_ns, self._has_new = now_ns, False
            found += self._exchanges(now_ns)
        if found:
            found += self._standing(now_ns, lost)
        return found

    def _standing(self, now_ns: int, lost: Mapping[str, bool]) -> list[AnyObservation]:
        """What stands in all of the job: who of its group is not in it is what the others wait for.
        A host whose link is lost cannot tell that its ranks have gone on."""
        self._pending = {
            host: one
            for host, one in self._pending.items()
            if not lost.get(host, False)
            and now_ns - one.t_ns - self._shifts_ns.get(host, 0) < STANDING_NS
        }
        within: dict[tuple[str, tuple[int, ...]], list[PendingSeen]] = {}
        for one in self._pending.values():
            if one.number >= 0:
                within.setdefault((one.group, one.members), []).append(one)
        if not within:
            stood, self._stands = self._stands, False
            return [PendingSeen(t_ns=now_ns, number=-1)] if stood else []
        live = {rank for rank, host in self._host_of.items() if not lost.get(host, False)}
        merged = [_of_group(seen, live) for seen in within.values()]
        places = tuple(place for one in self._pending.values() for place in one.ranks)
        # Who is in none holds up the others, through those that wait for it.
        busy = {place.rank for place in places if place.number >= 0}
        most = max(
            merged,
            key=lambda one: (not busy.issuperset(one.outside), bool(one.outside), len(one.inside)),
        )
        self._stands = True
        return [replace(most, t_ns=now_ns, ranks=places)]

    def _seen(self, now_ns: int, lost: Mapping[str, bool]) -> RanksSeen:
        first = self._unread[self._first]
        uses: list[RankUse] = []
        for host, report in self._newest.items():
            unread = self._unread.pop(host, None)
            for use in (unread or report.seen).ranks:
                if self._host_of.get(use.rank) != host:
                    continue
                linked = not lost.get(host, False)
                uses.append(self._moved(use, host, unread is not None, linked))
        uses.sort(key=lambda use: use.rank)
        world = max(report.seen.world_size for report in self._newest.values())
        return replace(first, t_ns=now_ns, world_size=world, ranks=tuple(uses))

    def _moved(self, use: RankUse, host: str, is_new: bool, linked: bool) -> RankUse:
        """On the first host's clock; steps are counted once."""
        shift_ns = self._shifts_ns[host]
        moved = replace(
            use,
            host="" if host == self._first else host,
            linked=linked,
            open_since_ns=max(0, use.open_since_ns + shift_ns),
            heartbeat_ns=max(0, use.heartbeat_ns + shift_ns),
        )
        if is_new:
            return moved
        nothing = {name: 0 for name in _COUNTED}
        return replace(moved, **nothing)

    def _exchanges(self, now_ns: int) -> list[AnyObservation]:
        if silent := self._host_of.keys() - self._rows.keys():
            # Why there are none of its own the first host's agent says.
            others = sorted(rank for rank in silent if self._host_of[rank] != self._first)
            return self._lacks(
                now_ns, f"no collectives come of {ranks_text(others)}" if others else ""
            )
        bounds = [one for one in self._bounds if one.start_ns > self._last_step_ns]
        errors_ns = {host: max(errors) for host, errors in self._errors_ns.items()}
        steps = exchanges(self._rows, bounds, self._host_of, errors_ns)
        if not steps:
            lacks = has_collectives(bounds, self._rows[min(self._rows)])
            return self._lacks(now_ns, self._why_none(bounds) if lacks else "")
        starts = {one.number: one.start_ns for one in bounds}
        self._last_step_ns = starts[steps[-1].number]
        ranks = tuple(sorted(self._rows))
        hosts = tuple(self._host_of[rank] for rank in ranks)
        fabric = fabric_of(self._rows)
        seen = CollectivesSeen(t_ns=now_ns, ranks=ranks, steps=steps, hosts=hosts, fabric=fabric)
        return [*self._lacks(now_ns, ""), seen]

    def _why_none(self, bounds: Sequence[Bounds]) -> str:
        """Why no step of these is known."""
        most = self._most_rows
        full = [rows for rows in self._rows.values() if len(rows) == most]
        if any(rows[0].created_ns > bounds[-1].start_ns for rows in full):
            return f"a step has more collectives than are kept: {most:,} of each rank"
        return NOT_WHOLE

    def _lacks(self, now_ns: int, reason: str) -> list[AnyObservation]:
        """That collectives lack for long, or do no more, where that is new."""
        lacks = reason if self._lacking.for_long(now_ns, bool(reason)) else ""
        if lacks == self._why_not:
            return []
        self._why_not = lacks
        return [
            Missing(t_ns=now_ns, source="collectives", reason=lacks, fix=FEWER if lacks else "")
        ]


def _of_group(seen: Sequence[PendingSeen], live: set[int]) -> PendingSeen:
    """Of what hosts report of one process group: the newest collective, and who of the ranks that
    are known is in it. Gloo's flight recorder does not tell a group's ranks: those of the first
    group are all, those of another one whom its hosts name."""
    most = max(seen, key=lambda one: (one.number, len(one.inside)))
    inside = {rank for one in seen if one.number == most.number for rank in one.inside}
    members = set(most.members)
    if not members:
        named = {rank for one in seen for rank in (*one.inside, *one.outside)}
        members = live if most.group in ("", WORLD) else named
    return replace(
        most, inside=tuple(sorted(inside)), outside=tuple(sorted((members & live) - inside))
    )


def _error_ns(link: Link) -> int:
    """By how much the clock over there may be off."""
    uncertain_ms = link.status().uncertain_ms
    return NO_ANSWER_NS if uncertain_ms is None else round(1e6 * uncertain_ms)


_COUNTED: Final = (
    *("counted", "wall_ns", "data_ns", "forward_ns", "backward_ns", "optimizer_ns"),
    *("checkpoint_ns", "evaluation_ns"),
)
"""Sums over the steps of an interval."""


def _both(older: RanksSeen, newer: RanksSeen) -> RanksSeen:
    """Two intervals of a host as one. A rank with another pid is a new process."""
    before = {use.rank: use for use in older.ranks}
    ranks = []
    for use in newer.ranks:
        past = before.get(use.rank)
        if past is not None and past.pid == use.pid:
            sums = {name: getattr(past, name) + getattr(use, name) for name in _COUNTED}
            use = replace(use, **sums)
        ranks.append(use)
    return replace(newer, interval_ns=older.interval_ns + newer.interval_ns, ranks=tuple(ranks))


class JobSource:
    """All links of a job, for a collector (`session.collector.Source`): everything of the first
    host's process, and the ranks of all."""

    name: Final[Signal] = "feed"
    interval_ns: Final = 100_000_000

    def __init__(
        self,
        first: Link,
        others: Sequence[Link],
        clock: Clock,
        known: Mapping[str, NodeReport] | None = None,
    ) -> None:
        """`known`: what is known of their ranks, so that nobody waits for the next reports."""
        self._links = {link.place_name: link for link in (first, *others)}
        self._first = first
        self._merge = JobMerge(first.place_name)
        self._clock = clock
        for host, report in (known or {}).items():
            if host in self._links:
                # An agent that begins anew sends its collectives again.
                seen = replace(report, rows=[], bounds_us=[])
                self._merge.add(host, seen, self._shift_ns(self._links[host]))

    def open(self) -> None:
        """Begin to read."""
        for link in self._links.values():
            link.start()

    def poll(self, _: int) -> list[AnyObservation]:
        """What has come."""
        found: list[AnyObservation] = []
        links = self._links
        for host, link in links.items():
            shift_ns = self._shift_ns(link)
            for seen in link.take():
                if isinstance(seen, PendingSeen):
                    self._merge.stands(host, seen)
                elif link is self._first and not isinstance(seen, RanksSeen | CollectivesSeen):
                    found.append(seen)
            for report in link.take_reports():
                self._merge.add(host, report, shift_ns, _error_ns(link))
        lost = {host: link.status().lost_s is not None for host, link in links.items()}
        return found + self._merge.take(self._clock.now_ns(), lost)

    def hand_over(self, but: Collection[str]) -> tuple[list[Link], dict[str, NodeReport]]:
        """The links of all hosts but these, which somebody else reads and closes from now on, and
        what is known of the ranks. May be called from any thread."""
        links = self._links
        self._links = {host: link for host, link in links.items() if host in but}
        return [link for host, link in links.items() if host not in but], self._merge.reports

    def _shift_ns(self, link: Link) -> int:
        """The first host's clock less this one's."""
        return self._first.clock_ahead_ns - link.clock_ahead_ns

    def close(self) -> None:
        """Leave all of them at once. May be called twice."""
        leaving = [Thread(target=link.close) for link in self._links.values()]
        for one in leaving:
            one.start()
        for one in leaving:
            one.join()
