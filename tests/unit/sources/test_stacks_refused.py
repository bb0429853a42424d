"""A py-spy that is refused: once more after a while, and then no more."""

import os
from pathlib import Path

import pytest

from tui.observations import Missing
from tui.sources.stacks import LET_IN_NS, POLL_NS, StacksSource

DENIED = "Permission Denied: Try running again with elevated permissions"


def stand_in(folder: Path, *lines: str) -> str:
    """A program in place of py-spy that counts its calls."""
    path = folder / "py-spy"
    path.write_text("\n".join(["#!/bin/sh", f"echo call >> {folder}/calls", *lines]))
    path.chmod(0o755)
    return str(path)


def calls(folder: Path) -> int:
    return len((folder / "calls").read_text().splitlines())


def seen_of(source: StacksSource, from_ns: int, until_ns: int) -> list[object]:
    """Poll at its pace; a chunk that runs is waited for."""
    seen: list[object] = []
    for now_ns in range(from_ns, until_ns, POLL_NS):
        seen += source.poll(now_ns)
        if source._process is not None:
            source._process.wait(10)
    return seen


def test_it_is_tried_again_when_the_probe_may_have_let_us_in(tmp_path: Path) -> None:
    source = StacksSource(os.getpid(), stand_in(tmp_path, f"echo '{DENIED}' >&2", "exit 1"))
    assert seen_of(source, 0, LET_IN_NS) == []
    assert calls(tmp_path) == 1
    (missing,) = seen_of(source, LET_IN_NS, 20 * LET_IN_NS)
    assert isinstance(missing, Missing)
    assert "ptrace is restricted" in missing.reason
    assert calls(tmp_path) == 2


@pytest.mark.parametrize("said", ["Error: Failed to find python version from target process"])
def test_other_refusals_are_final(tmp_path: Path, said: str) -> None:
    source = StacksSource(os.getpid(), stand_in(tmp_path, f"echo '{said}' >&2", "exit 1"))
    assert len(seen_of(source, 0, 20 * LET_IN_NS)) == 1
    assert calls(tmp_path) == 1
