"""A py-spy that is refused: once more after a while, and then no more. One that fails otherwise is
tried again."""

import os
from dataclasses import replace
from pathlib import Path

import pytest

from gpuwatch.tui import clock
from gpuwatch.tui.doctor.checks import ptrace
from gpuwatch.tui.model.machine_facts import PtraceFact
from gpuwatch.tui.model.observations import Missing, StacksSeen
from gpuwatch.tui.sources.source_text import files
from gpuwatch.tui.sources.stacks import (
    AGAIN_NS,
    EAGER,
    LET_IN_NS,
    MAIN_NS,
    POLL_NS,
    LoaderWorkers,
    StacksSource,
)
from tests.unit.doctor.surroundings import FACTS
from tests.unit.sources.traces import process, thread, trace

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
        if source._running is not None:
            source._running.process.wait(10)
    return seen


def test_it_is_tried_again_when_the_probe_may_have_let_us_in(tmp_path: Path) -> None:
    source = StacksSource(os.getpid(), stand_in(tmp_path, f"echo '{DENIED}' >&2", "exit 1"))
    assert seen_of(source, 0, LET_IN_NS) == []
    assert calls(tmp_path) == 1
    (missing,) = seen_of(source, LET_IN_NS, 20 * LET_IN_NS)
    assert isinstance(missing, Missing)
    assert "stacks are off" in missing.reason
    assert calls(tmp_path) == 2


def test_what_fails_for_another_reason_is_tried_again_each_minute(tmp_path: Path) -> None:
    program = stand_in(
        tmp_path,
        f"[ $(wc -l < {tmp_path}/calls) -ge 3 ] || {{ echo 'Error: it is starting' >&2; exit 1; }}",
        'while [ "$1" != --output ]; do shift; done; echo "[]" > "$2"',
    )
    source = StacksSource(os.getpid(), program)
    missing = [one for one in seen_of(source, 0, 3 * AGAIN_NS) if isinstance(one, Missing)]
    assert [(one.reason, one.t_ns // AGAIN_NS) for one in missing] == [
        ("py-spy failed: Error: it is starting", 0),
        ("", 2),
    ]


def yama(folder: Path, scope: int) -> Path:
    """A /proc whose kernel has it."""
    file = folder / "sys" / "kernel" / "yama" / "ptrace_scope"
    file.parent.mkdir(parents=True)
    file.write_text(f"{scope}\n")
    return folder


@pytest.mark.parametrize(
    ("scope", "reason", "fix"),
    [
        (1, "only what started a program may read its stacks here", "kernel.yama.ptrace_scope=0"),
        (2, "only root may read the stacks of a program here", "run gpuwatch as root"),
        (3, "until a reboot no program may read the stacks of another", ""),
    ],
)
def test_under_yama_it_shows_which_rule_and_what_changes_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, scope: int, reason: str, fix: str
) -> None:
    monkeypatch.setattr(os, "geteuid", lambda: 1000)
    program = stand_in(tmp_path, f"echo '{DENIED}' >&2", "exit 1")
    source = StacksSource(os.getpid(), program, proc=yama(tmp_path, scope))
    (missing,) = seen_of(source, 0, 20 * LET_IN_NS)
    assert isinstance(missing, Missing)
    shown = f"{reason} (yama ptrace_scope={scope}): charts work, stacks are off"
    assert missing.reason == shown
    assert missing.fix.startswith("sudo sysctl " if scope == 1 else fix)
    assert fix in missing.fix
    facts = PtraceFact(scope, capable=False, in_container=False)
    check = ptrace(replace(FACTS, ptrace=facts), None)
    assert (check.text, check.fix) == (missing.reason, missing.fix), "the doctor says the same"


@pytest.mark.parametrize("shown", ["Error: Failed to find python version from target process"])
def test_other_refusals_are_final(tmp_path: Path, shown: str) -> None:
    source = StacksSource(os.getpid(), stand_in(tmp_path, f"echo '{shown}' >&2", "exit 1"))
    assert len(seen_of(source, 0, 20 * LET_IN_NS)) == 1
    assert calls(tmp_path) == 1


