"""Section `cost`: what the probe adds to a step of 2, 5, 20 and 100 ms, in one process.

Bars: 30 us a step while watched, 0.5 % at 20 ms (the issue). The A/A row is the same arithmetic
over two bare blocks: what is below it cannot be told from nothing.
"""

from collections.abc import Iterator
from dataclasses import asdict
from typing import Any, Final

from tests.gpu.child import children
from tests.gpu.claims import Claim
from tests.gpu.cost_figures import BARE_AGAIN, UNWATCHED, WATCHED, Block, allowed_us, cost

LENGTHS: Final = 4
LIMIT_S: Final = 150.0
"""For one length."""


def claims() -> Iterator[Claim]:
    """Three rows a length of step: A/A, unwatched, watched."""
    with children([("-m", "tests.gpu.cost_blocks")]) as (child,):
        child.tell()
        for _ in range(LENGTHS):
            yield from rows(child.answer(LIMIT_S))


def rows(seen: dict[str, Any]) -> Iterator[Claim]:
    """Of one length."""
    rounds: list[dict[str, Block]] = seen["rounds"]
    for arm, name in ((BARE_AGAIN, "A/A"), (UNWATCHED, UNWATCHED), (WATCHED, WATCHED)):
        found = cost(arm, rounds)
        allowed = allowed_us(found.step_us)
        measured = (
            f"{found.cost_us:+.1f} us ({found.low_us:+.1f} to {found.high_us:+.1f}, median step "
            f"{found.median_cost_us:+.1f}), {100 * found.share:+.2f} % of {found.step_us:.0f} us"
        )
        barred = arm == WATCHED
        yield Claim(
            f"cost, {name}",
            f"{seen['target_ms']:.0f} ms, {seen['layers']} layers",
            measured,
            f"{allowed:.0f} us" if barred else "",
            found.cost_us <= allowed if barred else None,
            {**asdict(found), "rounds": rounds, "steps": seen["steps"]},
        )
