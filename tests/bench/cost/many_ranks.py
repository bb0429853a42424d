"""Section `many ranks`: what a monitor of 64 ranks on one host uses, at 80x24.

63 of them are pages with marks of 50 steps a second, written by processes that do nothing else; the
screen on a terminal of its own reads them all. Their collectives are made up: 2,000 entries a rank,
parsed and matched as often as the monitor asks for so many.
"""

import json
import time
from collections.abc import Iterator
from dataclasses import asdict
from typing import Any, Final

from gpuwatch.tui.messages import Collectives
from gpuwatch.tui.sources.collectives import A_RANK_NS, answer_of
from gpuwatch.tui.verdict.job.exchange import exchanges, fabric_of
from gpuwatch.tui.verdict.job.matching import Bounds
from tests.bench.cost.intervals import FEWEST, Bar, interval, judged
from tests.bench.cost.monitor import WINDOW_S, read
from tests.measuring.child import Child
from tests.measuring.claims import Claim
from tests.measuring.uses import use_of
from tests.processes.pseudo_terminal import PseudoTerminal

RANKS: Final = 64
STEPS_S: Final = 50
SIZE: Final = (80, 24)
WARM_S: Final = 15.0
START_S: Final = 60.0
CORE: Final = Bar(15)
"""% of a core, both rows together."""
ENTRIES: Final = 2_000
A_STEP: Final = 7


def claims(seconds: float) -> Iterator[Claim]:
    """The collectives, then the screen with them."""
    collectives = parsed_percent()
    loop = f"{RANKS} ranks, {STEPS_S} steps/s"
    text = f"{collectives:.1f} % of a core"
    yield Claim("collectives, CPU", loop, text, "", None, {"unit": "%", "value": collectives})
    screen: list[float] = []
    words = ("-m", "tests.bench.cost.ranks_job", str(RANKS), str(STEPS_S))
    with Child(words) as job:
        pid = int(job.answer(START_S)["pid"])
        job.until("ready", START_S)
        with PseudoTerminal("gpuwatch.tui.cli.main", "attach", str(pid), size=SIZE) as terminal:
            monitor = terminal.process.pid
            read(terminal, WARM_S)
            until_s = time.monotonic() + seconds
            while len(screen) < FEWEST or time.monotonic() < until_s:
                began_s, before_s = time.monotonic(), use_of(monitor).cpu_s
                read(terminal, WINDOW_S)
                used_s = use_of(monitor).cpu_s - before_s
                screen.append(100 * used_s / (time.monotonic() - began_s) + collectives)
    found = interval(screen)
    measured, met = judged(found, CORE, "% of a core")
    figures = {"unit": "% of a core", **asdict(found)}
    yield Claim("screen and collectives, CPU", loop, measured, f"{CORE.most:g} %", met, figures)


def parsed_percent() -> float:
    """Of a core, for parsing and matching the entries of all ranks."""
    began_s = time.process_time()
    of_ranks = {rank: answer_of(reply(rank)).collectives for rank in range(RANKS)}
    made_s = time.process_time()
    replies_s = sum(_made_s(rank) for rank in range(RANKS))
    matched_s = time.process_time()
    steps = [Bounds(n, n * 10**7, (n + 1) * 10**7) for n in range(ENTRIES // A_STEP + 1)]
    found = exchanges(of_ranks, steps)
    fabric_of(of_ranks)
    ended_s = time.process_time()
    assert len(found) > ENTRIES // A_STEP // 2
    used_s = made_s - began_s - replies_s + ended_s - matched_s
    return 100 * used_s / (A_RANK_NS * RANKS / 1e9)


def _made_s(rank: int) -> float:
    """What making the answer itself took."""
    began_s = time.process_time()
    reply(rank)
    return time.process_time() - began_s


def reply(rank: int) -> Collectives:
    """As NCCL's flight recorder writes it."""
    entries: list[dict[str, Any]] = [
        {
            "collective_seq_id": at, "p2p_seq_id": 0, "op_id": at, "pg_id": 0,
            "process_group": ["0", "default_pg"], "profiling_name": "nccl:all_reduce",
            "input_sizes": [[6_553_600]], "input_dtypes": ["Float"],
            "output_sizes": [[6_553_600]], "output_dtypes": ["Float"], "record_id": at,
            "state": "completed", "retired": True, "is_p2p": False, "timeout_ms": 600_000,
            "time_created_ns": (at // A_STEP) * 10**7 + at % A_STEP * 10**5,
            "time_discovered_started_ns": 1, "time_discovered_completed_ns": 1,
            "duration_ms": 0.25 + 0.01 * ((at * 7 + rank) % 5),
        }
        for at in range(ENTRIES)
    ]  # fmt: skip
    body = json.dumps({"entries": entries, "pg_status": {}, "pg_config": {}}).encode()
    return Collectives(0, 0, True, 1, [], "", [], body)
