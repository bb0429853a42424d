"""A training thread that ends before its process does, as Ray's workers have one."""

from pathlib import Path

from probe.wire import page
from probe.wire.messages import Batch
from tests.processes.monitored import hello_of, started, subscribed, until, word_of

ONE_BATCH_AHEAD = """
    import sys, threading
    import probe; probe.install()
    import torch

    STEPS = 5

    def train():
        net = torch.nn.Linear(8, 1)
        optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
        batches = iter(torch.utils.data.DataLoader(torch.randn(32 * STEPS, 8), batch_size=32))
        batch = next(batches)
        while batch is not None:
            following = next(batches, None)
            optimizer.zero_grad()
            net(batch).mean().backward()
            optimizer.step()
            batch = following

    for line in sys.stdin:
        thread = threading.Thread(target=train)
        thread.start()
        thread.join()
        print("trained", flush=True)
"""


def test_the_last_step_of_a_thread_that_has_ended_is_told(tmp_path: Path) -> None:
    with started(ONE_BATCH_AHEAD, tmp_path) as run:
        run.tell()
        assert run.line() == "trained"
        endpoint = hello_of(run.pid).endpoint
        assert endpoint is not None
        with subscribed(endpoint) as next_reply:
            numbers: list[int] = []
            while numbers[-1:] != [5]:
                reply = next_reply()
                if isinstance(reply, Batch):
                    numbers += [step.number for step in reply.steps]
        assert numbers == [1, 2, 3, 4, 5]
        until(lambda: word_of(run.pid, page.WORD_STEPS) == 5)
        run.process.stdin.close()  # type: ignore[union-attr]
        assert run.process.wait(10) == 0
