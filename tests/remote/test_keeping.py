"""What an agent keeps for a link that was lost: all that was missed, as long as it was asked."""

import os
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest
from msgspec.structs import replace

from gpuwatch.tui.model.observations import Delivered
from gpuwatch.tui.recording.format import Entry
from gpuwatch.tui.remote.coding import EntryDecoder
from gpuwatch.tui.remote.frames import CREDIT, Kind, Resume, Watch, frame
from gpuwatch.tui.remote.line import Line, begin
from gpuwatch.tui.remote.link import Began, begin_watching, watch_for
from gpuwatch.tui.remote.places import Place
from tests.processes.command_line import toy
from tests.processes.monitored import until
from tests.remote.test_over_ssh import agents, doors

SHELL = Place("a shell", ("sh", "-c"))


@pytest.fixture(scope="module")
def training(tmp_path_factory: pytest.TempPathFactory) -> "Iterator[subprocess.Popen[str]]":
    """What is watched."""
    with toy(tmp_path_factory.mktemp("run")) as process:
        yield process


def watching(pid: int, keep_s: float, resume: Resume | None = None) -> Began:
    """A link of our own."""
    line = begin(SHELL, pid, asks=False, limit_s=20.0)
    watch: Watch = watch_for(pid, stacks=False, whole_argv=False, keep_s=keep_s)
    return begin_watching(line, replace(watch, resume=resume))


def until_step(line: Line, number: int) -> tuple[int, list[int]]:
    """Number of the last entry, and of the steps that came, until this one has."""
    decoder, numbers, last = EntryDecoder(), list[int](), 0
    while not numbers or numbers[-1] < number:
        found = line.wait_for((Kind.ENTRIES,), 20.0)
        line.send(frame(Kind.CREDIT, CREDIT.pack(1)))
        entries = decoder.decode(found.body)
        last = entries.last
        numbers += [number for entry in entries.entries for number in steps_of(entry)]
    return last, numbers


def steps_of(entry: Entry) -> list[int]:
    """Numbers of the steps in it."""
    return [step.number for step in entry.batch.steps] if isinstance(entry, Delivered) else []


def test_what_was_missed_is_fetched_and_comes_once(training: "subprocess.Popen[str]") -> None:
    before = agents(), doors()
    first = watching(training.pid, keep_s=30.0)
    assert len(doors() - before[1]) == 1
    last, seen = until_step(first.line, 60)
    first.line.abandon()
    again = watching(training.pid, 30.0, Resume(token=first.watching.token, after=last))
    assert again.watching.resumed
    assert again.watching.token == first.watching.token
    _, later = until_step(again.line, seen[-1] + 60)
    assert [*seen, *later] == list(range(seen[0], later[-1] + 1))
    again.line.close()
    until(lambda: agents() == before[0])
    assert doors() == before[1]


def test_it_keeps_no_longer_than_it_was_asked(training: "subprocess.Popen[str]") -> None:
    before = agents(), doors()
    began = watching(training.pid, keep_s=0.5)
    until_step(began.line, 1)
    began.line.abandon()
    until(lambda: agents() == before[0])
    assert doors() == before[1]


def test_a_token_of_nobody_finds_a_new_agent(training: "subprocess.Popen[str]") -> None:
    for token in ("0123456789abcdef", "../../etc/passwd", "x" * 5_000):
        began = watching(training.pid, 0.0, Resume(token=token, after=7))
        assert not began.watching.resumed
        began.line.close()


def test_a_folder_that_others_can_enter_keeps_nothing(
    training: "subprocess.Popen[str]", tmp_path: Path
) -> None:
    folder = tmp_path / f"gpuwatch-{os.geteuid()}"
    folder.mkdir()
    folder.chmod(0o777)
    place = Place("a shell", ("env", f"TMPDIR={tmp_path}", "sh", "-c"))
    line = begin(place, training.pid, asks=False, limit_s=20.0)
    watch = watch_for(training.pid, stacks=False, whole_argv=False, keep_s=30.0)
    began = begin_watching(line, watch)
    line.close()
    assert began.watching.token == ""
    assert list(folder.iterdir()) == []
