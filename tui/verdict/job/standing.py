"""A job of which no rank moves: the collective that stands, and where each rank is."""

from dataclasses import dataclass

import msgspec


class StandingRank(msgspec.Struct, frozen=True, array_like=True):
    """Where one rank is while nothing moves."""

    rank: int
    way: tuple[str, ...] = ()
    """How its training thread came there: a few frames, "function (file:line)", outermost first."""
    silent: bool = False
    """Its probe does not answer: something holds its Python lock."""
    name: str = ""
    """The collective that it is in, as "all_reduce"; "" where it is in none, or that is not known.
    """
    bytes: int | None = None
    stays: bool = False
    """Its training thread was seen twice at the very same place, or is silent: it does nothing else
    meanwhile."""
    group: str = ""
    """Of the collective that it is in: its process group…"""
    number: int = -1
    """…and its number within that; below 0 where it is in none, or an older recording."""


@dataclass(frozen=True, slots=True)
class Doing:
    """What a rank's training thread does now."""

    phase: str
    age_s: float | None
    """Since its last mark; None before its first: who only takes part in collectives makes none."""
    pid: int
    host: str = ""
    """Where it is; "" for the target's own host."""

    @property
    def address(self) -> str:
        """As `address_of` has it."""
        return address_of(self.pid, self.host)


def address_of(pid: int, host: str) -> str:
    """What `gpuwatch attach` takes: a pid, on another host "node2:4711"."""
    return f"{host}:{pid}" if host else str(pid)


@dataclass(frozen=True, slots=True)
class Pending:
    """A collective that has begun and not ended, while no rank moves."""

    number: int
    """Within its process group."""
    name: str
    """As "all_reduce"; "" where it is not known."""
    bytes: int | None
    inside: tuple[int, ...]
    """Ranks here that have begun it."""
    outside: tuple[int, ...]
    """Those that have not: the others wait for them."""
    ranks: tuple[StandingRank, ...] = ()
    """Where each is."""
    group: str = ""
    """Its process group's name…"""
    members: tuple[int, ...] = ()
    """…and all of its ranks, on every host; empty where they are not known."""

    @property
    def crossed(self) -> tuple[StandingRank, ...]:
        """Where all that are waited for are in collectives of other groups, one of those that wait
        and one of them: none can go on without the other."""
        places = [self.of(rank) for rank in self.outside]
        elsewhere = [one for one in places if one is not None and one.number >= 0]
        waits = self.of(self.inside[0]) if self.inside else None
        if waits is None or not elsewhere or len(elsewhere) < len(places):
            return ()
        return waits, elsewhere[0]

    @property
    def disagrees(self) -> tuple[StandingRank, ...]:
        """One rank for each kind of collective that ranks are in at once, where these are several:
        they do not call the same ones in the same order."""
        kinds: dict[tuple[str, int | None], StandingRank] = {}
        for one in self.ranks:
            if one.name and one.rank in self.inside:
                kinds.setdefault((one.name, one.bytes), one)
        return tuple(kinds.values()) if len(kinds) > 1 else self.crossed

    @property
    def is_sure(self) -> bool:
        """Nobody who is waited for is at work, as far as its stack shows, or ranks disagree."""
        late = [self.of(rank) for rank in self.outside]
        stay = bool(late) and all(one is not None and one.stays for one in late)
        return stay or bool(self.disagrees)

    def of(self, rank: int) -> StandingRank | None:
        """One of them."""
        return next((one for one in self.ranks if one.rank == rank), None)
