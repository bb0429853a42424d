"""Without a probe the main thread is sampled between the chunks of all; where a
probe does, it and the workers have a turn each."""

import time
from collections.abc import Callable
from pathlib import Path

import pytest

from gpuwatch.tui.sources.stacks import EAGER, LoaderWorkers, StacksSource

SAMPLER = """#!/bin/sh
echo "$@" >> {log}
while [ "$1" != --output ]; do shift; done
echo '[]' > "$2"
{ends}
"""
"""Sees nothing, at once."""
LIMIT_S = 20.0
TARGET = 1
WORKERS = (30, 31)
APART_NS = 100_000_000_000
"""Between two polls: nothing that was spent keeps anyone from a turn by then."""


def chunks(
    folder: Path,
    most: int,
    alone: bool = False,
    stalled: Callable[[], bool] = lambda: False,
    step_ns: int = APART_NS,
    ends: str = "",
) -> list[str]:
    """The arguments of the samplers, as if none took any time; polled in such steps."""
    log, program = folder / "log", folder / "py-spy"
    program.write_text(SAMPLER.format(log=log, ends=ends))
    program.chmod(0o755)
    source = StacksSource(TARGET, str(program), alone=alone, nearly_stalled=stalled)
    source.open()
    end = time.monotonic() + LIMIT_S
    done = quiet = now_ns = 0
    while done < most and quiet < 3 and time.monotonic() < end:
        source.poll(now_ns)
        started = source._running is not None
        while source._running is not None and source._running.process.poll() is None:
            time.sleep(0.005)
        source.poll(now_ns)
        done += started
        quiet = 0 if started else quiet + 1
        now_ns += step_ns
    source.close()
    return [looks_at(line) for line in log.read_text().splitlines()]


def looks_at(line: str) -> str:
    """ "all", or the pid."""
    return "all" if "--subprocesses" in line else line.rpartition(" ")[2]


@pytest.fixture(autouse=True)
def workers(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(LoaderWorkers, "pids", lambda self: WORKERS)


def test_between_the_chunks_of_all_come_those_of_the_main_process(tmp_path: Path) -> None:
    seen = chunks(tmp_path, EAGER + 3, alone=True, step_ns=0)
    assert seen == ["all"] * (EAGER + 1) + ["1"], "what was spent at this moment forbids more"


def test_a_probed_run_is_looked_at_one_process_at_a_time(tmp_path: Path) -> None:
    seen = chunks(tmp_path, EAGER + 6)
    assert seen == ["all"] * EAGER + ["30", "1", "31", "1", "30", "1"]


def test_without_workers_every_turn_is_the_main_process_s(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(LoaderWorkers, "pids", lambda self: ())
    assert chunks(tmp_path, EAGER + 3) == ["all"] * EAGER + ["1"] * 3


def test_where_it_nearly_stands_still_everyone_is_looked_at_once_more(tmp_path: Path) -> None:
    asked = 0

    def stalled() -> bool:
        nonlocal asked
        asked += 1
        return asked > EAGER + 2

    seen = chunks(tmp_path, EAGER + 4, stalled=stalled, step_ns=1)
    assert seen == ["all"] * EAGER + ["30", "all"], "and no more until that is earned"


def test_a_worker_that_has_ended_is_no_refusal(tmp_path: Path) -> None:
    ends = f"tail -n 1 {tmp_path}/log | grep -qv -- '--pid 3'"
    seen = chunks(tmp_path, EAGER + 3, ends=ends)
    assert seen == ["all"] * EAGER + ["30", "1", "31"]
