"""Ranks that stand: which collective, who is in it, who is not, and where each of them is."""

from collections.abc import Sequence
from typing import Final, NamedTuple

from ..code_origin import is_users, where_in
from ..findings import Evidence, EvidenceSource
from ..format import ms, size
from ..job.facts import Job
from ..job.standing import Doing, Pending, StandingRank

RESTART: Final = "NCCL gives up after its timeout (10 min, as set): torchrun starts all ranks anew"
ORDER: Final = (
    "every rank must call the same collectives in the same order: look for a branch, a shorter "
    "loader or a skipped batch"
)
LOCK: Final = (
    "a call in C that keeps the Python lock for long (an extension, a file system that hangs): "
    "nothing else of that process runs meanwhile"
)
MOST_RANKS: Final = 8
"""Whose place is named."""
MOST_LINES: Final = 3
"""At which ranks stay before their first step, that are named."""


class Among(NamedTuple):
    """The finding's words on them."""

    headline: str
    evidence: tuple[Evidence, ...]
    advice: tuple[str, ...]


def among_ranks(job: Job, age_s: float) -> Among | None:
    """Where ranks stand in a collective, or one of them has ended or is stopped; else None."""
    age, pending = ms(age_s * 1e9), job.pending
    if job.ended:
        ended = ranks_text(job.ended)
        headline = f"no progress for {age}: {ended} ended, and the others wait"
        advice = (f"see how {ended} ended: its last lines of output, dmesg for a kill", RESTART)
        return Among(headline, _standing(job), advice)
    if job.stopped:
        return _held(job, age)
    if pending is None:
        return None
    if crossed := pending.crossed:
        each = ", ".join(
            f"rank {one.rank} in {one.name or 'collective'} {one.number} of group {one.group}"
            for one in crossed
        )
        headline = f"no progress for {age}: ranks wait for each other: {each}"
        return Among(headline, _standing(job), (ORDER, RESTART))
    if (disagree := pending.disagrees) and not pending.outside:
        each = ", ".join(f"rank {one.rank} in {_what(pending, one)}" for one in disagree[:2])
        headline = f"no progress for {age}: ranks are in different collectives: {each}"
        return Among(headline, _standing(job), (ORDER, RESTART))
    what = _what(pending)
    if not pending.outside:
        headline = f"no progress for {age}: all ranks here are in {what}"
        advice = ("look at ranks on other hosts, or at the network between them", RESTART)
        return Among(headline, _standing(job), advice)
    return _waited_for(job, pending, f"no progress for {age}: ", what)


def _held(job: Job, age: str) -> Among:
    """The kernel holds some: nothing in the run is wrong."""
    headline = f"no progress for {age}: {_held_words(job)}, and the others wait"
    pids: dict[str, list[str]] = {}
    for rank in job.stopped[:MOST_RANKS]:
        pids.setdefault(job.doing[rank].host, []).append(str(job.doing[rank].pid))
    wake = [
        f"kill -CONT {' '.join(each)}" + (f" on {host}" if host else "")
        for host, each in pids.items()
    ]
    advice = (
        f"if it should go on: {', '.join(wake)}",
        "who stops it: SIGSTOP, Ctrl-Z, a debugger, or the scheduler that suspends its job",
    )
    return Among(headline, (_listed(job), *_standing(job)), advice)


def _held_words(job: Job) -> str:
    """ "rank 1 is stopped"."""
    return f"{ranks_text(job.stopped)} {'is' if len(job.stopped) == 1 else 'are'} stopped"


def _listed(job: Job) -> Evidence:
    return Evidence(f"the kernel lists {ranks_text(job.stopped)} in state T", "proc")


