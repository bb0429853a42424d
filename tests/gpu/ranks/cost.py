"""Section `cost`: what watching the collectives of a job costs its training.

Two jobs of the same loop live side by side and train in turns, a window each: the first is never
watched, the second is unwatched, then watched without its collectives, then with NCCL's timing on,
which PyTorch cannot switch off again. What a window of the second takes beyond one of the first,
beside it in time, less what it took beyond while neither was watched, is the cost. A reading of
entries is measured by itself, in windows with one reading; it falls on so many steps as a monitor
leaves between two (`CollectivesAsker`).
"""

import random
import statistics
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from typing import Any, Final

import zmq

from gpuwatch.tui.sources.collectives import COST_PPM, EVERY_NS, RankLink
from tests.bench.cost.intervals import Interval, interval
from tests.gpu.ranks.asking import arrived, read_once, watched
from tests.gpu.ranks.jobs import Ranks, jobs
from tests.measuring.claims import Claim, broken
from tests.processes.monitored import hello_of

LOOPS: Final = ("ddp", "fsdp2")
STEP_MS: Final = 20.0
WINDOW_S: Final = 1.0
BAR: Final = 0.005
AHEAD_NS: Final = 600_000_000
"""A watched probe looks for questions four times a second."""
READINGS: Final = 6
RESAMPLES: Final = 4_000
CALIBRATE_STEPS: Final = 20
MOST_TRIES: Final = 3


@dataclass(frozen=True)
class Cost:
    """As parts of a step."""

    value: float
    low: float
    high: float


def claims(seconds: float) -> Iterator[Claim]:
    """Three rows a loop. `seconds`: for both loops."""
    for loop in LOOPS:
        try:
            yield from _loop(loop, seconds / len(LOOPS))
        except Exception as error:
            yield broken("collectives: cost", loop, error)


def _loop(loop: str, seconds: float) -> Iterator[Claim]:
    arguments = ("-m", "tests.gpu.ranks.loops", loop)
    with jobs([arguments, arguments]) as (never, then):
        for job in (never, then):
            for child in job.children:
                child.ready()
        rows, step_ms = _calibrated(never)
        _rows(then, rows)
        steps = max(3, round(WINDOW_S * 1e3 / step_ms))
        rounds = max(4, round(seconds * 0.8 / (3 * 2 * WINDOW_S)))
        before = _ratios(never, then, steps, rounds)
        with watched(then.pids[:1]):
            _window(then, steps)
            seen = _ratios(never, then, steps, rounds)
            context = zmq.Context()
            links = [RankLink(hello_of(pid), pid, hello_of(pid).uid) for pid in then.pids]
            try:
                _switch_on(context, links, then, steps)
                timed = _ratios(never, then, steps, rounds)
                readings = [_reading(context, links, never, then, steps) for _ in range(READINGS)]
            finally:
                for link in links:
                    link.close()
                context.term()
        figures: dict[str, Any] = {
            "rows": rows, "step_ms": step_ms, "steps": steps, "before": before, "watched": seen,
            "timed": timed, "readings": readings,
        }  # fmt: skip
        bar = f"{BAR:.1%}"
        watching = cost(before, seen)
        yield Claim("watched, no timing", loop, _text(watching), bar, _keeps(watching), figures)
        timing = cost(before, timed)
        name = "watched, collectives timed"
        yield Claim(name, loop, _text(timing), bar, _keeps(timing), asdict(timing))
        yield _of_reading(loop, timing, readings, statistics.median(timed), step_ms)


def cost(before: Sequence[float], after: Sequence[float]) -> Cost:
    """How much the median ratio of two jobs grew, with the interval that holds 95 % of its like
    when both are drawn anew."""
    order = random.Random(0)
    drawn = sorted(_grown(order, before, after) for _ in range(RESAMPLES))
    beyond = round(RESAMPLES * 0.025)
    value = statistics.median(after) / statistics.median(before) - 1
    return Cost(value, drawn[beyond], drawn[-beyond])


