"""Section `steps`: what the probe adds to a step, in one process (`blocks` has the method).

Two lengths of step a side. A row is the median over the pairs, with the interval in which 95 % of
such medians lie, or "not resolved". The row "the same code twice" is the same arithmetic over two
blocks without the probe: its interval should hold 0.
"""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import asdict
from types import MappingProxyType
from typing import Any, Final, NamedTuple

from tests.bench.cost.intervals import (
    IN,
    OUT_AGAIN,
    Arm,
    Bar,
    Mode,
    Pair,
    differences,
    interval,
    judged,
)
from tests.bench.cost.machine import CUDA, HOST, Side, sides
from tests.measuring.child import Child, ChildError
from tests.measuring.claims import Claim, broken

TARGETS_MS: Final = {HOST.name: (0.5, 2.0), CUDA.name: (2.0, 20.0)}
COARSE: Final = {HOST.name: Bar(15), CUDA.name: Bar(30)}
"""In place of a bar that is not there: an interval that holds both nothing and more than this shows
nothing. us; what a watched step was to cost at most before there were other bars."""
LIMIT_S: Final = 90.0
"""For one length, beyond what was planned: one pair at least, and up to 30 s of settling, twice."""


class Row(NamedTuple):
    """One line of the table, for each length of step."""

    name: str
    mode: Mode
    values: Callable[[list[Pair]], list[float]]
    """A value a pair, in `unit`."""
    unit: str
    digits: int = 1
    bars: Mapping[str, Bar] = MappingProxyType({})
    """By loop, where there is one."""
    is_noise: bool = False
    """It shows how far the same code differs from itself."""
    only_shortest: bool = False
    """Long steps say the same with more noise."""


def _more(figure: str, per: float = 1e3, arm: Arm = IN) -> Callable[[list[Pair]], list[float]]:
    return lambda pairs: [one / per for one in differences(pairs, arm, figure)]


def _wall_without_queue(arm: Arm) -> Callable[[list[Pair]], list[float]]:
    """us; without the waits for a core, which are the neighbours' doing."""

    def values(pairs: list[Pair]) -> list[float]:
        wall_ns, queue_ns = (differences(pairs, arm, name) for name in ("wall_ns", "queue_ns"))
        return [(wall - queue) / 1e3 for wall, queue in zip(wall_ns, queue_ns, strict=True)]

    return values


def _publisher(pairs: list[Pair]) -> list[float]:
    """us; all of it is the probe's, so there is nothing to subtract."""
    return [one[IN]["publisher_ns"] / 1e3 for one in pairs]


def _lock_held(pairs: list[Pair]) -> list[float]:
    """%: all CPU time of our thread, as if it held the lock also where it lets it go. Of the time
    in which the training thread had a core."""
    used = [one[IN] for one in pairs]
    return [100 * one["publisher_ns"] / (one["wall_ns"] - one["queue_ns"]) for one in used]


def _objects(pairs: list[Pair]) -> list[float]:
    """By which those alive grew: a loop that is bare keeps none. Not those made and freed again."""
    return [one[IN]["objects"] for one in pairs]


HALF_MS: Final = "host, 0.5 ms"
ROWS: Final = (
    Row(
        "the hooks alone",
        "unwatched",
        _more("hooked_ns"),
        "us",
        bars={HALF_MS: Bar(3)},
        only_shortest=True,
    ),
    Row("CPU, training thread", "unwatched", _more("thread_ns"), "us", only_shortest=True),
    Row("CPU, training thread", "watched", _more("thread_ns"), "us", only_shortest=True),
    Row("CPU, whole process", "unwatched", _more("process_ns"), "us", bars={HALF_MS: Bar(4)}),
    Row("CPU, whole process", "watched", _more("process_ns"), "us", bars={HALF_MS: Bar(6)}),
    Row("CPU, the probe's thread", "watched, left alone", _publisher, "us"),
    Row("time", "unwatched", _wall_without_queue(IN), "us"),
    Row(
        "time",
        "watched",
        _wall_without_queue(IN),
        "us",
        bars={HALF_MS: Bar(8, within=15), "CUDA, 2 ms": Bar(20, within=30)},
    ),
    Row(
        "lock held, at most",
        "watched, left alone",
        _lock_held,
        "%",
        2,
        bars={HALF_MS: Bar(1)},
        only_shortest=True,
    ),
    Row("Python objects kept", "watched, left alone", _objects, "", 2, only_shortest=True),
    Row("instructions", "watched", _more("instructions"), "thousand", only_shortest=True),
    Row(
        "the same code twice, CPU",
        "watched",
        _more("process_ns", arm=OUT_AGAIN),
        "us",
        is_noise=True,
    ),
    Row(
        "the same code twice, time", "watched", _wall_without_queue(OUT_AGAIN), "us", is_noise=True
    ),
)


def claims(seconds: float) -> Iterator[Claim]:
    """The rows of each side and length of step, within about so many seconds."""
    there = sides()
    for side in there:
        targets_ms = TARGETS_MS[side.name]
        each_s = seconds / len(there) / len(targets_ms)
        words = [str(each_s), *map(str, targets_ms)]
        with Child(["-m", "tests.bench.cost.blocks", *words], side.environment) as child:
            try:
                child.ready()
                child.send()
                for _ in targets_ms:
                    yield from rows(side, child.answer(each_s + LIMIT_S))
            except ChildError as error:
                yield broken("per step", side.name, error)


def rows(side: Side, seen: dict[str, Any]) -> Iterator[Claim]:
    """Of one length, from a line of `blocks`."""
    where = f"{side.name}, {seen['target_ms']:g} ms"
    is_shortest = seen["target_ms"] == min(TARGETS_MS[side.name])
    for row in ROWS:
        if row.only_shortest and not is_shortest:
            continue
        loop = f"{where}, {row.mode}"
        pairs: list[Pair] = [
            {Arm(arm): used for arm, used in one.items()} for one in seen[row.mode]
        ]
        values = row.values(pairs)
        if not values:
            why = seen["no_instructions"]
            yield Claim(row.name, loop, f"not measured: {why}", "", None, {"error": why})
            continue
        found, bar = interval(values), row.bars.get(where)
        coarse = COARSE[side.name] if row.unit == "us" and not row.is_noise else None
        measured, met = judged(found, bar or coarse, row.unit, row.digits, row.unit != "%")
        met = None if bar is None else met
        figures = {"unit": row.unit, "layers": seen["layers"], **asdict(found)}
        yield Claim(row.name, loop, measured, _words(bar, row.unit), met, figures)


def _words(bar: Bar | None, unit: str) -> str:
    if bar is None:
        return ""
    return f"{bar.most:g} {unit}" + (f", within {bar.within:g}" if bar.within is not None else "")