def _waited_for(job: Job, pending: Pending, begin: str, what: str) -> Among:
    first = pending.outside[0]
    doing = job.doing.get(first)
    outside = ranks_text(pending.outside)
    verb = "is" if len(pending.outside) == 1 else "are"
    place = pending.of(first)
    at = f" at {_users(place)}" if place is not None and _users(place) else ""
    if place is not None and place.silent:
        headline = f"{begin}{outside} {verb} not in {what}, and answers nothing{at}: its Python "
        headline += "lock is held"
    else:
        phase = _phase(doing) if doing is not None else ""
        does = f" but in {phase}" if phase else ""
        headline = f"{begin}{outside} {verb} not in {what},{does}{at}"
    attach = f": gpuwatch attach {doing.address}" if doing is not None else ""
    cause = LOCK if place is not None and place.silent else ORDER
    return Among(
        headline.rstrip(","), _standing(job), (f"see where {outside} {verb}{attach}", cause)
    )


def _what(pending: Pending, one: StandingRank | None = None) -> str:
    """ "all_reduce 431 of 1.0 MiB"."""
    name, of = (pending.name, pending.bytes) if one is None else (one.name, one.bytes)
    text = f"{name or 'collective'} {pending.number}"
    return f"{text} of {size(of)}" if of else text


def _standing(job: Job) -> tuple[Evidence, ...]:
    """Who is in it and who is not, and each one's line: those that are waited for first."""
    pending, found = job.pending, []
    if pending is not None and pending.inside:
        text = f"in it: {ranks_text(pending.inside)}"
        if absent := [rank for rank in pending.outside if rank not in job.stopped]:
            text += f"; not: {ranks_text(absent)}"
        found.append(Evidence(text, "collectives"))
    outside = pending.outside if pending is not None else ()
    order = sorted(job.doing, key=lambda rank: (rank not in outside, rank))
    for rank in order[:MOST_RANKS]:
        doing, place = job.doing[rank], pending.of(rank) if pending is not None else None
        text = f"rank {rank}: {_phase(doing) or 'no mark yet'}"
        if place is not None and place.way:
            text += f", {' ← '.join(reversed(place.way))}"
        found.append(Evidence(text, "hook" if place is None else _seen_by(place)))
    if len(order) > MOST_RANKS:
        found.append(Evidence(f"and {len(order) - MOST_RANKS} ranks more", "hook"))
    return tuple(found)


def _phase(doing: Doing) -> str:
    """ "backward for 41 s"; "" before its first mark."""
    return f"{doing.phase} for {ms(doing.age_s * 1e9)}" if doing.age_s is not None else ""


def before_steps(job: Job) -> tuple[str, tuple[Evidence, ...]]:
    """Where ranks stay that have made no step, and their ways there: "rank 1 at load (data.py:9),
    ranks 0 and 2 at main (train.py:13)". The fewest first: the others may wait for them."""
    if job.stopped:
        return _held_words(job), (_listed(job),)
    places = job.places if job.pending is None else job.pending.ranks
    stay = [one for one in places if one.stays and _users(one)]
    at: dict[str, list[int]] = {}
    for one in stay:
        at.setdefault(_users(one), []).append(one.rank)
    lines = sorted(at, key=lambda line: len(at[line]))[:MOST_LINES]
    ways = tuple(
        Evidence(f"rank {one.rank}: {' ← '.join(reversed(one.way))}", _seen_by(one))
        for one in stay[:MOST_RANKS]
    )
    return ", ".join(f"{ranks_text(at[line])} at {line}" for line in lines), ways


def _seen_by(place: StandingRank) -> EvidenceSource:
    """A probe shows its own place; one that is silent is looked at from outside."""
    return "py-spy" if place.silent else "hook"


def _users(place: StandingRank) -> str:
    """The innermost line of the user's own; "" where none is known."""
    own = [frame for frame in place.way if is_users(where_in(frame))]
    return own[-1] if own else ""


def ranks_text(numbers: Sequence[int]) -> str:
    """ "rank 1", "ranks 1 and 3", "ranks 0, 1, 2 and 5 more"."""
    if len(numbers) == 1:
        return f"rank {numbers[0]}"
    shown = [str(number) for number in numbers[:3]]
    rest = len(numbers) - len(shown)
    if rest:
        return f"ranks {', '.join(shown)} and {rest} more"
    return f"ranks {', '.join(shown[:-1])} and {shown[-1]}"
