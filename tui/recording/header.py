"""The header of a recording of a process that runs."""

from socket import gethostname

from ..discovery.pids import Watchable
from ..discovery.targets import script_of
from ..errors import DISTRIBUTION, version_of
from ..messages import Hello
from .format import Header


def header_of(
    found: Watchable,
    hello: Hello | None,
    started_ns: int,
    started_unix: float,
    begins_ns: int | None = None,
) -> Header:
    """Of a session that began then; the recording begins there too, or at `begins_ns`."""
    return Header(
        gpuwatch=version_of(DISTRIBUTION),
        probe=hello.probe if hello else "",
        torch=hello.torch if hello else None,
        host=hello.host if hello else gethostname(),
        pid=hello.pid if hello else found.pid,
        script=script_of(hello.argv) if hello else found.script,
        started_ns=started_ns,
        started_unix=started_unix,
        begins_ns=max(started_ns, begins_ns or 0),
    )
