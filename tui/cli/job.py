"""A job over several hosts on the command line: the rank that is shown, where the others are."""

import argparse
import sys
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, Final, NamedTuple

from ..errors import (
    GpuwatchError,
    NoProcessError,
    NothingToMeasureError,
    NotPermittedError,
    UsageError,
)
from ..remote.places import Place, Target, target_of
from . import remote
from .output import write_notes

if TYPE_CHECKING:
    from ..remote.frames import Listed
    from ..remote.line import Line
    from ..remote.link import Began
    from ..remote.provider import RemoteProvider
    from .job_ranks import JobRanks, Wishes

AUTO: Final = "auto"
AT_ONCE: Final = 8
"""Hosts that are connected to at the same time: sshd drops some of more than ten (MaxStartups)."""
HERE: Final = Place("this host", ("sh", "-c"))
RANKS_OF_ALL_STEPS: Final = 64
"""Of larger jobs only every second, third ... step's collectives are asked for."""


class HostNamed(NamedTuple):
    """A host of a job, as the command line names it."""

    place: Place
    pids: tuple[int, ...] = ()
    """Ranks of it there; () for any that is found."""


class JobNamed(NamedTuple):
    """A job, as the command line names it."""

    first: HostNamed
    """With one rank at least: its first is shown."""
    others: tuple[HostNamed, ...] = ()
    asks_job: bool = False
    """The job is to name its other hosts itself."""


def add_job(command: argparse.ArgumentParser) -> None:
    """Add the options that name the ranks or the hosts of a job."""
    command.add_argument(
        "--job",
        metavar="[HOST:]PID",
        nargs="+",
        type=remote.target,
        help="ranks of one job on several hosts: one of each is enough, the first is shown",
    )
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


def job_named(arguments: argparse.Namespace, named: Target) -> JobNamed | None:
    """None where one process is named and no more. Raises UsageError."""
    from ..remote.roster import hosts_in, read_hostfile

    ranks: list[Target] = arguments.job or []
    hosts = hosts_in(arguments.hosts) if arguments.hosts is not None else []
    if arguments.hostfile is not None:
        hosts += read_hostfile(arguments.hostfile)
    if not ranks and not hosts:
        return None
    if ranks and named != Target(None, None):
        raise UsageError(
            "--job names the processes itself",
            "A PID before it, or --via, would name another.",
            "Try: gpuwatch attach --job node1:48213 node2:51877",
        )
    shown = ranks[0] if ranks else named
    if shown.pid is None:
        raise UsageError("which process?", "a job is named by one of its ranks", "See: gpuwatch ls")
    by_place: dict[Place, list[int]] = {shown.place or HERE: [shown.pid]}
    for one in [*ranks[1:], *(_on(host) for host in hosts if host != AUTO)]:
        pids = by_place.setdefault(one.place or HERE, [])
        if one.pid is not None and one.pid not in pids:
            pids.append(one.pid)
    first, *others = [HostNamed(place, tuple(pids)) for place, pids in by_place.items()]
    return JobNamed(first, tuple(others), AUTO in hosts)


