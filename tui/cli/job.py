"""A job over several hosts on the command line: one of its ranks, and where the others are."""

import argparse
import sys
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import TYPE_CHECKING, Final

from ..errors import NoProcessError, NotPermittedError, UsageError
from ..remote.places import Place, Target, target_of
from .output import write_notes

if TYPE_CHECKING:
    from ..remote.line import Line
    from ..remote.link import Began
    from ..remote.provider import RemoteProvider

AUTO: Final = "auto"
AT_ONCE: Final = 8
"""Hosts that are connected to at the same time: sshd drops some of more than ten (MaxStartups)."""
HERE: Final = Place("this host", ("sh", "-c"))
RANKS_OF_ALL_STEPS: Final = 64
"""Of larger jobs only every second, third ... step's collectives are asked for."""


def add_job(command: argparse.ArgumentParser) -> None:
    """Add the options that name the hosts of a job."""
    command.add_argument(
        "--hosts",
        metavar="A,B",
        help="the hosts of the process's job, to watch all its ranks; auto: ask the job",
    )
    command.add_argument(
        "--hostfile",
        metavar="FILE",
        help="the same, one host per line, as mpirun and deepspeed have",
    )


def hosts_of(arguments: argparse.Namespace) -> list[str]:
    """The hosts that are named, each once. Raises UsageError."""
    from ..remote.roster import hosts_in, read_hostfile

    named = hosts_in(arguments.hosts) if arguments.hosts else []
    if arguments.hostfile:
        named += read_hostfile(arguments.hostfile)
    return list(dict.fromkeys(named))


def watch_job(
    named: Target, hosts: Sequence[str], *, stacks: bool, whole_argv: bool, keep_s: float
) -> "RemoteProvider":
    """Watches one rank, and with it the ranks of its job on these hosts. Raises a GpuwatchError."""
    from ..remote.frames import clean
    from ..remote.line import begin
    from ..remote.link import begin_watching, watch_for
    from ..remote.listing import rank_in
    from ..remote.provider import RemoteProvider
    from . import remote

    if named.pid is None:
        raise UsageError("which process?", "--hosts needs one rank of the job", "See: gpuwatch ls")
    first = named.place or HERE
    lines = [remote.reach(first, named.pid)]
    if AUTO in hosts:
        try:
            hosts = _agreed(lines[0], named)
        except BaseException:
            lines[0].close()
            raise
    places = [place for host in hosts if (place := _place(host)) != first]
    failing = remote.failing_clearly
    try:
        listing = remote.listing_on(lines[0])
        own = next((one for one in listing.processes if one.pid == named.pid), None)
        if own is None or not own.job:
            raise NoProcessError(
                f"process {named.pid} on {first.name} is no rank of a job over several hosts",
                "Its environment names no MASTER_ADDR and MASTER_PORT, or it has no probe.",
            )
        lines += _reach_all(places)
        every = max(1, -(-int(own.job[0]) // RANKS_OF_ALL_STEPS))
        began: list[Began] = []
        for line in lines:
            rank = own if line is lines[0] else rank_in(remote.listing_on(line), own.job)
            if rank is None:
                write_notes([f"gpuwatch: no rank of this job runs on {line.place.name}"])
                line.close()
                continue
            watch = watch_for(
                rank.pid,
                stacks=stacks,
                whole_argv=whole_argv,
                keep_s=keep_s,
                node_every=every,
                ranks_alone=line is not lines[0],
            )
            with failing(line.place):
                began.append(begin_watching(line, watch))
        write_notes([f"gpuwatch: {clean(note)}" for note in began[0].watching.notes])
    except BaseException:
        for line in lines:
            line.close()
        raise
    pairs = [
        (one, partial(begin, one.line.place, one.watch.pid, asks=False, limit_s=remote.ANSWER_S))
        for one in began
    ]
    provider = RemoteProvider(*pairs[0], pairs[1:])
    provider.recording.tape.whole_argv = whole_argv
    provider.connect()
    return provider


def _agreed(line: "Line", named: Target) -> list[str]:
    """The hosts that the job itself names, once a person has agreed to ask them. Raises a
    GpuwatchError where it names none, or nobody agrees."""
    from ..remote.frames import AskRoster, Hosts, Kind, clean, decoded, message
    from ..remote.roster import hosts_in
    from . import remote

    assert named.pid is not None
    with remote.failing_clearly(line.place):
        line.send(message(Kind.ROSTER, AskRoster(pid=named.pid)))
        found = decoded(line.wait_for((Kind.HOSTS,), remote.ANSWER_S).body, Hosts)
    hosts = [host for one in found.hosts for host in hosts_in(clean(one))]
    if not hosts:
        raise UsageError(
            "the job names no hosts",
            "Neither NCCL's RAS service nor SLURM knows them there.",
            "Name them: --hosts node7,node8, or --hostfile FILE",
        )
    names = ",".join(hosts)
    if sys.stdin is None or not sys.stdin.isatty():
        raise UsageError(
            "somebody has to agree to the hosts that the job names",
            f"{clean(found.source)} names {names}, and there is no terminal to ask at.",
            f"To agree: --hosts {names}",
        )
    write_notes([f"gpuwatch: {clean(found.source)} names {names}: connect to them? [y/N]"])
    if sys.stdin.readline().strip().lower() not in ("y", "yes"):
        raise NotPermittedError(
            "no host was asked", "", f"Watch one alone: gpuwatch attach {named.pid}"
        )
    return hosts


def _place(host: str) -> Place:
    place = target_of(f"{host}:", None).place
    assert place is not None
    return place


def _reach_all(places: Sequence[Place]) -> "list[Line]":
    """Agents on all of them. The first is asked for alone: ssh may ask for a password, and a master
    connection then serves the others."""
    from . import remote

    if not places:
        return []
    first = remote.reach(places[0], None)
    with ThreadPoolExecutor(AT_ONCE) as pool:
        waiting = [
            pool.submit(partial(remote.reach, place, None, asks=False)) for place in places[1:]
        ]
    lines = [first, *[one.result() for one in waiting if one.exception() is None]]
    for one in waiting:
        if (error := one.exception()) is not None:
            write_notes(str(error).splitlines()[:2])
    return lines
