"""Section `profile`: the same steps on all ranks by the profiler, beside what is known of the job.

Trainings of `demo/ranks/train.py`, one after the other: `gpuwatch profile PID --job --json` of one
rank. The bar: the rank that has the cause is the one that all others wait for; a job without one
accuses nobody; each rank's parts add up to what it exposes; the transfer is the same on all ranks.
"""

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

from gpuwatch.tui.trace.against import BY_CHANCE
from gpuwatch.tui.verdict.statistics import binomial_tail
from tests.measuring.child import ROOT, python_path
from tests.measuring.claims import Claim, broken

sys.path[:0] = [str(ROOT / "demo")]

from ranks.truth import SCENARIOS as KNOWN  # noqa: E402
from record_ranks import Started  # noqa: E402

LATE: Final = {one.scenario: one.late for one in KNOWN}
SCENARIOS: Final = (
    "balanced", "big_layers", "sleeps", "computes_twice", "balanced_fsdp2", "fsdp2", "slow_loader",
)  # fmt: skip
EITHER: Final = frozenset({one.scenario for one in KNOWN if one.either_late})
LIMIT_S: Final = 90.0
ALIKE: Final = 0.02
"""Of a step, by which parts may differ from their sum: spans are cut at the window's edges."""
LEAST: Final = 0.1


def claims(out: Path, ranks: int) -> Iterator[Claim]:
    """Rows for each scenario; what was said is kept as it is."""
    out.mkdir(parents=True, exist_ok=True)
    for scenario in SCENARIOS:
        try:
            found = _profiled(scenario, out, ranks)
        except (RuntimeError, ValueError, subprocess.SubprocessError) as error:
            yield broken("profile", scenario, error)
            continue
        yield from _rows(scenario, found)


def _profiled(scenario: str, out: Path, ranks: int) -> dict[str, Any]:
    started = Started(scenario, out, ranks)
    try:
        pids = started.train()
        command = [sys.executable, "-m", "gpuwatch", "profile", str(pids[0]), "--job", "--json"]
        done = subprocess.run(
            [*command, "-o", str(out / f"{scenario}.json")],
            capture_output=True,
            text=True,
            timeout=LIMIT_S,
            cwd=ROOT,
            env={**os.environ, "PYTHONPATH": python_path()},
            check=False,
        )
    finally:
        started.end()
    if done.returncode:
        raise RuntimeError(done.stderr[-400:])
    (out / f"{scenario}.said.json").write_text(done.stdout)
    found: dict[str, Any] = json.loads(done.stdout)
    return found


def _rows(scenario: str, found: dict[str, Any]) -> Iterator[Claim]:
    late, share, steps = found["late_rank"], found["late_share"] or 0.0, found["profile"]["steps"]
    own = next((one for one in found["profile"]["ranks"] if one["rank"] == late), None)
    by_chance = binomial_tail(own["late_in"], steps, 1 / len(found["pids"])) if own else 1.0
    named = late if share >= LEAST and by_chance <= BY_CHANCE else None
    expected = LATE[scenario]
    good = named == expected or (scenario in EITHER and named is not None)
    text = f"rank {named} {share:.2f}" if named is not None else "nobody"
    text += f"; transfer {found['transfer'] or 0:.2f}, {found['comparison']['says']} "
    text += f"{found['verdict']}: {found['comparison']['text']}"
    yield Claim("profile", f"{scenario}: late", text, f"rank {expected}", good)
    profile = found["profile"]
    off = max(
        (
            abs(one["transfer_ns"] + one["waiting_ns"] - one["exposed_ns"]) / one["step_ns"]
            for one in profile["ranks"]
            if one["transfer_ns"] is not None
        ),
        default=1.0,
    )
    yield Claim("profile", f"{scenario}: sums", f"{off:.3f} of a step", f"<= {ALIKE}", off <= ALIKE)
    sizes = [f"{one['kind']} {one['bytes']}" for one in profile["collectives"]]
    known = bool(sizes) and all(one["bytes"] is not None for one in profile["collectives"])
    yield Claim("profile", f"{scenario}: sizes", ", ".join(sizes[:4]), "known", known)