def _grown(order: random.Random, before: Sequence[float], after: Sequence[float]) -> float:
    old = statistics.median(order.choices(before, k=len(before)))
    return statistics.median(order.choices(after, k=len(after))) / old - 1


def _of_reading(
    loop: str, timing: Cost, readings: Sequence[dict[str, Any]], ratio: float, step_ms: float
) -> Claim:
    """What a reading adds to the window that it falls in, over the time between two."""
    whole = [one for one in readings if one["answers"] == 2]
    extra = [(one["ns"] - one["beside_ns"] * ratio) / 1e6 for one in whole]
    if not extra:
        return broken("reading the entries", loop, "no rank answered")
    found: Interval = interval(extra)
    cost_ns = max(one["cost_ns"] for one in whole)
    every_ms = max(EVERY_NS, cost_ns * 1_000_000 // COST_PPM) / 1e6
    share = found.value / every_ms
    together = timing.value + share
    low, high = timing.low + found.low / every_ms, timing.high + found.high / every_ms
    measured = (
        f"{found.text('ms')} a reading of {whole[-1]['bytes']:,} bytes, of which the thread reads "
        f"{cost_ns / 1e6:.1f} ms; every {every_ms / 1e3:.0f} s that is {share:+.2%}; with timing "
        f"{together:+.2%} ({low:+.2%} to {high:+.2%}) of a step of {step_ms:.1f} ms"
    )
    met = None if low <= BAR < high else together <= BAR
    return Claim("… and read", loop, measured, f"{BAR:.1%}", met, {"readings": readings})


def _text(found: Cost) -> str:
    return f"{found.value:+.2%} ({found.low:+.2%} to {found.high:+.2%})"


def _keeps(found: Cost) -> bool | None:
    return None if found.low <= BAR < found.high else found.value <= BAR


def _calibrated(job: Ranks) -> tuple[int, float]:
    """Rows that make a step about `STEP_MS` long, and how long it is with them."""
    rows, step_ms = 2048, 0.0
    for _ in range(MOST_TRIES):
        _rows(job, rows)
        step_ms = _window(job, CALIBRATE_STEPS) / CALIBRATE_STEPS / 1e6
        if abs(step_ms / STEP_MS - 1) < 0.1:
            break
        rows = max(64, min(65_536, round(rows * STEP_MS / step_ms / 64) * 64))
    return rows, step_ms


def _rows(job: Ranks, rows: int) -> None:
    job.send(f"rows {rows}")
    job.answers()


def _window(job: Ranks, steps: int) -> int:
    job.send(f"steps {steps}")
    return max(int(one["ns"]) for one in job.answers())


def _ratios(never: Ranks, then: Ranks, steps: int, rounds: int) -> list[float]:
    """Of neighbouring windows, in the order 1-2-2-1."""
    found = []
    for at in range(rounds):
        if at % 2:
            own_ns = _window(then, steps)
            found.append(own_ns / _window(never, steps))
        else:
            beside_ns = _window(never, steps)
            found.append(_window(then, steps) / beside_ns)
    return found


def _switch_on(
    context: "zmq.Context[Any]", links: Sequence[RankLink], job: Ranks, steps: int
) -> None:
    """The first question switches timing on; its answer comes 1.5 s later."""
    read_once(context, links, AHEAD_NS)
    for _ in range(4):
        _window(job, steps)
        if len(arrived(links, 0.1)) == len(links):
            return


def _reading(
    context: "zmq.Context[Any]", links: Sequence[RankLink], never: Ranks, then: Ranks, steps: int
) -> dict[str, Any]:
    """One reading in a window of the second job, and a window of the first."""
    beside_ns = _window(never, 2 * steps)
    read_once(context, links, AHEAD_NS)
    own_ns = _window(then, 2 * steps)
    replies = arrived(links, 2.0)
    return {
        "ns": own_ns,
        "beside_ns": beside_ns,
        "answers": len(replies),
        "cost_ns": max((one.cost_ns for one in replies), default=0),
        "bytes": max((len(one.body) for one in replies), default=0),
    }
