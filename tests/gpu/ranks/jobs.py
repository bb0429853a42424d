"""A job of this section: one process a rank, which takes its orders on stdin."""

import os
import socket
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from typing import Any, Final

import torch

from tests.measuring.child import Child

RANKS: Final = 2
ANSWER_S: Final = 60.0


def on_gpu() -> bool:
    """Whether each rank has a device of its own."""
    return torch.cuda.is_available() and torch.cuda.device_count() >= RANKS


class Ranks:
    """The processes, by rank."""

    def __init__(self, children: Sequence[Child]) -> None:
        self.children = children

    @property
    def pids(self) -> list[int]:
        """By rank."""
        return [one.pid for one in self.children]

    def send(self, word: str) -> None:
        """All of them."""
        for one in self.children:
            one.send(word)

    def answers(self, limit_s: float = ANSWER_S) -> list[dict[str, Any]]:
        """A line of each."""
        return [one.answer(limit_s) for one in self.children]


@contextmanager
def jobs(each: Sequence[Sequence[str]]) -> Iterator[list[Ranks]]:
    """A job for each list of arguments, all at once; all are gone afterwards. Those that fail say
    so when they are asked for something."""
    with ExitStack() as stack:
        yield [_job(stack, arguments) for arguments in each]


def _job(stack: ExitStack, arguments: Sequence[str]) -> Ranks:
    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        port = one.getsockname()[1]
    shared = {
        "MASTER_ADDR": "127.0.0.1",
        "MASTER_PORT": str(port),
        "WORLD_SIZE": str(RANKS),
        "LOCAL_WORLD_SIZE": str(RANKS),
        "NCCL_NVLS_ENABLE": "0",
        "TORCH_NCCL_ASYNC_ERROR_HANDLING": os.environ.get("TORCH_NCCL_ASYNC_ERROR_HANDLING", "1"),
        "TORCHINDUCTOR_COMPILE_THREADS": "1",
    }
    return Ranks(
        [
            stack.enter_context(
                Child(arguments, {**shared, "RANK": str(rank), "LOCAL_RANK": str(rank)})
            )
            for rank in range(RANKS)
        ]
    )
