"""Memory at the end of each step, in families: some that only look like a leak, and leaks.

With what they hold between steps; every number of a family is drawn anew for each seed, within
bounds that are written here.
"""

import math
import random
from collections.abc import Callable

STEPS = 4_000
BASE = 1_000.0
"""MiB that model, gradients and optimizer hold."""
EPOCH = 500
"""Steps of an epoch of the sawtooth."""

Series = list[float]
"""MiB at the end of step 1, 2, 3…"""
Family = Callable[[random.Random], Series]


def warmed_up(series: Series) -> Series:
    """With the first steps as they are: optimizer state and workspaces come one after the other."""
    return [mib * (1 - 0.4 * math.exp(-step / 2)) for step, mib in enumerate(series)]


def constant(chance: random.Random) -> Series:
    """Equal steps, and an allocator that rounds."""
    return [BASE + abs(chance.gauss(0, 1)) for _ in range(STEPS)]


def lengths_that_vary(chance: random.Random) -> Series:
    """The last batch and its logits are still alive, and each is of another length."""
    return [BASE + abs(chance.gauss(0, 80)) for _ in range(STEPS)]


def curriculum(chance: random.Random) -> Series:
    """Sequences that grow eightfold: activations are gone at the end of a step, the batch stays."""
    most = chance.uniform(6, 14)
    return [BASE + most * step / STEPS + abs(chance.gauss(0, 2)) for step in range(STEPS)]


def plateaus(chance: random.Random) -> Series:
    """Something large is allocated four times, and kept."""
    every, height = chance.randint(600, 1_200), chance.uniform(50, 200)
    return [BASE + height * min(4, step // every) + chance.gauss(0, 3) for step in range(STEPS)]


def sawtooth(chance: random.Random) -> Series:
    """Lists of metrics that are cleared at each epoch."""
    slope = chance.uniform(0.1, 0.8)
    return [BASE + slope * (step % EPOCH) + chance.gauss(0, 2) for step in range(STEPS)]


def long_sawtooth(chance: random.Random) -> Series:
    """The same with three times as long epochs: one is long enough for a leak to be confirmed."""
    slope = chance.uniform(0.1, 0.8)
    return [BASE + slope * (step % (3 * EPOCH)) + chance.gauss(0, 2) for step in range(STEPS)]


def saturating(chance: random.Random) -> Series:
    """A cache that fills."""
    tau = chance.uniform(200, 500)
    return [BASE + 800 * (1 - math.exp(-step / tau)) + chance.gauss(0, 3) for step in range(STEPS)]


def wandering(chance: random.Random) -> Series:
    """AR(1): what is held is forgotten over 20 to 200 steps."""
    keep = 1 - 1 / chance.uniform(20, 200)
    kick = 30 * math.sqrt(1 - keep**2)
    state, series = 0.0, []
    for _ in range(STEPS):
        state = keep * state + chance.gauss(0, kick)
        series.append(BASE + state)
    return series


def leaking(mib_a_step: float, every: int = 1, noise: float = 2.0) -> Family:
    """So much more is kept every so many steps."""

    def family(chance: random.Random) -> Series:
        return [
            BASE + mib_a_step * every * (step // every) + abs(chance.gauss(0, noise))
            for step in range(STEPS)
        ]

    return family


NULLS: dict[str, Family] = {
    "constant": constant,
    "lengths that vary": lengths_that_vary,
    "curriculum": curriculum,
    "plateaus": plateaus,
    "sawtooth": sawtooth,
    "sawtooth, long epochs": long_sawtooth,
    "saturating": saturating,
    "AR(1)": wandering,
}
LEAKS: dict[str, Family] = {
    "leak 0.1 MiB/step": leaking(0.1),
    "leak 2 MiB/step": leaking(2.0),
    "leak 20 MiB every 50": leaking(0.4, every=50),
    "leak 0.1 MiB/step, lengths that vary": leaking(0.1, noise=20.0),
}
EPOCHS: dict[str, int] = {"sawtooth": EPOCH, "sawtooth, long epochs": 3 * EPOCH}
"""Steps of an epoch, where a family has any."""
