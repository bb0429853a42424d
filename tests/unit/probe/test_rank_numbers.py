"""Which rank a process is, where its group was made by the script and no launcher."""

from collections.abc import Iterator
from contextlib import contextmanager

import pytest
import torch.distributed as dist
from torch.testing._internal.distributed.fake_pg import FakeStore

from gpuwatch.probe.identity import Identity
from gpuwatch.probe.serve import Server
from gpuwatch.probe.wire import page
from gpuwatch.tui.discovery.state_page import hello_of
from tests.unit.probe.served import served


@contextmanager
def a_group(rank: int, world_size: int) -> Iterator[None]:
    dist.init_process_group("fake", store=FakeStore(), rank=rank, world_size=world_size)
    try:
        yield
    finally:
        dist.destroy_process_group()


@pytest.fixture(autouse=True)
def no_launcher(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("RANK", "WORLD_SIZE"):
        monkeypatch.delenv(name, raising=False)


@pytest.fixture
def server() -> Iterator[Server]:
    made, _, _ = served()
    yield made
    made._page.close(page.STATE_ENDED)


def on_page(server: Server) -> tuple[int | None, int | None]:
    """Rank and how many there are, behind a look of the publisher's."""
    server._next_look_ns = 0
    server.turn()
    hello = hello_of(bytes(server._page._map[: page.RING_OFFSET]))
    return hello.rank, hello.world_size


def test_a_group_that_is_made_behind_the_probe_is_on_the_page(server: Server) -> None:
    """srun and mpirun: the script installs, and then numbers its ranks. It stays as it was when the
    group is destroyed, while the run goes on."""
    assert on_page(server) == (None, None)
    with a_group(3, 8):
        assert on_page(server) == (3, 8)
    assert on_page(server) == (3, 8)


def test_a_hello_that_is_as_it_was_is_not_written_again(
    server: Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    on_page(server)
    monkeypatch.setattr(server._page, "write_hello", None)
    on_page(server)


def test_a_group_is_believed_before_the_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    """`mp.spawn` sets none, and each rank arms with its first backward, behind its group."""
    with a_group(1, 2):
        assert (Identity(None, None).rank, Identity(None, None).world_size) == (1, 2)
        monkeypatch.setenv("RANK", "0")
        monkeypatch.setenv("WORLD_SIZE", "1")
        assert (Identity(None, None).rank, Identity(None, None).world_size) == (1, 2)
    assert (Identity(None, None).rank, Identity(None, None).world_size) == (0, 1)
