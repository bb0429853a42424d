"""A hang that py-spy may not look into: the stacks view shows what the probe itself saw."""

import asyncio
from dataclasses import replace

import pytest

from gpuwatch.tui.app import GpuwatchApp
from gpuwatch.tui.discovery.state_page import no_stacks
from gpuwatch.tui.model.observations import DumpSeen, StackCount, ThreadRole
from gpuwatch.tui.model.snapshot import Snapshot
from gpuwatch.tui.session.stacks import DumpStore
from gpuwatch.tui.verdict.findings import MissingSignal
from tests.tui.fake_run import FakeRun
from tests.tui.golden_text import assert_golden, screen_text

SIZES = [(50, 20), (80, 24), (100, 30), (200, 60)]
MAIN = (
    "<module> (train.py:120)",
    "main (train.py:104)",
    "train_epoch (train.py:88)",
    "log (metrics.py:31)",
)
WRITER = (
    "Thread._bootstrap (threading.py:1002)",
    "Thread.run (threading.py:982)",
    "flush (metrics.py:57)",
    "Queue.get (queue.py:180)",
)


def thread(role: ThreadRole, frames: tuple[str, ...], line: str) -> StackCount:
    return StackCount(role=role, pid=48213, thread=role, frames=frames, count=1, line=line)


def hanging(snapshot: Snapshot) -> Snapshot:
    book = DumpStore()
    stacks = (thread("main", MAIN, "with self.lock:"), thread("other", WRITER, "self.send(rows)"))
    book.seen(DumpSeen(t_ns=1, taken_ns=1, stacks=stacks, left_out=0))
    standing = book.standing(0)
    assert standing is not None
    reason, fix = no_stacks(1, contained=False)
    status = replace(snapshot.status, missing=(MissingSignal("stacks", reason, fix),))
    return replace(snapshot, stacks=None, trees=standing.trees, status=status)


@pytest.mark.parametrize("size", SIZES)
def test_the_stacks_view(size: tuple[int, int]) -> None:
    async def session() -> str:
        app = GpuwatchApp(FakeRun(change=hanging))
        async with app.run_test(size=size) as pilot:
            await app.begun.wait()
            await pilot.pause()
            await pilot.press("5")
            await pilot.pause()
            return screen_text(app)

    text = asyncio.run(session())
    assert all(len(line) <= size[0] for line in text.splitlines())
    assert "by the probe" in text
    assert "flush (metrics.py:57)" in text
    assert "100%" not in text, "one look gives no shares"
    assert_golden(f"stacks_by_probe_{size[0]}x{size[1]}", text)
