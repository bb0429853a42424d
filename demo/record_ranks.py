#!/usr/bin/env python
"""Train on some ranks with one bottleneck after the other, record each, and print what is reported.

python demo/record_ranks.py OUT                  all scenarios: NCCL with GPUs enough, else gloo
python demo/record_ranks.py OUT sleeps fsdp2     some of them
python demo/record_ranks.py OUT --again          judge what lies there, without training
"""

import argparse
import json
import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Final

ROOT: Final = Path(__file__).resolve().parents[1]
sys.path[:0] = [str(ROOT), str(ROOT / "demo")]

import torch
from ranks.truth import SCENARIOS, Expected, RankVerdict, is_right, verdict_of

from gpuwatch.tui.cli.replay import last_snapshot
from gpuwatch.tui.discovery.targets import own_page
from gpuwatch.tui.errors import GpuwatchError
from gpuwatch.tui.recording.reader import Recording

PATH: Final = os.pathsep.join(filter(None, (str(ROOT), os.environ.get("PYTHONPATH"))))
START_S: Final = 60.0
"""For all ranks to make their first steps: imports, CUDA, NCCL."""
FIRST_STEPS: Final = 3
GRACE_S: Final = 30.0
TABLE: Final = "table.txt"


def judged(file: Path) -> RankVerdict | None:
    """The last verdict on a recording; None where it cannot be read."""
    if not file.exists():
        return None
    try:
        return verdict_of(last_snapshot(Recording(file)))
    except (GpuwatchError, ValueError) as error:
        print(f"{file.name}: {error}")
        return None


class Started:
    """The ranks of one scenario as processes, which wait behind their imports until `train`."""

    def __init__(self, scenario: str, out: Path, ranks: int) -> None:
        self.scenario = scenario
        self._log = out / f"{scenario}.log"
        self._when = out / f"{scenario}.when"
        self._when.unlink(missing_ok=True)
        with socket.socket() as one:
            one.bind(("127.0.0.1", 0))
            port = one.getsockname()[1]
        shared = {
            **os.environ,
            "PYTHONPATH": PATH,
            "MASTER_ADDR": "127.0.0.1",
            "MASTER_PORT": str(port),
            "WORLD_SIZE": str(ranks),
            "LOCAL_WORLD_SIZE": str(ranks),
            "NCCL_NVLS_ENABLE": "0",
        }
        command = [sys.executable, str(ROOT / "demo" / "ranks" / "train.py"), scenario]
        with self._log.open("w") as written:
            self._ranks = [
                subprocess.Popen(
                    [*command, "--when", str(self._when)],
                    env={**shared, "RANK": str(rank), "LOCAL_RANK": str(rank)},
                    stdout=written,
                    stderr=subprocess.STDOUT,
                    cwd=out,
                )
                for rank in range(ranks)
            ]

    def train(self) -> list[int]:
        """Let them; their pids, once each has made its first steps."""
        self._when.touch()
        end = time.monotonic() + START_S
        while not all(_trains(rank.pid) for rank in self._ranks):
            if time.monotonic() > end or any(rank.poll() is not None for rank in self._ranks):
                raise RuntimeError(f"{self.scenario} did not start: see {self._log}")
            time.sleep(0.2)
        return [rank.pid for rank in self._ranks]

    def end(self) -> None:
        """All of them."""
        for rank in self._ranks:
            rank.kill()
        for rank in self._ranks:
            rank.wait()
        self._when.unlink(missing_ok=True)


def _trains(pid: int) -> bool:
    page = own_page(pid)
    if page is None:
        return False
    steps = page.words().steps
    page.close()
    return steps >= FIRST_STEPS


def record(started: Started, out: Path, seconds: float) -> None:
    """Train and record all ranks at once."""
    pids = started.train()
    recorders = [
        subprocess.Popen(
            [sys.executable, "-m", "gpuwatch", "record", str(pid), "-o",
             str(out / f"{started.scenario}.{rank}.gpuwatch"), "--duration", f"{seconds:g}"],
            cwd=ROOT,
            env={**os.environ, "PYTHONPATH": PATH},
            stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
            text=True,
        )
        for rank, pid in enumerate(pids)
    ]  # fmt: skip
    for one in recorders:
        try:
            _, reported = one.communicate(timeout=seconds + GRACE_S)
        except subprocess.TimeoutExpired:
            one.send_signal(signal.SIGINT)
            _, reported = one.communicate(timeout=GRACE_S)
        if one.returncode:
            print(f"{started.scenario}: record ended with {one.returncode}: {reported[-300:]}")


