"""A turn of the publisher, without its thread."""

from gpuwatch.probe.fuse import Fuse
from gpuwatch.probe.identity import identify
from gpuwatch.probe.recorder import Recorder
from gpuwatch.probe.rows import GpuMemory
from gpuwatch.probe.serve import ROWS_A_TURN, Server
from gpuwatch.probe.state_page import StatePage
from gpuwatch.probe.wire import page
from tests.unit.probe.test_plain import Loop


def unheard() -> tuple[Server, Recorder]:
    """A server that found no safe place for a socket."""
    fuse = Fuse(lambda: None)
    recorder = Recorder(lambda _: True, fuse.trip)
    identity = identify(None, "no socket")
    state_page = StatePage(identity.as_json(page.HELLO_BYTES))
    return Server(recorder, state_page, fuse, identity), recorder


def rows_of(steps: int) -> list[int]:
    """How many steps each row of a turn holds in which so many plain ones were completed."""
    server, recorder = unheard()
    loop = Loop(0, counted=0.0)
    loop.steps(10)
    recorder.ring.extend(loop.marks)
    recorder.watched = True
    server.turn()
    before = len(server._history)
    begun = len(loop.marks)
    loop.steps(steps)
    recorder.ring.extend(loop.marks[begun:])
    server.turn()
    return [step.count for step in list(server._history)[before:]]


def test_as_many_steps_as_a_turn_has_rows_are_told_one_by_one() -> None:
    assert rows_of(ROWS_A_TURN - 5) == [1] * (ROWS_A_TURN - 5)


def test_more_steps_than_rows_are_put_together_evenly() -> None:
    rows = rows_of(4 * ROWS_A_TURN)
    assert sum(rows) == 4 * ROWS_A_TURN
    assert ROWS_A_TURN // 2 < len(rows) <= ROWS_A_TURN
    assert max(rows) <= 6


def test_what_nobody_is_told_is_not_kept() -> None:
    server, _ = unheard()
    seen = GpuMemory(0, 0, 0, 1, 1, 1, 1, 1, None, 0, 0)
    for _ in range(20):
        server._timeline.ledger.memory.append(seen)
        server.turn()
    assert len(server._gpu_memory) <= 1