TARGET = 1
REFUSES_WORKERS = (
    'words="$*"',
    'while [ "$1" != --output ]; do shift; done',
    "echo '[]' > \"$2\"",
    f'case "$words" in *--subprocesses*|*"--pid {TARGET}") exit 0;; esac',
    "echo 'Error: EPERM: Operation not permitted' >&2",
    "exit 1",
)
"""As under Yama where the probe has let us into the main process: its workers have not."""


@pytest.mark.parametrize("lives", [True, False])
def test_workers_that_may_not_be_looked_into_are_reported_and_the_main_process_has_their_turns(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, lives: bool
) -> None:
    worker = os.getpid() if lives else 2**22 + 1
    monkeypatch.setattr(LoaderWorkers, "pids", lambda self: (worker,))
    monkeypatch.setattr(os, "geteuid", lambda: 1000)
    program = stand_in(tmp_path, 'echo "$@" >> "${0%/*}/asked"', *REFUSES_WORKERS)
    source = StacksSource(TARGET, program, proc=yama(tmp_path, 1))
    seen = seen_of(source, 0, 4 * MAIN_NS)
    missing = [one for one in seen if isinstance(one, Missing)]
    asked = [line.rpartition(" ")[2] for line in (tmp_path / "asked").read_text().splitlines()]
    if not lives:
        assert missing == [], "it ended with its epoch"
        assert asked.count(str(worker)) > 1
        return
    (reported,) = missing
    assert reported.source == "worker stacks", "those of the main process go on"
    assert reported.reason.endswith("(yama ptrace_scope=1): those of the workers are off")
    assert "kernel.yama.ptrace_scope=0" in reported.fix
    assert asked.count(str(worker)) == 1
    assert asked.count(str(TARGET)) == len(asked) - 1 > EAGER + 1


def test_what_was_sampled_before_the_training_was_warm_is_sampled_again(tmp_path: Path) -> None:
    written = 'while [ "$1" != --output ]; do shift; done; echo "[]" > "$2"'
    program = stand_in(tmp_path, f'echo "$@" >> {tmp_path}/asked', written)
    warm: list[int | None] = [None]
    source = StacksSource(os.getpid(), program, warm_since_ns=lambda: warm[0])
    seen_of(source, 0, 2 * MAIN_NS)
    before = len((tmp_path / "asked").read_text().splitlines())
    warm[0] = clock.now_ns()
    seen_of(source, 2 * MAIN_NS, 2 * MAIN_NS + 2 * EAGER * POLL_NS)
    after = (tmp_path / "asked").read_text().splitlines()[before:]
    assert ["--subprocesses" in one for one in after[:EAGER]] == [True] * EAGER
    assert "--subprocesses" not in " ".join(after[EAGER:])


def test_a_file_that_was_changed_since_the_run_began_is_named_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    script = tmp_path / "train.py"
    script.write_text("total += loss.item()\n")
    monkeypatch.setattr(files, "loaded_at", lambda pid: 0.0)
    stack = [process(os.getpid()), thread(os.getpid()), ("train", str(script), 1)]
    (tmp_path / "trace").write_bytes(trace([(0, os.getpid(), 1, stack)], 100))
    written = f'while [ "$1" != --output ]; do shift; done; cat {tmp_path}/trace > "$2"'
    source = StacksSource(os.getpid(), stand_in(tmp_path, written))
    seen = seen_of(source, 0, 8 * POLL_NS)
    (missing,) = [one for one in seen if isinstance(one, Missing)]
    assert missing.signal.text == "source lines: train.py changed since the run began, and not read"
    lines = {stack.line for one in seen if isinstance(one, StacksSeen) for stack in one.stacks}
    assert lines == {""}
