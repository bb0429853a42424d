"""A job over several hosts that never ran: what the agents of its hosts would report."""

from typing import Any

from gpuwatch.tui.model.observations import RanksSeen, RankUse
from gpuwatch.tui.remote.node import NodeReport, rows_of
from gpuwatch.tui.verdict.job.matching import Collective
from tests.unit.session.making import MS, S

STEP_NS = 100 * MS
COLLECTIVES = 4
"""A step."""


def use(rank: int, second: int, **fields: Any) -> RankUse:
    """A rank that makes ten steps a second, and waits for data 5 ms in each."""
    given: dict[str, Any] = {
        "pid": 1_000 + rank,
        "running": True,
        "state": 1,
        "steps": 10 * second,
        "open_kind": 3,
        "open_since_ns": second * S,
        "heartbeat_ns": second * S,
        "counted": 10,
        "wall_ns": S,
        "data_ns": 50 * MS,
        "forward_ns": 300 * MS,
        "backward_ns": 600 * MS,
        "optimizer_ns": 50 * MS,
        "device": rank % 8,
        **fields,
    }
    return RankUse(rank=rank, **given)


def report(
    second: int,
    ranks: range,
    world: int,
    late: frozenset[int] = frozenset(),
    every: int = 1,
    ahead_ns: int = 0,
    timed: bool = True,
) -> NodeReport:
    """The second of these ranks' host that ends then. Late ranks wait 40 ms a step for data, the
    others as long in each first collective of it. `ahead_ns`: of the host's clock; `timed`: on
    GPUs, which time their collectives."""
    late_ms = 40 if late else 0
    uses, rows = [], []
    for rank in ranks:
        moved = {"data_ns": (50 + 400) * MS, "backward_ns": 200 * MS} if rank in late else {}
        at_ns = second * S + ahead_ns
        found = use(
            rank,
            second,
            open_since_ns=at_ns,
            heartbeat_ns=at_ns,
            device=rank % 8 if timed else None,
            **moved,
        )
        uses.append(found)
        collectives = []
        for step in range(10 * (second - 1), 10 * second):
            if step % every:
                continue
            for at in range(COLLECTIVES):
                waits_ms = late_ms if at == 0 and rank not in late else 0
                issued_ns = step * STEP_NS + (50 + 10 * at - waits_ms) * MS + rank % 7 * 1_000
                collectives.append(
                    Collective(
                        "0",
                        step * COLLECTIVES + at + 1,
                        "nccl:all_reduce" if timed else "gloo:all_reduce",
                        1 << 20,
                        issued_ns + ahead_ns,
                        (1 + waits_ms) * MS + rank % 5 * 10_000 if timed else None,
                    )
                )
        rows.append(rows_of(rank, collectives))
    seen = RanksSeen(t_ns=second * S + ahead_ns, world_size=world, interval_ns=S, ranks=tuple(uses))
    bounds = [
        (
            step + 1,
            (step * STEP_NS + ahead_ns) // 1_000,
            ((step + 1) * STEP_NS + ahead_ns) // 1_000,
        )
        for step in range(10 * (second - 1), 10 * second)
        if step % every == 0
    ]
    return NodeReport(seen.t_ns, seen, rows, bounds)
