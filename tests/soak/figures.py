"""The figures of a soak, by tenths: what its tables show and its bars are held against."""

from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass

from tests.soak.costs import cost as cost_of
from tests.soak.record import Row, SoakRecord
from tests.soak.sprint import LEAST_CPU, MEAN, MEDIAN
from tests.soak.trend import PARTS, Figure, part_of, parts

MIB = 2**20
STEP = "us a step"


@dataclass(frozen=True)
class Column:
    """One quantity over the run."""

    name: str
    unit: str
    figures: list[Figure]
    digits: int = 1


def cost_columns(record: SoakRecord) -> list[Column]:
    """What the probe and the monitors cost."""

    def cost(name: str, column: int) -> tuple[Column, Column]:
        found = [cost_of(triples, column) for triples in record.triples]
        us = [None if one is None else one.us for one in found]
        noise = [None if one is None else one.noise_us for one in found]
        return Column(f"hooks, {name}", STEP, us), Column(f"A/A, {name}", STEP, noise)

    def core(name: str, look: Callable[[Row], float]) -> Column:
        return Column(name, "% of a core", [_times(100, at) for at in record.rates(look)], 2)

    return [
        *cost("least CPU", LEAST_CPU),
        *cost("median step", MEDIAN),
        *cost("mean step", MEAN),
        Column(
            "screen to its terminal",
            "kB/s",
            [_times(1e-3, at) for at in record.rates(lambda row: float(row["screen_bytes"]))],
        ),
        core("the probe's thread", lambda row: float(row["publisher_cpu_s"])),
        core("training thread", lambda row: float(row["watched_thread_cpu_s"])),
        core("twin's", lambda row: float(row["bare_thread_cpu_s"])),
        core("screen", lambda row: float(row["screen"]["cpu_s"])),
        core("JSON", lambda row: float(row["json"]["cpu_s"])),
        core("screen's py-spy", lambda row: _helpers_s(row, "screen")),
        core("JSON's py-spy", lambda row: _helpers_s(row, "json")),
    ]


def memory_columns(record: SoakRecord) -> list[Column]:
    """What is held in memory."""

    def memory(name: str, look: Callable[[Row], float]) -> Column:
        return Column(name, "MiB", [_times(1 / MIB, at) for at in record.sampled(look)])

    def one(process: str, what: str) -> Callable[[Row], float]:
        return lambda row: float(row[process][f"{what}_bytes"])

    return [
        memory("watched RSS", one("watched", "rss")),
        memory("twin RSS", one("bare", "rss")),
        memory(
            "watched − twin", lambda row: row["watched"]["rss_bytes"] - row["bare"]["rss_bytes"]
        ),
        memory("watched PSS", one("watched", "pss")),
        memory("twin PSS", one("bare", "pss")),
        memory("watched workers PSS", one("below_watched", "pss")),
        memory("twin workers PSS", one("below_bare", "pss")),
        memory("screen RSS", one("screen", "rss")),
        memory("screen PSS", one("screen", "pss")),
        memory("JSON RSS", one("json", "rss")),
        memory("JSON PSS", one("json", "pss")),
    ]


def held_columns(record: SoakRecord) -> list[Column]:
    """Threads, descriptors, sockets, and what was lost."""

    def count(name: str, look: Callable[[Row], float]) -> Column:
        return Column(name, "", record.sampled(look), 0)

    def one(process: str, what: str) -> Callable[[Row], float]:
        return lambda row: float(row[process][what])

    lost = [(t - record.began, float(lost)) for t, lost in record.attached.lost_at]
    return [
        count("watched threads", one("watched", "threads")),
        count("twin threads", one("bare", "threads")),
        count("watched descriptors", one("watched", "descriptors")),
        count("twin descriptors", one("bare", "descriptors")),
        count("screen threads", one("screen", "threads")),
        count("screen descriptors", one("screen", "descriptors")),
        count("JSON threads", one("json", "threads")),
        count("JSON descriptors", one("json", "descriptors")),
        count("socket files", lambda row: float(row["sockets"])),
        count("marks lost", lambda row: float(row["lost_marks"])),
        Column("messages lost", "", parts(lost, record.length_s), 0),
    ]


def verdicts(record: SoakRecord) -> list[str]:
    """What the JSON monitor reported in each part, the most frequent first."""
    counts: list[Counter[str]] = [Counter() for _ in range(PARTS)]
    for t, verdict in record.attached.verdicts:
        counts[part_of(t - record.began, record.length_s)][verdict] += 1
    return [
        ", ".join(f"{name} {n / part.total():.0%}" for name, n in part.most_common(3))
        for part in counts
    ]


def _helpers_s(row: Row, monitor: str) -> float:
    """CPU seconds of all that a monitor has started."""
    below = row[f"below_{monitor}"]
    return float(row[monitor]["reaped_cpu_s"] + below["cpu_s"] + below["reaped_cpu_s"])


def _times(factor: float, figure: Figure) -> Figure:
    return None if figure is None else factor * figure
