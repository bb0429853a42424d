"""A training thread that ends before its process does, as Ray's workers have one."""

from functools import partial
from pathlib import Path

from gpuwatch.probe.wire import marks, page
from gpuwatch.tui.steps import Batch, Step
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


def has_reported(pid: int, steps: int) -> bool:
    return word_of(pid, page.WORD_STEPS) == steps


def test_each_training_thread_is_reported_to_its_last_step(tmp_path: Path) -> None:
    with started(ONE_BATCH_AHEAD, tmp_path) as run:
        reported: list[Step] = []
        for steps in (5, 10):
            run.send()
            assert run.line() == "trained"
            until(partial(has_reported, run.pid, steps))
            assert page.unpack_open(word_of(run.pid, page.WORD_OPEN), 0)[0] == marks.TRAINING_OVER
        endpoint = hello_of(run.pid).endpoint
        assert endpoint is not None
        with subscribed(endpoint) as next_reply:
            while not reported:
                reply = next_reply()
                if isinstance(reply, Batch):
                    reported += reply.steps
                    assert reply.open.kind == marks.TRAINING_OVER
                    assert reply.lost_marks == 0
        assert [step.number for step in reported] == list(range(1, 11))
        longest_ns = max(step.end_ns - step.start_ns for step in reported)
        between_ns = reported[5].start_ns - reported[4].end_ns
        assert longest_ns < between_ns, "the time between the two threads is no step's"
