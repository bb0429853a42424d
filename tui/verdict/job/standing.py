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

    @property
    def disagrees(self) -> tuple[StandingRank, ...]:
        """One rank for each kind of collective that ranks are in at once, where these are several:
        they do not call the same ones in the same order."""
        kinds: dict[tuple[str, int | None], StandingRank] = {}
        for one in self.ranks:
            if one.name:
                kinds.setdefault((one.name, one.bytes), one)
        return tuple(kinds.values()) if len(kinds) > 1 else ()

    def of(self, rank: int) -> StandingRank | None:
        """One of them."""
        return next((one for one in self.ranks if one.rank == rank), None)
