"""Processes that come and go."""

from dataclasses import replace

import pytest

from gpuwatch.tui.errors import NotPermittedError
from gpuwatch.tui.fleet import host as host_module
from gpuwatch.tui.fleet.host import ENDED_KEPT_S, MOST_TARGETS, TRY_AGAIN_S, HostWatch
from gpuwatch.tui.model.snapshot import Snapshot, as_ended
from tests.unit.faces.pictures import picture


class FakeProvider:
    """Shows what it was given."""

    def __init__(self, pid: int) -> None:
        self.shown: Snapshot = picture(pid=pid)
        self.no_start: Exception | None = None
        self.fault: Exception | None = None
        self.closed = 0

    def start(self) -> None:
        if self.no_start is not None:
            raise self.no_start

    def snapshot(self) -> Snapshot:
        if self.fault is not None:
            raise self.fault
        return self.shown

    def close(self) -> None:
        self.closed += 1


class Host:
    """What runs on it, and a watch of it."""

    def __init__(self) -> None:
        self.running: list[int] = []
        self.refused: set[int] = set()
        self.no_start: dict[int, Exception] = {}
        self.providers: dict[int, FakeProvider] = {}
        self.lines: list[str] = []
        self.now_s = 0.0
        self.watch = HostWatch(
            lambda: list(self.running),
            self._watch,
            lambda pid: (),
            self.lines.append,
            run="run",
            host="node7",
            clock=lambda: round(self.now_s * 1e9),
        )

    def _watch(self, pid: int) -> FakeProvider:
        if pid in self.refused:
            raise NotPermittedError(f"process {pid} belongs to root")
        self.providers[pid] = FakeProvider(pid)
        self.providers[pid].no_start = self.no_start.get(pid)
        return self.providers[pid]

    def pids(self) -> list[int]:
        return [one.snapshot.pid for one in self.watch.watched()]


def test_processes_come_and_go_and_the_end_stays_in_sight_for_a_while() -> None:
    host = Host()
    assert host.watch.look() == 0
    host.running = [1, 2]
    assert host.watch.look() == 2
    assert host.pids() == [1, 2]
    host.providers[1].shown = as_ended(host.providers[1].shown, "exited normally")
    host.running = [2]
    assert host.watch.look() == 1
    assert host.providers[1].closed == 1
    assert [one.snapshot.status.state for one in host.watch.watched()] == ["ended", "live"]
    host.now_s = ENDED_KEPT_S + 1
    host.watch.look()
    assert host.pids() == [2]
    host.watch.close()
    assert [one.closed for one in host.providers.values()] == [1, 1]


def test_a_rank_that_turns_up_below_what_was_named_takes_its_place() -> None:
    host = Host()
    host.running = [1]
    host.watch.look()
    host.providers[1].shown = picture(pid=2)
    host.running = [2, 3]
    assert host.watch.look() == 2
    assert (host.pids(), list(host.providers)) == ([2, 3], [1, 3])
    host.providers[3].shown = picture(pid=2)
    host.running = [2]
    assert host.watch.look() == 1, "once, whoever came to watch it"
    assert (host.pids(), host.providers[3].closed) == ([2], 1)


def test_a_process_that_may_not_be_watched_is_named_once_and_tried_again_later() -> None:
    host = Host()
    host.running, host.refused = [1, 2], {1}
    for _ in range(3):
        host.watch.look()
    assert host.lines == ["process 1 is not exported: process 1 belongs to root"]
    assert (host.pids(), host.watch.failed) == ([2], 1)
    host.refused.clear()
    host.now_s = TRY_AGAIN_S + 1
    host.watch.look()
    assert host.pids() == [2, 1]


def test_one_that_cannot_be_begun_is_let_go_of_and_keeps_nobody_else_out() -> None:
    host = Host()
    host.running = [1, 2]
    host.no_start[1] = RuntimeError("can't start new thread")
    assert host.watch.look() == 1
    assert (host.pids(), host.watch.failed, host.providers[1].closed) == ([2], 1, 1)
    assert host.lines == ["process 1 is not exported: RuntimeError: can't start new thread"]
    host.no_start.clear()
    host.now_s = TRY_AGAIN_S + 1
    assert host.watch.look() == 2


def test_a_mistake_in_one_monitor_ends_that_one_alone() -> None:
    host = Host()
    host.running = [1, 2]
    host.watch.look()
    host.providers[1].fault = ZeroDivisionError("in a rule")
    assert host.pids() == [2]
    host.watch.look()
    assert host.lines == ["process 1 is not exported: ZeroDivisionError: in a rule"]
    assert host.providers[1].closed == 1


def test_there_are_never_more_than_so_many_and_that_is_reported() -> None:
    host = Host()
    host.running = list(range(1, MOST_TARGETS + 10))
    for _ in range(2):
        host.watch.look()
    assert len(host.pids()) == MOST_TARGETS
    assert len(host.lines) == 1
    assert str(MOST_TARGETS) in host.lines[0]
    first = host.providers[1]
    first.shown = replace(first.shown, status=replace(first.shown.status, state="ended"))
    host.watch.look()
    assert len(host.pids()) == MOST_TARGETS
    assert 1 not in host.pids()


@pytest.mark.parametrize(
    ("environ", "name"),
    [
        ({"SLURM_JOB_ID": "812", "TORCHELASTIC_RUN_ID": "llama"}, "slurm-812"),
        ({"TORCHELASTIC_RUN_ID": "llama"}, "llama"),
        ({"TORCHELASTIC_RUN_ID": "none"}, "train.py"),
        ({"TORCHELASTIC_RUN_ID": "ab3303c0-e643-48f5-8b69-e851500aa806"}, "train.py"),
        ({}, "train.py"),
    ],
)
def test_a_run_is_named_as_people_know_it(
    environ: dict[str, str], name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(host_module, "environ_of", lambda pid: environ)
    assert host_module.run_name(1, picture()) == name
