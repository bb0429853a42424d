"""An exporter of recordings in place of processes: metrics of GPUs on a machine without one.

    python -m tests.fleet.recorded PORT FILE...

Each recording plays again and again, as a process with a pid of its own.
"""

import sys
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

from gpuwatch.tui import clock
from gpuwatch.tui.fleet.host import HostWatch
from gpuwatch.tui.fleet.http import Access, Address, MetricsServer
from gpuwatch.tui.fleet.openmetrics import rendered
from gpuwatch.tui.model.snapshot import Snapshot
from gpuwatch.tui.recording.reader import Recording
from gpuwatch.tui.session.replay import ReplayProvider
from gpuwatch.tui.verdict.engine import Engine

FIRST_PID = 70_001
HOST = "node7"


class Looping:
    """A recording that begins again at its end."""

    def __init__(self, path: Path, pid: int) -> None:
        self._path = path
        self._pid = pid
        self._lock = threading.Lock()
        self._begin()

    def _begin(self) -> None:
        self._replay = ReplayProvider(Recording(self._path), Engine(), clock)

    def start(self) -> None:
        self._replay.start()

    def snapshot(self) -> Snapshot:
        with self._lock:
            shown = self._replay.snapshot()
            if self._replay.is_over:
                self._replay.close()
                self._begin()
                self._replay.start()
            live = replace(shown.status, state="live", ended=None)
            return replace(shown, pid=self._pid, status=live)

    def close(self) -> None:
        self._replay.close()


def host_watch(paths: Sequence[Path]) -> HostWatch:
    """All of them as the processes of one host; those in one folder of several ranks are a job."""
    files = dict(enumerate(paths, FIRST_PID))

    def job_of(pid: int) -> tuple[str, ...]:
        path = files[pid]
        return (path.name.split(".")[0],) if path.parent.parent.name == "ranks" else ()

    return HostWatch(
        lambda: files,
        lambda pid: Looping(files[pid], pid),
        job_of,
        lambda line: print(line, file=sys.stderr, flush=True),
        host=HOST,
    )


@contextmanager
def served(watch: HostWatch, port: int = 0, access: Access | None = None) -> Iterator[int]:
    """Its metrics over HTTP on this port of the loopback; gives the port."""

    def page(kind: str) -> bytes:
        return rendered(watch.metrics(server.requests, server.dropped), kind).encode()

    server = MetricsServer(Address("127.0.0.1", port), page, access or Access())
    listens = server.open()
    server.start()
    try:
        yield listens.port
    finally:
        server.close()


def main(port: int, paths: Sequence[Path]) -> None:
    """Serve until killed."""
    watch = host_watch(paths)
    watch.look()
    with served(watch, port):
        threading.Event().wait()


if __name__ == "__main__":
    main(int(sys.argv[1]), [Path(name) for name in sys.argv[2:]])
