"""`python -m tests.bench.compare_noise [--pairs 400]`: how often `gpuwatch compare` calls noise a
change, and how often it finds one, over runs whose noise lasts.

The tables of docs/compare.md. Noise of 3 % of the step, normal, whose correlation fades to a third
within so many seconds; every run has its own.
"""

import argparse
import sys
from functools import cache
from typing import Final

from gpuwatch.tui.compare.figures import STEP, measured, settled
from gpuwatch.tui.compare.intervals import Estimate, change
from tests.unit.compare.runs import lasting, of_times

LASTS_S: Final = (0, 1, 3, 10, 30)
LENGTHS_S: Final = ((15, 15), (30, 30), (60, 60), (120, 120), (240, 240), (15, 240))
CHANGES: Final = (1.05, 1.10, 2.0)
CHANGED_S: Final = (15, 30, 60, 120)


@cache
def step(seconds: int, lasts_s: int, factor: float, seed: int) -> Estimate:
    """The step time of a run."""
    times = lasting(seconds, lasts_s, seed, mean_ms=100.0 * factor)
    return measured([settled(of_times(times))])[STEP.key]


def called(lengths_s: tuple[int, int], lasts_s: int, factor: float, pairs: int) -> float:
    """Part of the pairs in which the step time is called another."""
    first, second = lengths_s
    return (
        sum(
            change(
                step(first, lasts_s, 1.0, 2 * seed), step(second, lasts_s, factor, 2 * seed + 1)
            ).is_found
            for seed in range(pairs)
        )
        / pairs
    )


def main() -> int:
    """Prints a row for each correlation time: equal runs, then each change."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--pairs", type=int, default=400)
    pairs = parser.parse_args().pairs
    print("equal runs called a change; noise lasts, runs of", LENGTHS_S)
    for lasts_s in LASTS_S:
        found = [called(lengths_s, lasts_s, 1.0, pairs) for lengths_s in LENGTHS_S]
        print(f"{lasts_s:>3} s", *(f"{part:7.1%}" for part in found), flush=True)
    for factor in CHANGES:
        print(f"{factor:.2f} times as long, found; noise lasts, runs of", CHANGED_S)
        for lasts_s in LASTS_S:
            found = [called((each, each), lasts_s, factor, pairs) for each in CHANGED_S]
            print(f"{lasts_s:>3} s", *(f"{part:7.1%}" for part in found), flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
