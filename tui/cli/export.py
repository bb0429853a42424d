"""`gpuwatch export`: hand what is seen of training processes to Prometheus and others."""

import argparse
import threading
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from ..clock import now_ns, now_unix
from ..errors import UsageError
from .attach import process_id, resolve, seconds
from .options import Manual, examples
from .output import write_notes
from .screen import search_seldom

if TYPE_CHECKING:
    from ..fleet.host import HostWatch
    from ..fleet.http import Access, Address
    from ..fleet.push import Push
    from ..session.live import LiveProvider

PUSH_EVERY_S: Final = 15.0
"""As often as Prometheus scrapes in most installations."""
NEWS_EVERY_S: Final = 60.0
"""Between two lines about requests that were not served."""
LAST_SCRAPE_S: Final = 60.0
"""After the process that was named has ended: a scrape a minute sees the end."""
TURN_S: Final = 0.5


def add_to(commands: "argparse._SubParsersAction[Any]") -> None:
    """The command's part of the command line."""
    command = commands.add_parser(
        "export",
        help="metrics for Prometheus, OpenTelemetry, W&B, MLflow, TensorBoard",
        description="Watch a training process and its ranks here, or without PID every process "
        "with a probe that comes and goes, and export what is seen. See docs/fleet.",
        epilog=examples(
            ("gpuwatch export --prometheus", "this host, on 127.0.0.1:9479"),
            ("gpuwatch export 48213 --prometheus", "one job"),
            ("gpuwatch export --otlp http://localhost:4318", "push to a collector"),
            ("gpuwatch export 48213 --wandb RUN", "beside the run's own curves"),
        ),
        formatter_class=Manual,
        allow_abbrev=False,
    )
    command.add_argument(
        "pid", metavar="PID", nargs="?", type=process_id, help="from `gpuwatch ls`; without: all"
    )
    where = command.add_argument_group("where to")
    where.add_argument(
        "--prometheus",
        metavar="ADDR",
        nargs="?",
        const="127.0.0.1",
        help="serve /metrics there (127.0.0.1:9479); beyond this host only with TLS and a token",
    )
    where.add_argument("--tls-cert", metavar="FILE", type=Path, help="certificate (PEM)")
    where.add_argument("--tls-key", metavar="FILE", type=Path, help="its key, not encrypted")
    where.add_argument("--token-file", metavar="FILE", type=Path, help="holds the bearer token")
    where.add_argument("--otlp", metavar="URL", help="push by OTLP/HTTP, as JSON")
    where.add_argument("--wandb", metavar="RUN", help="log to this run of W&B, by its id")
    where.add_argument("--mlflow", metavar="RUN", help="log to this run of MLflow, by its id")
    where.add_argument("--tensorboard", metavar="DIR", type=Path, help="write events there")
    command.add_argument(
        "--every", metavar="S", type=seconds, default=PUSH_EVERY_S, help="between two pushes (15)"
    )
    command.add_argument("--run", dest="run_name", metavar="NAME", help="value of the label `run`")
    command.add_argument(
        "--all", action="store_true", help="processes without a probe too, by stack samples"
    )
    command.add_argument("--no-stacks", action="store_true", help="no stack samples (py-spy)")
    command.add_argument("--duration", type=seconds, metavar="S", help="stop after S seconds")
    command.set_defaults(run=run)


def run(arguments: argparse.Namespace) -> int:
    """Raises GpuwatchError where nothing can be watched, or it cannot be exported."""
    from ..fleet.push import pushes_of

    server_at = _server_at(arguments)
    pushes = pushes_of(
        _report, arguments.otlp, arguments.wandb, arguments.mlflow, arguments.tensorboard
    )
    if server_at is None and not pushes:
        raise UsageError(
            "export to where?",
            "--prometheus, --otlp URL, --wandb RUN, --mlflow RUN or --tensorboard DIR",
            "See: gpuwatch export --help",
        )
    search_seldom()
    watch = _host_watch(arguments)
    try:
        _export(arguments, watch, server_at, pushes)
    finally:
        watch.close()
        for push in pushes:
            push.close()
    return 0


def _report(line: str) -> None:
    write_notes([f"gpuwatch: {line}"])


def _server_at(arguments: argparse.Namespace) -> "tuple[Address, Access] | None":
    if arguments.prometheus is None:
        if arguments.tls_cert or arguments.tls_key or arguments.token_file:
            raise UsageError("--tls-cert, --tls-key and --token-file belong to --prometheus")
        return None
    from ..fleet.http import access_of, address_of

    address = address_of(arguments.prometheus)
    guard = arguments.tls_cert, arguments.tls_key, arguments.token_file
    return address, access_of(address, *guard)


