"""What an agent says of its host's ranks in a job over several hosts: once a second, few kB.

Of the collectives the columns are differences, and zlib makes them small: 8 ranks with 100
collectives a second each are some 3 kB a second.
"""

import zlib
from collections import deque
from collections.abc import Mapping, Sequence
from itertools import accumulate
from threading import Lock
from typing import Final

import msgspec

from ..model.observations import RanksSeen
from ..verdict.job.matching import Bounds, Collective, issued_in
from .frames import LinkError

MOST_BYTES: Final = 4 << 20
"""Of a report, inflated."""
MOST_ROWS: Final = 20_000
"""Of a rank's collectives in a report; a flight recorder has 2,000."""
MOST_RANKS: Final = 256
"""Of a host."""
MOST_WAITING: Final = 8
"""Reports that a slow link has not taken: older ones go."""
SHARED_ROWS: Final = 65_536
"""Of the collectives of all ranks that the near side keeps."""


Which = tuple[str, int, str]


def which(one: Collective) -> Which:
    """What a collective of a rank is told by from one reading to the next: the moment at which it
    was issued is a few us off in each."""
    return one.group, one.number, one.name


class RankRows(msgspec.Struct, frozen=True, array_like=True):
    """The collectives of one rank that are new. Columns of equal length, times as differences."""

    rank: int
    groups: list[str]
    group: list[int]
    """Places in `groups`."""
    names: list[str]
    name: list[int]
    """Places in `names`."""
    number: list[int]
    created_us: list[int]
    duration_us: list[int | None]
    bytes: list[int]
    done: list[bool]


class NodeReport(msgspec.Struct, frozen=True, array_like=True):
    """One second of a host."""

    t_ns: int
    seen: RanksSeen
    rows: list[RankRows] = []
    bounds_us: list[tuple[int, int, int]] = []
    """Steps of its lowest rank: number, start and end."""


def packed(report: NodeReport) -> bytes:
    """The body of a frame."""
    return zlib.compress(msgspec.msgpack.encode(report), 6)


_decode = msgspec.msgpack.Decoder(NodeReport).decode


def unpacked(body: bytes) -> NodeReport:
    """Raises LinkError for a body that no agent has packed."""
    try:
        inflate = zlib.decompressobj()
        report = _decode(inflate.decompress(body, MOST_BYTES))
    except (ValueError, zlib.error) as error:
        raise LinkError(f"a report of ranks that makes no sense: {error}") from None
    ranks = report.seen.ranks
    if inflate.unconsumed_tail or max(len(ranks), len(report.rows)) > MOST_RANKS:
        raise LinkError("a report of more ranks than a host has")
    if any(not 0 <= use.rank < report.seen.world_size for use in ranks):
        raise LinkError("a report of ranks that its job does not have")
    for one in report.rows:
        columns = (
            one.group,
            one.name,
            one.number,
            one.created_us,
            one.duration_us,
            one.bytes,
            one.done,
        )
        lengths = {len(column) for column in columns}
        if len(lengths) > 1 or max(lengths) > MOST_ROWS:
            raise LinkError("columns of different lengths")
        places = [(at, len(one.groups)) for at in one.group]
        places += [(at, len(one.names)) for at in one.name]
        if any(not 0 <= at < most for at, most in places):
            raise LinkError("a group or a name that is none")
    return report


def rows_of(rank: int, collectives: Sequence[Collective]) -> RankRows:
    """As columns."""
    groups = list(dict.fromkeys(one.group for one in collectives))
    names = list(dict.fromkeys(one.name for one in collectives))
    created_us = [one.created_ns // 1_000 for one in collectives]
    return RankRows(
        rank=rank,
        groups=groups,
        group=[groups.index(one.group) for one in collectives],
        names=names,
        name=[names.index(one.name) for one in collectives],
        number=_differences([one.number for one in collectives]),
        created_us=_differences(created_us),
        duration_us=[
            None if one.duration_ns is None else one.duration_ns // 1_000 for one in collectives
        ],
        bytes=[one.bytes for one in collectives],
        done=[one.done for one in collectives],
    )


def collectives_of(rows: RankRows, shift_ns: int) -> list[Collective]:
    """From columns; on a clock that is so far ahead of the agent's."""
    return [
        Collective(
            group=rows.groups[group],
            number=number,
            name=rows.names[name],
            bytes=size,
            created_ns=1_000 * created_us + shift_ns,
            duration_ns=None if duration_us is None else 1_000 * duration_us,
            done=done,
        )
        for group, name, number, created_us, duration_us, size, done in zip(
            rows.group,
            rows.name,
            accumulate(rows.number),
            accumulate(rows.created_us),
            rows.duration_us,
            rows.bytes,
            rows.done,
            strict=True,
        )
    ]


def _differences(values: Sequence[int]) -> list[int]:
    before = [0, *values]
    return [value - last for value, last in zip(values, before, strict=False)]


class NodeReports:
    """Makes them of what the ranks' source sees (`sources.ranks.WholeJob`); taken by the link."""

    def __init__(self, every_steps: int = 1) -> None:
        """`every_steps`: of a large job only the collectives of one step in so many."""
        self._every = every_steps
        self._lock = Lock()
        self._waiting: deque[NodeReport] = deque(maxlen=MOST_WAITING)
        self._rows: list[RankRows] = []
        self._bounds: list[tuple[int, int, int]] = []
        self._newest: dict[int, int] = {}
        """Of each rank, when the last collective was issued that was handed on."""
        self._unended: dict[int, set[Which]] = {}
        """Of each rank, those that had not ended as they were handed on."""

    def exchanged(
        self, entries: Mapping[int, tuple[Collective, ...]], steps: tuple[Bounds, ...]
    ) -> None:
        """Collectives by rank, and the steps of the lowest. Those of several groups end in another
        order than they were issued in: one that has not ended is handed on as that, so that nobody
        takes its step for whole, and once more when it has."""
        chosen = [one for one in steps if one.number % self._every == 0]
        keys = issued_in(entries, chosen[-8:]) if self._every > 1 else None
        self._rows = []
        for rank, collectives in entries.items():
            since_ns, before = self._newest.get(rank, 0), self._unended.get(rank, set())
            new = [
                one
                for one in collectives
                if one.created_ns > since_ns and (keys is None or (one.group, one.number) in keys)
            ]
            old = [
                one for one in collectives if one.created_ns <= since_ns and which(one) in before
            ]
            self._unended[rank] = {which(one) for one in (*old, *new) if not one.done}
            if new:
                self._newest[rank] = max(one.created_ns for one in new)
            if fresh := [*(one for one in old if one.done), *new]:
                self._rows.append(rows_of(rank, fresh))
        self._bounds = [
            (one.number, one.start_ns // 1_000, one.end_ns // 1_000) for one in chosen[-2_000:]
        ]

    def seen(self, seen: RanksSeen) -> None:
        """A second is over."""
        with self._lock:
            self._waiting.append(NodeReport(seen.t_ns, seen, self._rows, self._bounds))
        self._rows, self._bounds = [], []

    def take(self) -> NodeReport | None:
        """The oldest that waits."""
        with self._lock:
            return self._waiting.popleft() if self._waiting else None
