#!/usr/bin/env python
"""Train on two ranks with one bottleneck after the other, record each rank, and print what is said.

python demo/record_ranks.py OUT                  all scenarios: NCCL with two GPUs, else gloo
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
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Final

ROOT: Final = Path(__file__).resolve().parents[1]
sys.path[:0] = [str(ROOT), str(ROOT / "demo")]

import torch
from ranks.truth import SCENARIOS, Expected, Said, is_right, said_of

from evaluation.last_picture import last_picture
from gpuwatch.tui.cli.target import has_probe
from gpuwatch.tui.errors import GpuwatchError

PATH: Final = os.pathsep.join(filter(None, (str(ROOT), os.environ.get("PYTHONPATH"))))
RANKS: Final = 2
START_S: Final = 90.0
"""For both ranks to make their first steps: imports, CUDA, NCCL."""
GRACE_S: Final = 30.0
TABLE: Final = "table.txt"


def judged(file: Path) -> Said | None:
    """The last verdict on a recording; None where it cannot be read."""
    if not file.exists():
        return None
    try:
        return said_of(last_picture(file))
    except (GpuwatchError, ValueError) as error:
        print(f"{file.name}: {error}")
        return None


@contextmanager
def trained(scenario: str, log: Path) -> Iterator[list[int]]:
    """Both ranks at work; their pids, once each has a probe that is armed."""
    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        port = one.getsockname()[1]
    shared = {
        **os.environ,
        "PYTHONPATH": PATH,
        "MASTER_ADDR": "127.0.0.1",
        "MASTER_PORT": str(port),
        "WORLD_SIZE": str(RANKS),
        "LOCAL_WORLD_SIZE": str(RANKS),
        "NCCL_NVLS_ENABLE": "0",
    }
    command = [sys.executable, str(ROOT / "demo" / "ranks" / "train.py"), scenario]
    with log.open("w") as written:
        ranks = [
            subprocess.Popen(
                command,
                env={**shared, "RANK": str(rank), "LOCAL_RANK": str(rank)},
                stdout=written,
                stderr=subprocess.STDOUT,
                cwd=log.parent,
            )
            for rank in range(RANKS)
        ]
        try:
            end = time.monotonic() + START_S
            while not all(has_probe(rank.pid) for rank in ranks):
                if time.monotonic() > end or any(rank.poll() is not None for rank in ranks):
                    raise RuntimeError(f"{scenario} did not start: see {log}")
                time.sleep(0.2)
            yield [rank.pid for rank in ranks]
        finally:
            for rank in ranks:
                rank.kill()
            for rank in ranks:
                rank.wait()


def record(scenario: str, out: Path, seconds: float) -> None:
    """Train and record both ranks at once."""
    with trained(scenario, out / f"{scenario}.log") as pids:
        recorders = [
            subprocess.Popen(
                [sys.executable, "-m", "gpuwatch", "record", str(pid), "-o",
                 str(out / f"{scenario}.{rank}.gpuwatch"), "--duration", f"{seconds:g}"],
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
                print(f"{scenario}: record ended with {one.returncode}: {reported[-300:]}")


def table(out: Path) -> list[str]:
    """A row for each rank's monitor: what was said, and whether that is right."""
    rows, counted, right = [], 0, 0
    pace: dict[str, float] = {}
    said_by: dict[tuple[str, int], Said] = {}
    for expected in SCENARIOS:
        for rank in range(RANKS):
            found = judged(out / f"{expected.scenario}.{rank}.gpuwatch")
            if found is not None:
                said_by[expected.scenario, rank] = found
                if found.step_ms is not None:
                    pace[expected.scenario] = found.step_ms
    for expected in SCENARIOS:
        for rank in range(RANKS):
            said = said_by.get((expected.scenario, rank))
            if said is None:
                continue
            good = is_right(expected, said)
            counted, right = counted + 1, right + good
            rows.append(_row(expected, rank, said, good, pace))
    rows.append(f"{right} of {counted} right")
    return rows


def _row(expected: Expected, rank: int, said: Said, good: bool, pace: dict[str, float]) -> str:
    measured = ""
    like, own = pace.get(expected.like or ""), said.step_ms
    if like and own and said.speedup and said.kind == "straggler":
        measured = f" forecast {said.speedup:.2f}x measured {own / like:.2f}x"
    waiting = "/".join(f"{part:.2f}" for part in said.waiting)
    transfer = "-" if said.transfer is None else f"{said.transfer:.2f}"
    name = said.kind if said.sub is None else f"{said.kind}/{said.sub}"
    return (
        f"{'ok ' if good else 'BAD'} {expected.scenario:16} rank {rank}: {name:24} "
        f"late {'-' if said.late is None else said.late} step {own or 0:.1f} ms "
        f"transfer {transfer} waiting {waiting or '-'} own {said.own}{measured} | {said.headline}"
    )


def main(argv: Sequence[str] | None = None) -> int:
    """Record what was asked for, and print the table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("out", type=Path)
    parser.add_argument("scenarios", nargs="*", help="all, if none is named")
    parser.add_argument("--seconds", type=float, default=20.0, help="of each recording")
    parser.add_argument("--again", action="store_true", help="judge what was recorded")
    given = parser.parse_intermixed_args(argv)
    given.out.mkdir(parents=True, exist_ok=True)
    gpus = torch.cuda.device_count() if torch.cuda.is_available() else 0
    for expected in SCENARIOS:
        asked = not given.scenarios or expected.scenario in given.scenarios
        if given.again or not asked or (expected.gpu_only and gpus < RANKS):
            continue
        try:
            record(expected.scenario, given.out, given.seconds)
        except RuntimeError as error:
            print(error, flush=True)
            continue
        print(f"{expected.scenario} recorded", flush=True)
    rows = table(given.out)
    (given.out / TABLE).write_text("\n".join(rows) + "\n")
    (given.out / "sizes.json").write_text(
        json.dumps({file.name: file.stat().st_size for file in given.out.glob("*.gpuwatch")})
    )
    print("\n".join(rows))
    return 0


if __name__ == "__main__":
    sys.exit(main())