def _host_watch(arguments: argparse.Namespace) -> "HostWatch":
    from ..fleet.host import FILES_OF_ONE, MOST_TARGETS, HostWatch, host_name
    from ..fleet.ranks import SharedRanks
    from ..sources.launcher import job_of, room_for_pages
    from .target import watch_live

    shared = SharedRanks()

    def watch(pid: int) -> "LiveProvider":
        return watch_live(pid, not arguments.no_stacks, ranks_of=shared.source)

    return HostWatch(
        _finder(arguments.pid, arguments.all),
        watch,
        job_of,
        _report,
        run=arguments.run_name,
        host=host_name(),
        most=max(1, room_for_pages(MOST_TARGETS * FILES_OF_ONE) // FILES_OF_ONE),
    )


def _finder(pid: int | None, without_probe: bool) -> Callable[[], Iterable[int]]:
    """What to watch: this process and its job's ranks here, or all that train.
    Raises GpuwatchError where a process was named that cannot be watched."""
    from ..discovery.candidates import find_candidates
    from ..discovery.targets import find_probes

    if pid is None and without_probe:
        return lambda: [one.pid for one in find_candidates()]
    if pid is None:
        return lambda: [one.pid for one in find_probes()]
    return NamedJob(pid, resolve(pid).pid).here


class NamedJob:
    """The process that was named, and its job's ranks here: that it is one of several may be known
    long after it was named."""

    def __init__(self, pid: int, watched: int) -> None:
        self._pid = pid
        self._watched = watched
        self._job: tuple[str, ...] | None = None
        """What the ranks have in common: an elastic launcher starts them anew under other pids."""

    def here(self) -> list[int]:
        """Their pids."""
        from ..discovery.pids import watched_now
        from ..discovery.targets import find_probes
        from ..sources.launcher import job_of

        if self._job is None:
            self._watched = watched_now(self._pid, self._watched)
            if not _is_of_several(self._watched):
                return [self._watched]
            self._job = job_of(self._watched)
        return [
            one.pid
            for one in find_probes()
            if (one.hello.world_size or 1) > 1 and job_of(one.pid) == self._job
        ]


def _is_of_several(pid: int) -> bool:
    """Its probe says that its job has more ranks."""
    from ..discovery.targets import own_page

    opened = own_page(pid)
    if opened is None:
        return False
    opened.close()
    return (opened.hello.world_size or 1) > 1


def _export(
    arguments: argparse.Namespace,
    watch: "HostWatch",
    server_at: "tuple[Address, Access] | None",
    pushes: "list[Push]",
) -> None:
    if server_at is None:
        _turn(arguments, watch, pushes, lambda: "", 0.0)
        return
    from ..fleet.http import MetricsServer
    from ..fleet.openmetrics import rendered

    address, access = server_at

    def page(kind: str) -> bytes:
        return rendered(watch.metrics(server.requests, server.dropped), kind).encode()

    server = MetricsServer(address, page, access)
    listens = server.open()
    server.start()
    scheme = "https" if access.tls is not None else "http"
    _report(f"metrics at {scheme}://{listens.text}/metrics")
    try:
        _turn(arguments, watch, pushes, server.news, LAST_SCRAPE_S)
    finally:
        server.close()


def _turn(
    arguments: argparse.Namespace,
    watch: "HostWatch",
    pushes: "list[Push]",
    news: Callable[[], str],
    linger_s: float,
) -> None:
    """Look, push and say, until the time is over or the named process has ended."""
    from ..fleet.host import LOOK_EVERY_S

    pause = threading.Event()
    began = now_ns() / 1e9
    look_at = push_at = news_at = began
    ended_at: float | None = None
    while True:
        now = now_ns() / 1e9
        if now >= look_at:
            look_at = now + LOOK_EVERY_S
            running = watch.look()
            if arguments.pid is not None and not running and ended_at is None:
                ended_at = now
                _report(f"process {arguments.pid} has ended")
            elif running:
                ended_at = None
        over = ended_at is not None and now - ended_at >= linger_s
        over = over or (arguments.duration is not None and now - began >= arguments.duration)
        if pushes and (now >= push_at or over):
            push_at = now + arguments.every
            for push in pushes:
                push.send(watch.metrics(), now_unix())
        if (now >= news_at or over) and (line := news()):
            news_at = now + NEWS_EVERY_S
            _report(line)
        if over:
            return
        pause.wait(TURN_S)
