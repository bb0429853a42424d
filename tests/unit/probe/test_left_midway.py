"""Another thread takes the probe out, as a monitor that has injected it does, at whatever point of
ours the training thread is: the loop goes on."""

import importlib
import sys
from collections.abc import Callable, Iterator, Sequence
from importlib.machinery import ModuleSpec
from importlib.util import spec_from_loader
from threading import Thread
from types import FrameType, ModuleType
from typing import Any

import pytest
import torch
from torch.optim.optimizer import (
    register_optimizer_step_post_hook,
    register_optimizer_step_pre_hook,
)
from torch.utils.data import DataLoader

import probe
from gpuwatch.probe import api
from gpuwatch.probe.circuit_breaker import PACKAGE

LIMIT = 10_000
"""Places of ours in a turn of the loop; there are some thousand."""


@pytest.fixture(autouse=True)
def _restored(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    # Nothing is compiled here: half of the time went into torch's list of files to skip. An
    # optimizer's first step loads it.
    rules = importlib.import_module("torch._dynamo.trace_rules")
    monkeypatch.setattr(rules, "_recompile_re", lambda: None)
    yield
    sys.settrace(None)
    while api._installed is not None:
        probe.uninstall()


GOES_ON_S = 0.02
"""What waits for the training thread to leave a place does so in vain: it stands in our trace."""


def on_another_thread(call: Callable[[], object], threads: list[Thread]) -> None:
    threads.append(Thread(target=call))
    threads[-1].start()
    threads[-1].join(GOES_ON_S)


def a_turn() -> Callable[[], None]:
    """Everything of ours that a loop calls."""
    model = torch.nn.Linear(2, 1)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.0)
    rows: Any = torch.ones(2, 2)

    def turn() -> None:
        for batch in DataLoader(rows, batch_size=2):
            model(batch).sum().backward()
            optimizer.step()
        for _ in probe.wrap([1]):
            with probe.phase("named"):
                pass
        probe.step()

    return turn


def disarm() -> None:
    """What fails on the publisher's thread does so."""
    assert api._installed is not None
    api._installed._breaker.trip(OSError("tried"))


def traced(turn: Callable[[], None], follow: Callable[[FrameType, str, Any], Any]) -> None:
    """A turn with the probe freshly put in."""
    probe.install()
    assert api._installed is not None
    recorder = api._installed.recorder
    recorder.watched = True
    recorder.collect_with(lambda kind: None)  # so that more than a mark is wanted of each
    theirs = (
        register_optimizer_step_pre_hook(lambda *_: None),
        register_optimizer_step_post_hook(lambda *_: None),
    )  # torch goes through both theirs and ours
    sys.settrace(follow)
    try:
        turn()
    finally:
        sys.settrace(None)
        for handle in theirs:
            handle.remove()


def each_of_ours(by: str, at: Callable[[FrameType], None]) -> Any:
    """A trace function: `at` gets each line or bytecode of ours."""

    def follow(frame: FrameType, event: str, _: Any) -> Any:
        if not frame.f_code.co_filename.startswith(PACKAGE):
            return None
        frame.f_trace_opcodes = by == "opcode"
        if event == by:
            at(frame)
        return follow

    return follow


def places(turn: Callable[[], None], by: str) -> list[int]:
    """The lines or bytecodes of ours in a turn, by their number in it, each once for all the ways
    that lead there through ours: a second round of a loop shows nothing that the first did not."""
    seen: set[tuple[object, ...]] = set()
    firsts: list[int] = []
    number = 0

    def note(frame: FrameType) -> None:
        nonlocal number
        number += 1
        led: list[object] = []
        at: FrameType | None = frame
        while at is not None and at.f_code is not turn.__code__:
            if at.f_code.co_filename.startswith(PACKAGE):
                led += (at.f_code.co_filename, at.f_code.co_firstlineno, at.f_lasti)
            at = at.f_back
        if tuple(led) not in seen:
            seen.add(tuple(led))
            firsts.append(number)

    traced(turn, each_of_ours(by, note))
    probe.uninstall()
    return firsts


def left_at(turn: Callable[[], None], at: int, by: str, leave: Callable[[], object]) -> bool:
    """Run a turn, at the line or bytecode of ours with this number without the probe; whether there
    was one."""
    left, threads = at, list[Thread]()

    def count(_: FrameType) -> None:
        nonlocal left
        left -= 1
        if left == 0:
            on_another_thread(leave, threads)
            sys.settrace(None)  # nothing more is looked for, and a traced turn takes ten times

    try:
        traced(turn, each_of_ours(by, count))
    finally:
        for thread in threads:
            thread.join()
        probe.uninstall()
    return left <= 0


@pytest.mark.slow
@pytest.mark.parametrize("leave", [probe.uninstall, disarm])
@pytest.mark.parametrize(("by", "every"), [("line", 1), ("opcode", 13)])
def test_at_any_point_of_ours(by: str, every: int, leave: Callable[[], object]) -> None:
    turn = a_turn()
    places(turn, by)  # the first imports what it needs, and so is longer than those that follow
    tried = places(turn, by)[::every]
    assert 50 < len(tried) < LIMIT
    reached = [left_at(turn, at, by, leave) for at in tried]
    assert sum(reached) > 0.9 * len(tried), "turns are alike"


class Leaves:
    """A finder of the program's: while it is asked, the probe is taken out."""

    def __init__(self, threads: list[Thread]) -> None:
        self._threads = threads

    def find_spec(
        self, name: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        if name == "found_by_the_last":
            on_another_thread(probe.uninstall, self._threads)
        return None


class Last:
    """The one behind it, which has the module."""

    def find_spec(
        self, name: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        return spec_from_loader(name, self) if name == "found_by_the_last" else None  # type: ignore[arg-type]

    def create_module(self, spec: ModuleSpec) -> None:
        return None

    def exec_module(self, module: ModuleType) -> None:
        """It is empty."""


def test_an_import_meanwhile_asks_every_finder(monkeypatch: pytest.MonkeyPatch) -> None:
    """`sys.meta_path` is walked item by item: one taken out before has the next passed over."""
    threads: list[Thread] = []
    monkeypatch.setattr(sys, "meta_path", [*sys.meta_path, Leaves(threads), Last()])
    before = list(sys.meta_path)
    probe.install()
    assert len(sys.meta_path) == len(before) + 1
    try:
        importlib.import_module("found_by_the_last")
    finally:
        sys.modules.pop("found_by_the_last", None)
        threads[0].join()
    assert sys.meta_path == before


def test_within_a_step_of_its_own_thread_the_hooks_stay() -> None:
    """torch goes through them then, and they do nothing any more."""
    model = torch.nn.Linear(2, 1)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.0)
    probe.install()
    left: list[tuple[str, ...]] = []
    theirs = (
        register_optimizer_step_pre_hook(lambda *_: left.append(probe.uninstall())),
        register_optimizer_step_pre_hook(lambda *_: None),
    )
    hooks: Any = sys.modules["torch.optim.optimizer"]
    every = hooks._global_optimizer_pre_hooks, hooks._global_optimizer_post_hooks
    try:
        optimizer.step()
        optimizer.step()
    finally:
        for handle in theirs:
            handle.remove()
        assert [len(some) for some in every] == [1, 1], "ours"
        for some in every:
            some.clear()
    assert left == [("torch.optim.optimizer",), ()]