def record_all(scenarios: Sequence[str], out: Path, ranks: int, seconds: float) -> None:
    """One after the other; each imports while the one before is recorded."""
    ahead: list[Started] = []
    try:
        for at, scenario in enumerate(scenarios):
            started = ahead.pop() if ahead else Started(scenario, out, ranks)
            if at + 1 < len(scenarios):
                ahead.append(Started(scenarios[at + 1], out, ranks))
            try:
                record(started, out, seconds)
                print(f"{scenario} recorded", flush=True)
            except RuntimeError as error:
                print(error, flush=True)
            finally:
                started.end()
    finally:
        for one in ahead:
            one.end()


def table(out: Path) -> list[str]:
    """A row for each rank's monitor: what was reported, and whether that is right."""
    rows, counted, right = [], 0, 0
    pace: dict[str, float] = {}
    verdict_by: dict[tuple[str, int], RankVerdict] = {}
    for expected in SCENARIOS:
        for rank in _ranks_of(out, expected.scenario):
            found = judged(out / f"{expected.scenario}.{rank}.gpuwatch")
            if found is not None:
                verdict_by[expected.scenario, rank] = found
                if found.step_ms is not None:
                    pace[expected.scenario] = found.step_ms
    for expected in SCENARIOS:
        for rank in _ranks_of(out, expected.scenario):
            verdict = verdict_by.get((expected.scenario, rank))
            if verdict is None:
                continue
            good = is_right(expected, verdict)
            counted, right = counted + 1, right + good
            rows.append(_row(expected, rank, verdict, good, pace))
    rows.append(f"{right} of {counted} right")
    return rows


def _ranks_of(out: Path, scenario: str) -> list[int]:
    """Those that were recorded."""
    files = out.glob(f"{scenario}.*.gpuwatch")
    return sorted(int(file.name.split(".")[1]) for file in files)


def _row(
    expected: Expected, rank: int, verdict: RankVerdict, good: bool, pace: dict[str, float]
) -> str:
    measured = ""
    like, own = pace.get(expected.like or ""), verdict.step_ms
    if (
        like
        and own
        and verdict.speedup
        and verdict.kind in ("straggler", "communication", "imbalance")
    ):
        measured = f" forecast {verdict.speedup:.2f}x measured {own / like:.2f}x"
    waiting = "/".join(f"{part:.2f}" for part in verdict.waiting)
    transfer = "-" if verdict.transfer is None else f"{verdict.transfer:.2f}"
    name = verdict.kind if verdict.sub is None else f"{verdict.kind}/{verdict.sub}"
    return (
        f"{'ok ' if good else 'BAD'} {expected.scenario:16} rank {rank}: {name:24} "
        f"late {'-' if verdict.late is None else verdict.late} step {own or 0:.1f} ms "
        f"transfer {transfer} waiting {waiting or '-'} own {verdict.own}{measured} "
        f"| {verdict.headline}"
    )


def main(argv: Sequence[str] | None = None) -> int:
    """Record what was asked for, and print the table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("out", type=Path)
    parser.add_argument("scenarios", nargs="*", help="all, if none is named")
    parser.add_argument("--ranks", type=int, default=2)
    parser.add_argument("--seconds", type=float, default=20.0, help="of each recording")
    parser.add_argument("--again", action="store_true", help="judge what was recorded")
    given = parser.parse_intermixed_args(argv)
    given.out.mkdir(parents=True, exist_ok=True)
    gpus = torch.cuda.device_count() if torch.cuda.is_available() else 0
    known = {one.scenario: one for one in SCENARIOS}
    if unknown := set(given.scenarios) - known.keys():
        parser.error(f"no such scenario: {', '.join(sorted(unknown))}")
    asked = [known[name] for name in given.scenarios] or SCENARIOS
    if not given.again:
        names = [one.scenario for one in asked if not one.gpu_only or gpus >= given.ranks]
        record_all(names, given.out, given.ranks, given.seconds)
    rows = table(given.out)
    (given.out / TABLE).write_text("\n".join(rows) + "\n")
    (given.out / "sizes.json").write_text(
        json.dumps({file.name: file.stat().st_size for file in given.out.glob("*.gpuwatch")})
    )
    print("\n".join(rows))
    return 0


if __name__ == "__main__":
    sys.exit(main())
