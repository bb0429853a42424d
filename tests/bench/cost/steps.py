"""Section `steps`: what the probe adds to a step of 0.5 to 100 ms, in one process.

The A/A row is the same arithmetic over two bare blocks: what is below it cannot be told from
nothing. A word with a "?" means that the bar lies within the noise.
"""

from collections.abc import Iterator
from dataclasses import asdict
from typing import Any, Final

from tests.bench.cost.figures import BARE_AGAIN, PROBED, Block, Cost, cost
from tests.bench.cost.machine import CUDA, Side, sides
from tests.measuring.child import Child, ChildError
from tests.measuring.claims import Claim, broken

TARGETS_MS: Final = (0.5, 2.0, 5.0, 20.0, 100.0)
UNWATCHED_US: Final = 5.0
WATCHED_US: Final = 15.0
WATCHED_CUDA_US: Final = 30.0
WATCHED_CUDA_SHARE: Final = 0.005
LONG_STEP_US: Final = 15_000.0
LIMIT_S: Final = 60.0
"""For one length, beyond what was planned."""
FEWEST_ROUNDS: Final = 5
"""With fewer, drawing them anew says little of how far apart others would lie; one alone is its own
interval."""


def claims(seconds: float) -> Iterator[Claim]:
    """Three rows a length of step and side, within about so many seconds."""
    there = sides()
    each_s = seconds / len(there) / len(TARGETS_MS)
    for side in there:
        words = [str(each_s), *map(str, TARGETS_MS)]
        with Child(["-m", "tests.bench.cost.blocks", *words], side.environment) as child:
            try:
                child.ready()
                child.tell()
                for _ in TARGETS_MS:
                    yield from rows(side, child.answer(each_s + LIMIT_S))
            except ChildError as error:
                yield broken("cost", side.name, error)


def rows(side: Side, seen: dict[str, Any]) -> Iterator[Claim]:
    """Of one length."""
    loop = f"{side.name}, {seen['target_ms']:g} ms, {seen['layers']} layers"
    told = {"side": side.name, "target_ms": seen["target_ms"], "steps_a_block": seen["steps"]}
    found: dict[str, Cost] = {}
    for mode in ("unwatched", "watched"):
        rounds = [{arm: Block(*block) for arm, block in one.items()} for one in seen[mode]]
        a_group = seen[f"{mode}_group"]
        found[f"A/A, {mode}"] = cost(BARE_AGAIN, rounds, a_group)
        found[mode] = cost(PROBED, rounds, a_group)
    for name, each in found.items():
        allowed = allowed_us(side, name, each.step_us)
        sure = allowed is None or is_sure(
            each, found[f"A/A, {name}"], allowed, seen[f"{name}_group"]
        )
        yield Claim(
            f"cost, {name}",
            loop,
            _said(each),
            "" if allowed is None else f"{allowed:.0f} us",
            None if allowed is None else each.cost_us <= allowed,
            {**told, "mode": name, **asdict(each)},
            sure,
        )


def is_sure(found: Cost, noise: Cost, allowed_us: float, a_group: int) -> bool:
    """Whether the bar lies outside the interval, and further off than the same code twice, in
    rounds enough for an interval and for all that falls on few of them."""
    enough = found.rounds >= max(FEWEST_ROUNDS, a_group)
    within = found.low_us <= allowed_us <= found.high_us
    return enough and not within and abs(found.cost_us - allowed_us) > abs(noise.cost_us)


def allowed_us(side: Side, mode: str, step_us: float) -> float | None:
    """The bar; None for a row that has none."""
    if mode == "unwatched":
        return UNWATCHED_US
    if mode != "watched":
        return None
    if side is not CUDA:
        return WATCHED_US
    return max(WATCHED_CUDA_US, WATCHED_CUDA_SHARE * step_us if step_us >= LONG_STEP_US else 0.0)


def _said(found: Cost) -> str:
    words = f"{found.cost_us:+.1f} us ({found.low_us:+.1f} to {found.high_us:+.1f})"
    words += f", {100 * found.share:+.2f} % of {found.step_us:.0f} us"
    words += f"; median step {found.median_cost_us:+.1f}"
    words += f", queue {found.queue_us:+.1f}, CPU {found.thread_us:+.1f}"
    return f"{words}, publisher {found.publisher_us:.1f}"
