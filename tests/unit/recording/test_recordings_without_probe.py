"""Recordings from an H200, without the probe's part: what NVML, GPM and py-spy alone come to.

They were made before samples had times, so their samples are taken in a random order.
"""

import json
import random
from pathlib import Path

import pytest
from msgspec import structs

from gpuwatch.tui.model.observations import (
    Delivered,
    Greeted,
    Link,
    Missing,
    PageSeen,
    StackCount,
    StacksSeen,
)
from gpuwatch.tui.model.snapshot import Snapshot
from gpuwatch.tui.recording.format import Entry, Looked
from gpuwatch.tui.recording.reader import Recording
from gpuwatch.tui.session.session import Session
from gpuwatch.tui.verdict.engine import Engine
from gpuwatch.tui.verdict.thresholds.samples import SAMPLED_MOST_CONFIDENT

DEMO = Path(__file__).parents[3] / "demo"
CATALOGUE = {
    row["name"]: row for row in json.loads((DEMO / "scenarios" / "catalogue.json").read_text())
}
OF_THE_PROBE = (Delivered, Greeted, PageSeen, Link)
ABSTAINS = frozenset(("incomplete", "warming-up"))
NAMES = sorted(path.stem for path in (DEMO / "recordings").glob("*.gpuwatch"))


def with_times(seen: StacksSeen, chance: random.Random) -> StacksSeen:
    moments = list(range(sum(stack.count for stack in seen.stacks if stack.role == "main")))
    chance.shuffle(moments)
    stacks: list[StackCount] = []
    for stack in seen.stacks:
        if stack.role == "main":
            own, moments = moments[: stack.count], moments[stack.count :]
            stack = structs.replace(stack, moments=sum(1 << moment for moment in own))
        stacks.append(stack)
    times = tuple(100 * index for index in range(seen.samples))
    return structs.replace(seen, stacks=tuple(stacks), moments_ms=times)


def reported(name: str) -> Snapshot:
    recording = Recording(DEMO / "recordings" / f"{name}.gpuwatch")
    header, chance = recording.header, random.Random(1)
    session = Session(header.pid, header.script, header.started_ns, Engine())
    session.ingest(Missing(t_ns=header.started_ns, source="probe", reason="taken out"))
    last_ns = header.started_ns
    entry: Entry
    for entry in recording.entries():
        last_ns = entry.t_ns
        if isinstance(entry, Looked):
            session.judge(entry.t_ns)
        elif isinstance(entry, StacksSeen) and not entry.moments_ms:
            session.ingest(with_times(entry, chance))
        elif not isinstance(entry, OF_THE_PROBE):
            session.ingest(entry)
    recording.close()
    return session.snapshot(last_ns, 0.0)


@pytest.mark.parametrize("name", NAMES)
def test_what_is_reported_is_right_or_that_it_is_not_known(name: str) -> None:
    row, verdict = CATALOGUE[name], reported(name).verdict
    finding = verdict.finding
    assert finding.kind in ABSTAINS | {row["kind"], *row["also_accept"]}
    assert verdict.confidence <= SAMPLED_MOST_CONFIDENT
    if row["negative"]:
        assert finding.severity == "info", "nothing to fix"
    if row["kind"] == "input":
        assert finding.kind == "input"
        assert finding.sub == row["sub"]
