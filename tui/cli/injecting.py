"""`gpuwatch attach --inject PID`: asks, puts the probe in, and takes it out on leaving."""

import sys
from collections.abc import Iterator
from contextlib import contextmanager

from tui.cli.output import write_notes
from tui.errors import NotPermittedError, UsageError
from tui.injecting.injection import Injection
from tui.injecting.interpreter import target_python


@contextmanager
def injected(pid: int, yes: bool) -> Iterator[None]:
    """The probe is in there meanwhile. One that is there already is left there.

    Raises GpuwatchError where it cannot be put in, or the answer is no.
    """
    from tui.cli.target import has_probe

    if has_probe(pid):
        yield
        return
    python = target_python(pid)
    if not yes:
        _ask(pid)
    injection = Injection(python)
    injection.put_in()
    try:
        yield
    finally:
        if not injection.take_out():
            write_notes(
                [
                    f"gpuwatch: the probe is still in process {pid}: it runs no Python just now",
                    "It leaves by itself when it does, and costs nothing until then.",
                ]
            )


def _ask(pid: int) -> None:
    """Raises UsageError where nobody can be asked, NotPermittedError when the answer is no."""
    if sys.stdin is None or not sys.stdin.isatty():
        raise UsageError(
            f"nobody can be asked whether process {pid} may be changed",
            "--inject puts the probe into it: a few lines on its main thread, once.",
            f"If it may: gpuwatch attach --inject --yes {pid}",
        )
    write_notes(
        [
            f"gpuwatch: put the probe into process {pid}?",
            "A few lines run on its main thread, once; a thread of ours stays until you leave.",
            "[y/N]",
        ]
    )
    if sys.stdin.readline().strip().lower() not in ("y", "yes"):
        raise NotPermittedError(
            f"process {pid} was left as it is", "", f"Without the probe: gpuwatch attach {pid}"
        )
