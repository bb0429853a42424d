"""The doctor at every size: what is not measured stands out, with what changes it."""

import asyncio
from dataclasses import replace

import pytest

from gpuwatch.tui.app import GpuwatchApp
from gpuwatch.tui.discovery.state_page import no_stacks
from gpuwatch.tui.model.machine_facts import MachineFacts, PtraceFact
from gpuwatch.tui.model.snapshot import Snapshot
from gpuwatch.tui.verdict.findings import MissingSignal
from tests.tui.fake_run import FakeRun
from tests.tui.golden_text import assert_golden, picture_of, screen_text
from tests.unit.doctor.surroundings import FACTS

SIZES = [(50, 20), (80, 24), (100, 30), (200, 60)]
YAMA, SYSCTL = no_stacks(1, contained=False)


def without_stacks(snapshot: Snapshot) -> Snapshot:
    """As on Ubuntu, without root."""
    status = replace(
        snapshot.status,
        missing=(MissingSignal("stacks", f"{YAMA}: charts work, stacks are off", SYSCTL),),
        lost_messages=7,
    )
    return replace(snapshot, stacks=None, status=status)


def facts(pid: int) -> MachineFacts:
    assert pid == 48213
    return replace(FACTS, ptrace=PtraceFact(1, False, False), engine=("nv-hostengine", 991))


@pytest.mark.parametrize("size", SIZES)
def test_the_doctor(size: tuple[int, int]) -> None:
    text = doctor_of(size, FakeRun(change=without_stacks))
    assert all(len(line) <= size[0] for line in text.splitlines())
    assert "▲ 3 missing" in text
    assert_golden(f"doctor_{size[0]}x{size[1]}", text)


def doctor_of(size: tuple[int, int], run: FakeRun) -> str:
    """The screen once the facts are there."""

    async def session() -> str:
        app = GpuwatchApp(run, gather=facts)
        async with app.run_test(size=size) as pilot:
            await app.begun.wait()
            await pilot.pause()
            await pilot.press("d")
            await app.screen.workers.wait_for_complete()
            app.frame()
            await pilot.pause()
            return screen_text(app)

    return asyncio.run(session())


def test_of_a_recording_the_surroundings_are_not_asked() -> None:
    def replayed(snapshot: Snapshot) -> Snapshot:
        return replace(snapshot, status=replace(snapshot.status, replay="12s of 30s"))

    def never(pid: int) -> MachineFacts:
        raise AssertionError(pid)

    text = picture_of((100, 30), replayed, keys=["d"], gather=never)
    assert "not in a recording" in text
