"""Where nothing else tells of the main thread, it is sampled between the chunks of all."""

import time
from pathlib import Path

from tui.sources.stacks import EAGER_CHUNKS, StacksSource

SAMPLER = """#!/bin/sh
echo "$@" >> {log}
while [ "$1" != --output ]; do shift; done
echo '[]' > "$2"
"""
"""Sees nothing, at once."""
LIMIT_S = 20.0


def chunks(folder: Path, alone: bool, most: int) -> list[str]:
    """The arguments of the samplers that were started at one moment, as if none took any time."""
    log, program = folder / "log", folder / "py-spy"
    program.write_text(SAMPLER.format(log=log))
    program.chmod(0o755)
    source = StacksSource(1, str(program), alone=alone)
    source.open()
    end = time.monotonic() + LIMIT_S
    done = quiet = 0
    while done < most and quiet < 3 and time.monotonic() < end:
        started = source.poll(0) == []
        while source._process is not None and source._process.poll() is None:
            time.sleep(0.005)
        seen = source.poll(0)
        done += len(seen)
        quiet = 0 if seen or not started else quiet + 1
    source.close()
    return log.read_text().splitlines()


def test_between_the_chunks_of_all_come_those_of_the_main_process(tmp_path: Path) -> None:
    lines = chunks(tmp_path, alone=True, most=EAGER_CHUNKS + 1)
    of_all = ["--subprocesses" in line for line in lines]
    assert of_all[: EAGER_CHUNKS + 1] == [True] * EAGER_CHUNKS + [False]


def test_with_a_probe_the_budget_holds_for_all(tmp_path: Path) -> None:
    lines = chunks(tmp_path, alone=False, most=EAGER_CHUNKS + 1)
    assert len(lines) == EAGER_CHUNKS
    assert all("--subprocesses" in line for line in lines)
