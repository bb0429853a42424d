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


@dataclass(frozen=True, slots=True)
class Doing:
    """What a rank's training thread does now."""

    phase: str
    age_s: float
    """Since its last mark."""


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
    def disagrees(self) -> tuple[StandingRank, ...]:
        """One rank for each kind of collective that ranks are in at once, where these are several:
        they do not call the same ones in the same order."""
        kinds: dict[tuple[str, int | None], StandingRank] = {}
        for one in self.ranks:
            if one.name:
                kinds.setdefault((one.name, one.bytes), one)
        return tuple(kinds.values()) if len(kinds) > 1 else ()

    @property
    def is_sure(self) -> bool:
        """Nobody who is waited for is at work, as far as its stack shows, or ranks disagree."""
        late = [self.of(rank) for rank in self.outside]
        stay = bool(late) and all(one is not None and one.stays for one in late)
        return stay or bool(self.disagrees)

    def of(self, rank: int) -> StandingRank | None:
        """One of them."""
        return next((one for one in self.ranks if one.rank == rank), None)
