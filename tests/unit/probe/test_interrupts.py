"""What a signal's handler raises inside a hook comes out of it, at whatever line it struck."""

import functools
import linecache
import signal
import sys
from collections.abc import Callable, Iterator
from types import FrameType
from typing import Any

import pytest
import torch
from torch.utils.data import DataLoader

import probe
from gpuwatch.probe import api, circuit_breaker
from gpuwatch.probe.circuit_breaker import PACKAGE, CircuitBreaker, is_users
from gpuwatch.probe.deep import memory_facts
from gpuwatch.probe.wire import UNCOUNTED

LIMIT = 2_000
"""Lines of ours in a turn of the loop; there are some hundred."""


class Watchdog(Exception):
    pass


@pytest.fixture(autouse=True)
def _restored() -> Iterator[None]:
    yield
    sys.settrace(None)
    while api._installed is not None:
        probe.uninstall()
    assert torch._C._is_torch_function_enabled(), "put on again, whatever came out"


def a_turn() -> Callable[[], None]:
    """Everything of ours that a loop calls."""
    model = torch.nn.Linear(2, 1)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.0)
    rows: Any = torch.ones(4, 2)

    def turn() -> None:
        for batch in DataLoader(rows, batch_size=2):
            model(batch).sum().backward()
            optimizer.step()
        for _ in probe.wrap([1, 2]):
            with probe.phase("named"):
                pass
        probe.step()

    return turn


def is_with(frame: FrameType) -> bool:
    """A trace function may raise between the end of a `with` and its exit, which no signal can:
    what was entered there would stay so for the tests behind."""
    file = frame.f_code.co_filename.removesuffix(UNCOUNTED)
    return linecache.getline(file, frame.f_lineno).strip().startswith("with ")


def struck(turn: Callable[[], None], at: int, is_watched: bool) -> tuple[bool, bool]:
    """Whether a watchdog struck at the line of ours with this number, and whether it came out."""
    left = at

    def strike(frame: FrameType, event: str, _: Any) -> Any:
        nonlocal left
        if not frame.f_code.co_filename.startswith(PACKAGE):
            return None
        if event == "line" and not is_with(frame):
            left -= 1
            if left == 0:
                raise Watchdog
        return strike

    assert api._installed is not None
    api._installed.recorder.watched = is_watched
    sys.settrace(strike)
    try:
        turn()
    except Watchdog:
        return True, True
    finally:
        sys.settrace(None)
    return left <= 0, False


@pytest.mark.slow
@pytest.mark.parametrize("is_watched", [False, True])
def test_it_comes_out_of_every_line_of_the_hooks(is_watched: bool) -> None:
    probe.install()
    turn = a_turn()
    turn()
    assert api._installed is not None
    for at in range(1, LIMIT):
        did_strike, came_out = struck(turn, at, is_watched)
        assert did_strike == came_out, f"line {at} swallowed it"
        if not did_strike:
            break
        assert api._installed._breaker.fault is None, "and it is no fault of ours"
    assert 50 < at < LIMIT


def raises(*_: Any) -> None:
    raise Watchdog


class Handler:
    def __call__(self, number: int, frame: "FrameType | None") -> None:
        raise Watchdog

    def method(self, number: int, frame: "FrameType | None") -> None:
        del frame, number
        raise Watchdog


def through_another(number: int, frame: "FrameType | None") -> None:
    signal.signal(signal.SIGUSR1, signal.SIG_DFL)
    raises()


@pytest.mark.parametrize(
    "handler",
    [raises, Handler(), Handler().method, functools.partial(raises, 1), through_another,
     lambda *_: raises(), lambda number, frame: raises(number)],
)  # fmt: skip
@pytest.mark.parametrize("is_tripped", [False, True])
def test_a_real_signal_in_a_guarded_place(handler: Any, is_tripped: bool) -> None:
    breaker = CircuitBreaker(lambda: None)
    breaker.fault = "before" if is_tripped else None
    before = signal.signal(signal.SIGUSR1, handler)
    try:
        with pytest.raises(Watchdog), breaker:
            signal.raise_signal(signal.SIGUSR1)
        signal.signal(signal.SIGUSR1, handler)
        with pytest.raises(Watchdog):
            hot_path(breaker)
    finally:
        signal.signal(signal.SIGUSR1, before)
    assert (breaker.fault is not None) == is_tripped


def hot_path(breaker: CircuitBreaker) -> None:
    """A guard as the hooks have it."""
    try:
        signal.raise_signal(signal.SIGUSR1)
    except Exception as error:
        breaker.trip(error)


def test_what_we_did_wrong_is_kept() -> None:
    def fails() -> None:
        raise Watchdog("raised in what we called, not by a handler")

    breaker = CircuitBreaker(lambda: None)
    with breaker:
        fails()
    assert breaker.fault is not None
    with breaker:
        raise KeyError("ours")


def test_an_exception_that_another_thread_put_in_is_recognised_by_its_type(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """It has no frame of its own: the innermost is ours."""
    monkeypatch.setattr(circuit_breaker, "PACKAGE", __file__)
    for kind, expected in ((Watchdog, True), (OSError, False), (torch.OutOfMemoryError, False)):
        with pytest.raises(kind) as raised:
            raise kind("struck")
        assert is_users(raised.value) == expected


class Interrupted(Exception):
    """Of the program's: a signal comes while somebody looks at it."""

    def __str__(self) -> str:
        signal.raise_signal(signal.SIGUSR1)
        return "not reached"

    @property
    def device(self) -> Any:
        """As a tensor has one."""
        signal.raise_signal(signal.SIGUSR1)


@pytest.mark.parametrize(
    "look",
    [
        lambda: CircuitBreaker(lambda: None).trip(Interrupted()),
        lambda: memory_facts._host_bytes(Interrupted(), set()),
    ],
    ids=["an error's text", "a tensor"],
)
def test_a_signal_while_we_look_at_an_object_of_the_programs(look: Callable[[], object]) -> None:
    def handler(number: int, frame: FrameType | None) -> None:
        raise Watchdog

    before = signal.signal(signal.SIGUSR1, handler)
    try:
        with pytest.raises(Watchdog):
            look()
    finally:
        signal.signal(signal.SIGUSR1, before)


def test_a_signal_before_a_fork_is_shown(monkeypatch: pytest.MonkeyPatch) -> None:
    def handler(number: int, frame: FrameType | None) -> None:
        raise Watchdog

    monkeypatch.setattr(api, "_installed", object())
    monkeypatch.setattr(sys, "version_info", (3, 12))
    monkeypatch.setattr(api, "_is_only_other_thread", lambda: signal.raise_signal(signal.SIGUSR1))
    before = signal.signal(signal.SIGUSR1, handler)
    try:
        with pytest.raises(Watchdog):
            api._about_to_fork()
    finally:
        signal.signal(signal.SIGUSR1, before)
        monkeypatch.undo()
