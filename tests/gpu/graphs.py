"""Section `graphs`: captures and compilations are what they are without the probe.

Each case runs twice in fresh processes, bare and with the probe watched: same losses bit for bit,
same counts of dynamo (graphs, breaks and their reasons), and no fault of the probe. All processes
run at once, since nothing is timed.
"""

from collections.abc import Iterator
from contextlib import ExitStack
from typing import Any, Final

from tests.measuring.child import Child, ChildError, children
from tests.measuring.claims import Claim, broken, cause
from tests.measuring.watcher import Watcher, watching

CASES: Final = (
    "whole-step capture",
    "make_graphed_callables",
    "compile, fullgraph",
    "compile, reduce-overhead",
    "compile, whole step",
    "compile, optimizer",
    "sync debug mode",
)
LIMIT_S: Final = 180.0
"""The first compilation of a machine builds its tools."""


def claims() -> Iterator[Claim]:
    """A row a case."""
    arguments = [
        ("-m", "tests.gpu.graph_cases", case, with_probe)
        for case in CASES
        for with_probe in ("bare", "probe")
    ]
    with children(arguments) as started, ExitStack() as stack:
        watchers: dict[str, Watcher] = {}
        for case, child in zip(CASES, started[1::2], strict=True):
            try:
                watchers[case] = stack.enter_context(watching(child.pid))
            except Exception as error:
                yield broken("graphs: watching", case, error)
        for child in started:
            try:
                child.send()
            except ChildError:
                continue
        for case, bare, probed in zip(CASES, started[::2], started[1::2], strict=True):
            yield _row(case, bare, probed, watchers.get(case))


def compared(bare: dict[str, Any], probed: dict[str, Any]) -> list[str]:
    """What differs between the two, in words; nothing is what is wanted."""
    different = []
    if bare["losses"] != probed["losses"]:
        at = [a == b for a, b in zip(bare["losses"], probed["losses"], strict=False)]
        first = at.index(False) if False in at else len(at)
        different.append(f"losses from step {first + 1} of {len(bare['losses'])} on")
    if bare["counts"] != probed["counts"]:
        different.append(f"counts: {bare['counts']} without, {probed['counts']} with the probe")
    return different


def _row(case: str, bare: Child, probed: Child, watcher: Watcher | None) -> Claim:
    try:
        alone = bare.answer(LIMIT_S)
    except ChildError as error:
        probed.kill()
        measured = f"does not run without the probe either: {cause(error)}"
        return Claim("graphs", case, measured, "", None, {"error": str(error)})
    try:
        seen = probed.answer(LIMIT_S)
    except ChildError as error:
        return broken("graphs", case, error)
    different = compared(alone, seen)
    if watcher is not None:
        watcher.wait_for(1 << 62, 0.5)  # a moment for the last turn
        different += [f"fault: {fault}" for fault in sorted(watcher.faults)]
    stats = seen["counts"].get("stats", {})
    breaks = sum(seen["counts"].get("graph_break", {}).values())
    reported = len(watcher.gpu_steps) if watcher is not None else 0
    same = (
        f"{len(seen['losses'])} losses the same bit for bit, {stats.get('unique_graphs', 0)} "
        f"graphs, {breaks} breaks, {reported} steps measured on the device"
    )
    bar = "as without the probe"
    figures = {"bare": alone, "probe": seen, "measured": reported}
    return Claim("graphs", case, "; ".join(different) or same, bar, not different, figures)
