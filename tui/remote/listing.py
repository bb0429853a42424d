"""The processes of another machine, as `gpuwatch ls` and the picker have those of this one."""

from typing import Final

from msgspec.structs import replace

from ..discovery.candidates import Candidate, Launcher
from ..discovery.secrets import masked
from ..discovery.state_page import Words
from ..discovery.targets import Found
from ..sources.launcher import job_of
from .frames import Listed, Listing, clean

MOST: Final = 2_000
"""Processes of a listing that are kept."""


def listed(one: Candidate) -> Listed:
    """For the link."""
    hello = one.found.hello if one.found else None
    return Listed(
        pid=one.pid,
        user=one.user,
        script=one.script,
        hello=None if hello is None else replace(hello, argv=masked(hello.argv)),
        steps=one.found.words.steps if one.found else 0,
        launcher_pid=one.launcher.pid if one.launcher else None,
        launcher=one.launcher.name if one.launcher else "",
        arguments=one.arguments,
        folder=one.folder,
        started_unix=one.started_unix,
        gpus=one.gpus,
        on_gpu=one.on_gpu,
        job=_job(one),
    )


def _job(one: Candidate) -> tuple[str, ...]:
    hello = one.found.hello if one.found else None
    if hello is None or hello.rank is None or (hello.world_size or 1) < 2:
        return ()
    meeting = job_of(one.pid)
    return () if meeting[0] == "child of" else (str(hello.world_size), *meeting)


def rank_in(listing: Listing, job: tuple[str, ...]) -> Listed | None:
    """The lowest rank of this job there; None without any."""
    ranks = [one for one in listing.processes if one.job == job and one.hello is not None]
    return min(ranks, key=_rank_of, default=None)


def _rank_of(one: Listed) -> int:
    return (one.hello.rank if one.hello else None) or 0


def candidates(listing: Listing) -> list[Candidate]:
    """From the link."""
    return [_candidate(one) for one in listing.processes[:MOST]]


def _candidate(one: Listed) -> Candidate:
    found = None
    if one.hello is not None:
        words = Words(0, 0, one.steps, 0, 0, 0, 0)
        found = Found(one.pid, one.hello, words, clean(one.user))
    launcher = None
    if one.launcher_pid is not None:
        launcher = Launcher(one.launcher_pid, clean(one.launcher))
    return Candidate(
        pid=one.pid,
        user=clean(one.user),
        script=clean(one.script),
        found=found,
        launcher=launcher,
        arguments=tuple(map(clean, one.arguments)),
        folder=clean(one.folder),
        started_unix=one.started_unix,
        gpus=one.gpus,
        on_gpu=one.on_gpu,
    )
