"""Section `graphs`: captures and compilations on two ranks while their collectives are read.

Each case runs without the probe, and with it, watched, timed, and asked for entries and counters
without pause: the same losses bit for bit, and readings did meet it.
"""

from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from typing import Any, Final

from tests.gpu.ranks.asking import Asking, asked_all_the_time
from tests.gpu.ranks.graph_cases import CASES
from tests.gpu.ranks.jobs import Ranks, jobs, on_gpu
from tests.measuring.child import ChildError
from tests.measuring.claims import Claim, broken, cause

LIMIT_S: Final = 90.0
BAR: Final = "as without the probe"


def claims() -> Iterator[Claim]:
    """A row a case. All run at once, since nothing is timed."""
    names = list(CASES) if on_gpu() else ["compiled DDP"]
    arguments = [
        ("-m", "tests.gpu.ranks.graph_cases", name, how)
        for name in names
        for how in ("bare", "probe")
    ]
    with jobs(arguments) as started, ExitStack() as stack:
        asking: dict[str, Asking] = {}
        for job in started:
            _ready(job)
        for name, probed in zip(names, started[1::2], strict=True):
            try:
                asking[name] = stack.enter_context(asked_all_the_time(probed.pids))
            except Exception as error:
                yield broken("graphs: asking", name, error)
        for job in started:
            _go(job)
        for name, bare, probed in zip(names, started[::2], started[1::2], strict=True):
            yield _row(name, bare, probed, asking.get(name))


def _ready(job: Ranks) -> None:
    for child in job.children:
        try:
            child.ready()
        except ChildError:
            continue


def _go(job: Ranks) -> None:
    for child in job.children:
        try:
            child.send()
        except ChildError:
            continue


def _row(name: str, bare: Ranks, probed: Ranks, asking: Asking | None) -> Claim:
    try:
        alone = bare.answers(LIMIT_S)
    except ChildError as error:
        for child in probed.children:
            child.kill()
        measured = f"does not run without the probe either: {cause(error)}"
        return Claim("graphs", name, measured, "", None, {"error": str(error)})
    try:
        seen = probed.answers(LIMIT_S)
    except ChildError as error:
        return broken("graphs", name, error)
    different = _differences(alone, seen)
    readings = asking.readings if asking is not None else 0
    counted = len(asking.counters) if asking is not None else 0
    if not readings:
        different.append("no entries were read meanwhile")
    same = (
        f"{len(seen[0]['losses'])} losses on each rank the same bit for bit; entries read "
        f"{readings} times, counters {counted} times meanwhile"
    )
    figures = {"bare": alone, "probe": seen, "readings": readings, "counters": counted}
    return Claim("graphs", name, "; ".join(different) or same, BAR, not different, figures)


def _differences(alone: Sequence[dict[str, Any]], seen: Sequence[dict[str, Any]]) -> list[str]:
    return [
        f"other losses on rank {rank}"
        for rank, (one, other) in enumerate(zip(alone, seen, strict=True))
        if one["losses"] != other["losses"]
    ]
