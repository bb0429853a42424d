"""How early a leak is reported, and what is taken for one: `python -m tests.bench.memory_growth`.

Families of memory, each over 4,000 steps, through the probe's look at the allocator and the
verdict's watch over memory. Prints for each length of a step the part of the runs in which growth
was reported and a leak was confirmed, and the steps at which that was (median, latest).
"""

import argparse
import random
from collections.abc import Sequence
from statistics import median

from tests.unit.verdict.memory_families import EPOCHS, LEAKS, NULLS, Family, warmed_up
from tests.unit.verdict.memory_runs import GrowthRun, watched

STEPS_MS = (20.0, 200.0, 1000.0)


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seeds", type=int, default=100)
    seeds = parser.parse_args().seeds
    print(f"{'step':>7}  {'family':<38}{'growth':>20}{'leak':>20}  last leak  critical growth")
    for step_ms in STEPS_MS:
        for name, family in {**NULLS, **LEAKS}.items():
            print(row(name, family, step_ms, seeds), flush=True)


def row(name: str, family: Family, step_ms: float, seeds: int) -> str:
    """One family at one length of a step."""
    runs = [look(name, family, seed, step_ms) for seed in range(seeds)]
    growth = found([one.growth_step for one in runs])
    leak = found([one.leak_step for one in runs])
    last = max((one.last_leak_step or 0 for one in runs), default=0)
    wrong = sum(one.critical_growth for one in runs)
    return f"{step_ms:>4.0f} ms  {name:<38}{growth:>20}{leak:>20}{last or '-':>16}{wrong:>17}"


def look(name: str, family: Family, seed: int, step_ms: float) -> GrowthRun:
    """One run."""
    return watched(warmed_up(family(random.Random(seed))), step_ms, EPOCHS.get(name))


def found(steps: Sequence[int | None]) -> str:
    """ "100% @371 (401)": of all runs; median and latest step."""
    reported = [step for step in steps if step is not None]
    part = f"{len(reported) / len(steps):.0%}"
    return f"{part} @{median(reported):.0f} ({max(reported)})" if reported else part


if __name__ == "__main__":
    main()
