"""The deep look on the screen: what it costs comes first, then what it shows."""

import asyncio
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from gpuwatch.tui.app import GpuwatchApp
from gpuwatch.tui.errors import NothingToMeasureError
from gpuwatch.tui.model.snapshot import Snapshot
from gpuwatch.tui.sources import deep_look, deep_report, job_look
from gpuwatch.tui.sources.deep_look import ProfileAnswer
from gpuwatch.tui.sources.deep_report import Looked
from gpuwatch.tui.sources.job_look import JobLooked
from gpuwatch.tui.trace.job import job_profile_of
from gpuwatch.tui.trace.leaks import DeviceMemory, MemoryWindow
from gpuwatch.tui.trace.profile import Window, profile_of
from tests.tui.fake_run import FakeRun
from tests.tui.golden_text import assert_golden, screen_text
from tests.tui.rank_states import eight_ranks
from tests.unit.trace.h200_windows import window
from tests.unit.trace.job_traces import recorded

SIZES = [(50, 20), (80, 24), (100, 30), (200, 60)]
STACK = [("train.py", 31, "train"), ("lib.py", 3, "wraps")]
KEPT = MemoryWindow(
    seconds=30.0,
    steps=600,
    cost_ns=24_000_000,
    device=DeviceMemory(
        reserved=3 << 30,
        active=2 << 30,
        before=1 << 30,
        empty=200 << 20,
        holey=90 << 20,
        history_s=1.5,
        short=False,
        stacks=[(700 << 20, 600, 690 << 20, 590, 80 << 20, STACK)],
    ),
)


def looked(*_: Any) -> Looked:
    """As if the run were one of an H200."""
    seen = window("sync_items")
    return Looked(ProfileAnswer(torn_down=True, on_device=True), seen, profile_of(seen))


class Link:
    """Answers at once."""

    def __init__(self, *_: Any) -> None:
        pass

    def __enter__(self) -> "Link":
        return self

    def __exit__(self, *_: object) -> None:
        pass

    def memory(self, *_: Any) -> tuple[MemoryWindow, bytes]:
        return KEPT, b"pickled"


@pytest.fixture(autouse=True)
def answered(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(deep_report, "open_window", looked)
    monkeypatch.setattr(deep_report, "hello_of", lambda pid: None)
    monkeypatch.setattr(deep_look, "DeepLookLink", Link)


def screen(size: tuple[int, int], keys: Sequence[str], run: FakeRun | None = None) -> str:
    """After some keys, when what they began is over."""

    async def session() -> str:
        app = GpuwatchApp(run or FakeRun())
        async with app.run_test(size=size) as pilot:
            await app.begun.wait()
            await pilot.pause()
            for key in keys:
                await pilot.press(key)
                await app.screen.workers.wait_for_complete()
            app.frame()
            await pilot.pause()
            return screen_text(app)

    return asyncio.run(session())


def test_costs_come_first() -> None:
    text = screen((100, 30), ["p"])
    assert "profiling 3 steps" in text
    assert "Press p or m to begin" in text
    memory = screen((100, 30), ["m"])
    assert "recording allocations for 30 s" in memory


@pytest.mark.parametrize("size", SIZES)
def test_a_profile(size: tuple[int, int]) -> None:
    text = screen(size, ["p", "p"])
    assert all(len(line) <= size[0] for line in text.splitlines())
    assert_golden(f"profile_{size[0]}x{size[1]}", text)


@pytest.mark.parametrize("size", SIZES)
def test_memory(size: tuple[int, int]) -> None:
    text = screen(size, ["m", "m"])
    assert all(len(line) <= size[0] for line in text.splitlines())
    assert_golden(f"leaks_{size[0]}x{size[1]}", text)


def test_the_trace_is_kept_on_request(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    screen((100, 30), ["p", "p"])
    assert list(tmp_path.iterdir()) == []
    screen((100, 30), ["p", "p", "s"])
    (path,) = tmp_path.iterdir()
    assert path.name.endswith(".trace.json")
    screen((100, 30), ["m", "m", "s"])
    assert [one.read_bytes() for one in tmp_path.glob("*.snapshot.pickle")] == [b"pickled"]


def test_a_refusal_shows_why(monkeypatch: pytest.MonkeyPatch) -> None:
    def refused(*_: Any) -> Looked:
        raise NothingToMeasureError(
            "the process cannot be profiled now", "another profiler records"
        )

    monkeypatch.setattr(deep_report, "open_window", refused)
    assert "another profiler records" in screen((100, 30), ["p", "p"])


@pytest.mark.parametrize("key", ["p", "m"])
def test_a_recording_and_a_run_without_the_probe_show_it(
    key: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    shown: list[str] = []
    monkeypatch.setattr(GpuwatchApp, "notify", lambda app, text, **more: shown.append(text))

    def replayed(snapshot: Snapshot) -> Snapshot:
        return replace(snapshot, status=replace(snapshot.status, replay="a recording"))

    screen((100, 30), [key], FakeRun(change=replayed))
    screen((100, 30), [key], FakeRun(change=lambda snapshot: replace(snapshot, hello=None)))
    assert "this is a recording" in shown[0]
    assert "works through the probe" in shown[1]


def job_looked(*_: Any) -> JobLooked:
    """As if rank 1 of two computed longer."""
    ranks = recorded([2_000, 5_000], steps=11)
    windows = tuple(Window(one.recorded, None, (), ()) for one in ranks)
    answer = ProfileAnswer(torn_down=True, on_device=True)
    return JobLooked((701, 702), (answer, answer), windows, job_profile_of(ranks))


@pytest.mark.parametrize("size", SIZES)
def test_in_the_view_of_the_ranks_all_are_profiled(
    size: tuple[int, int], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(job_look, "open_job_windows", job_looked)
    offered = screen(size, ["7", "p"], FakeRun(change=eight_ranks))
    assert "on all ranks here" in " ".join(offered.split())
    text = screen(size, ["7", "p", "p"], FakeRun(change=eight_ranks))
    assert all(len(line) <= size[0] for line in text.splitlines())
    assert_golden(f"job_profile_{size[0]}x{size[1]}", text)
    alone = screen((100, 30), ["p"], FakeRun(change=eight_ranks))
    assert "profiling 3 steps" in alone, "elsewhere the watched rank is"


def test_a_trace_of_each_rank_is_kept_on_request(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(job_look, "open_job_windows", job_looked)
    screen((100, 30), ["7", "p", "p", "s"], FakeRun(change=eight_ranks))
    found = sorted(path.name.partition(".")[2] for path in tmp_path.iterdir())
    assert found == ["0.trace.json", "1.trace.json"]