def watch_job(
    job: JobNamed, *, stacks: bool, whole_argv: bool, keep_s: float, for_screen: bool
) -> "tuple[RemoteProvider, JobRanks]":
    """Watches one rank, and with it the ranks of its job on all hosts; and what watches another of
    them in its place. Raises a GpuwatchError."""
    first, others = job.first, job.others
    meanwhile = remote.load_screen if for_screen else remote.load_session
    line = remote.reach(first.place, first.pids[0], meanwhile=meanwhile)
    began: list[Began] = []
    try:
        from ..remote.frames import clean
        from ..remote.provider import RemoteProvider
        from .job_ranks import JobRanks, Wishes, again, begin_ranks, linked

        if job.asks_job:
            agreed = [_on(host).place or HERE for host in _agreed(line, first.pids[0])]
            known = {first.place, *(one.place for one in others)}
            others += tuple(HostNamed(one) for one in dict.fromkeys(agreed) if one not in known)
        shown = _shown_rank(line, first, by_hosts=any(not one.pids for one in others))
        world = (shown.hello.world_size if shown.hello else None) or 1
        every = max(1, -(-world // RANKS_OF_ALL_STEPS))
        wishes = Wishes(stacks, whole_argv, keep_s, every)
        began.append(begin_ranks(line, shown.pid, wishes, alone=False))
        write_notes([f"gpuwatch: {clean(note)}" for note in began[0].watching.notes])
        _begin_on_all(others, shown, wishes, began)
    except BaseException:
        for one in began:
            one.line.close()
        line.close()
        raise
    if for_screen:
        for one in began:
            one.line.be_quiet()
    provider = RemoteProvider(began[0], again(began[0]), [linked(one) for one in began[1:]])
    provider.recording.tape.whole_argv = whole_argv
    provider.connect()
    return provider, JobRanks(provider, [one.line.place for one in began], wishes)


def _begin_on_all(
    hosts: Sequence[HostNamed], shown: "Listed", wishes: "Wishes", began: "list[Began]"
) -> None:
    """Adds what is watched on each; notes where a host cannot be reached. The first is asked for
    alone: ssh may ask for a password, and a master connection then serves the others. Raises a
    GpuwatchError where a rank is named that is none."""
    wrong: list[GpuwatchError] = []

    def begin(host: HostNamed, asks: bool) -> None:
        try:
            if (one := _begun_on(host, shown, wishes, asks)) is not None:
                began.append(one)
            else:
                write_notes([f"gpuwatch: no rank of this job runs on {host.place.name}"])
        except (NoProcessError, NothingToMeasureError, UsageError) as error:
            wrong.append(error)
        except GpuwatchError as error:
            write_notes(str(error).splitlines()[:2])

    if hosts:
        begin(hosts[0], True)
    with ThreadPoolExecutor(AT_ONCE) as pool:
        for host in hosts[1:]:
            pool.submit(begin, host, False)
    if wrong:
        raise wrong[0]


def _begun_on(named: HostNamed, shown: "Listed", wishes: "Wishes", asks: bool) -> "Began | None":
    """The ranks of the job there; None without any. Raises a GpuwatchError."""
    from .job_ranks import begin_ranks

    line = remote.reach(named.place, named.pids[0] if named.pids else None, asks=asks)
    try:
        rank = _rank_on(line, named, shown)
        if rank is not None:
            return begin_ranks(line, rank.pid, wishes, alone=True)
    except BaseException:
        line.close()
        raise
    line.close()
    return None


def _shown_rank(line: "Line", named: HostNamed, by_hosts: bool) -> "Listed":
    """The rank that is shown, by what its host says of it. `by_hosts`: ranks of its job are to be
    found elsewhere, by where they meet. Raises a GpuwatchError."""
    shown, *more = _named_on(line, named)
    if by_hosts and not shown.job:
        raise NoProcessError(
            f"process {shown.pid} on {line.place.name} is no rank of a job over several hosts",
            "Its environment names no MASTER_ADDR and MASTER_PORT.",
            "Name a rank of each host: gpuwatch attach --job HOST:PID HOST:PID",
        )
    for one in more:
        _check_same(line, one, shown)
    return shown


def _rank_on(line: "Line", named: HostNamed, shown: "Listed") -> "Listed | None":
    """A rank on another host: the one that is named there, or any of the job. Raises a
    GpuwatchError where what is named is none."""
    from ..remote.listing import rank_in

    if not named.pids:
        return rank_in(remote.listing_on(line), shown.job)
    found = _named_on(line, named)
    for one in found:
        _check_same(line, one, shown)
    return found[0]


def _named_on(line: "Line", named: HostNamed) -> "list[Listed]":
    """What these processes are, by their host. Raises a GpuwatchError where one is no rank."""
    processes = {one.pid: one for one in remote.listing_on(line).processes}
    found = []
    for pid in named.pids:
        one = processes.get(pid)
        if one is None:
            raise NoProcessError(
                f"no process {pid} on {line.place.name} can be watched",
                "",
                f"See: {_listing_command(line.place)}",
            )
        if one.hello is None or one.hello.rank is None or (one.hello.world_size or 1) < 2:
            raise NothingToMeasureError(
                f"process {pid} on {line.place.name} is no rank of a job, or has no probe",
                "",
                f"See: {_listing_command(line.place)}",
            )
        found.append(one)
    return found


def _listing_command(place: Place) -> str:
    return "gpuwatch ls" if place.via else f"gpuwatch ls {place.host}"


def _check_same(line: "Line", one: "Listed", shown: "Listed") -> None:
    """Raises UsageError for a rank of another job. Each host may call the place where they meet by
    another name, so the port alone counts, and torchrun's number of the run."""
    assert one.hello is not None
    assert shown.hello is not None
    sizes = one.hello.world_size, shown.hello.world_size
    ports = one.job[2:], shown.job[2:]
    if sizes[0] != sizes[1]:
        why = f"its job has {sizes[0]} ranks, that of {shown.pid} has {sizes[1]}"
    elif all(ports) and ports[0] != ports[1]:
        why = f"they meet at different ports: {ports[0][0]} and {ports[1][0]}"
    elif one.hello.rank == shown.hello.rank:
        why = f"both are rank {one.hello.rank}"
    else:
        return
    raise UsageError(f"process {one.pid} on {line.place.name} belongs to another job", why)


def _agreed(line: "Line", pid: int) -> list[str]:
    """The hosts that the job itself names, once a person has agreed to ask them. Raises a
    GpuwatchError where it names none, or nobody agrees."""
    from ..remote.frames import AskRoster, Hosts, Kind, clean, decoded, message
    from ..remote.roster import hosts_in

    with remote.failing_clearly(line.place):
        line.send(message(Kind.ROSTER, AskRoster(pid=pid)))
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
        raise NotPermittedError("no host was asked", "", f"Watch one alone: gpuwatch attach {pid}")
    return hosts


def _on(host: str) -> Target:
    """Anything of a host. Raises UsageError for what is none."""
    return target_of(f"{host}:", None)
