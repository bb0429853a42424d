"""What becomes of a run whose monitors are killed, stopped, many, or deaf."""

import os
import signal
from pathlib import Path

import pytest
import zmq

from gpuwatch.tui.messages import encode_message
from gpuwatch.tui.requests import Leave
from gpuwatch.tui.sources.marks.reader import ReplyReader
from tests.faults.training import TRAIN, bare, descriptors_of, resident_bytes, threads_of
from tests.faults.watching import NEVER_READS, READS, monitor
from tests.processes.monitored import LIMIT_S, Run, hello_of, started, subscription, until

STEPS = 600
AT = 200
pytestmark = pytest.mark.fault

WAITS = TRAIN + f"    print(train({STEPS}, at_step=wait_at({AT})), flush=True)\n"
WAITS_TWICE = WAITS + "    sys.stdin.readline()\n"

IN_A_HURRY = """
    import gpuwatch.probe.endpoint, gpuwatch.probe.peers, gpuwatch.probe.serve
    gpuwatch.probe.serve.TURN_S = 0.004
    gpuwatch.probe.endpoint.MOST_WAITING_BYTES = 40_000
    gpuwatch.probe.peers.PEER_TIMEOUT_NS = 600_000_000_000
"""
"""Fifty times the messages, and a fiftieth of the room, for a monitor that is not given up: minutes
are over in seconds."""

MOST_GROWTH_BYTES = 16_000_000
"""A queue to one monitor may take 4 MB; torch's own allocations come and go besides."""


def endpoint_of(run: Run) -> str:
    """Where it is watched, once it listens."""
    endpoint = hello_of(run.pid).endpoint
    assert endpoint is not None
    until(Path(endpoint.removeprefix("ipc://")).exists)
    return endpoint


def test_a_monitor_is_killed(tmp_path: Path) -> None:
    with started(WAITS_TWICE, tmp_path) as run:
        assert run.line() == "waiting"
        endpoint = endpoint_of(run)
        before = descriptors_of(run.pid), threads_of(run.pid)
        with monitor(READS, endpoint) as watching:
            assert watching.stdout is not None
            assert watching.stdout.readline() == "watching\n"
            run.send()
            watching.kill()
            watching.wait()
        assert run.line() == bare(STEPS)
        until(lambda: (descriptors_of(run.pid), threads_of(run.pid)) == before)
        run.send()
        assert run.finish() == (0, "", "")


def test_a_monitor_is_stopped_and_sent_afterwards_what_it_has_missed(tmp_path: Path) -> None:
    script = WAITS_TWICE.replace("import torch\n", "import torch\n" + IN_A_HURRY, 1)
    script = script.replace(f"train({STEPS}", f"train({4 * STEPS}")
    with started(script, tmp_path) as run:
        assert run.line() == "waiting"
        with monitor(READS, endpoint_of(run)) as watching:
            assert watching.stdout is not None
            assert watching.stdout.readline() == "watching\n"
            watching.send_signal(signal.SIGSTOP)
            before = resident_bytes(run.pid)
            run.send()
            assert run.line() == bare(4 * STEPS)
            assert resident_bytes(run.pid) - before < MOST_GROWTH_BYTES
            watching.send_signal(signal.SIGCONT)
            what, count = watching.stdout.readline().split()
            assert what in ("lost", "anew"), "it was dropped, and gets the past that is kept"
            assert int(count) > 0
        run.send()
        assert run.finish() == (0, "", "")


def test_ten_monitors_at_once_are_all_sent_everything(tmp_path: Path) -> None:
    with started(WAITS_TWICE, tmp_path) as run:
        assert run.line() == "waiting"
        endpoint = endpoint_of(run)
        with zmq.Context() as context:
            sockets = [context.socket(zmq.DEALER) for _ in range(10)]
            for one in sockets:
                one.linger = 0
                one.connect(endpoint)
                one.send(subscription(endpoint))
            for one in sockets:
                assert one.poll(int(LIMIT_S * 1000))
            run.send()
            assert run.line() == bare(STEPS)
            for one in sockets:
                reported, replies = 0, ReplyReader()
                while reported < STEPS - 1:
                    assert one.poll(int(LIMIT_S * 1000)), reported
                    reply = replies.read(one.recv())
                    reported = max(
                        [reported, *(step.number for step in getattr(reply, "steps", []))]
                    )
                one.close()
        run.send()
        assert run.finish() == (0, "", "")


def test_a_subscriber_that_never_reads_and_always_asks(tmp_path: Path) -> None:
    with started(WAITS_TWICE, tmp_path) as run:
        assert run.line() == "waiting"
        with monitor(NEVER_READS, endpoint_of(run)) as deaf:
            assert deaf.stdout is not None
            assert deaf.stdin is not None
            deaf.stdout.readline()
            run.send()
            assert run.line() == bare(STEPS)
            before = resident_bytes(run.pid)
            with monitor(READS, endpoint_of(run)) as watching:
                assert watching.stdout is not None
                for _ in range(5):
                    deaf.stdin.write("\n")
                    deaf.stdin.flush()
                    deaf.stdout.readline()
                assert watching.stdout.readline() == "watching\n", "others get theirs all the same"
            assert resident_bytes(run.pid) - before < MOST_GROWTH_BYTES
        run.send()
        assert run.finish() == (0, "", "")


def test_a_thousand_come_and_go_ten_at_a_time(tmp_path: Path) -> None:
    """Every other one leaves without a word."""
    with started(WAITS_TWICE, tmp_path) as run:
        assert run.line() == "waiting"
        endpoint = endpoint_of(run)
        before = descriptors_of(run.pid), threads_of(run.pid)
        run.send()
        assert run.line() == bare(STEPS)
        held: list[int] = []
        for _ in range(100):
            with zmq.Context() as context:
                sockets = [context.socket(zmq.DEALER) for _ in range(10)]
                for one in sockets:
                    one.linger = 200
                    one.connect(endpoint)
                    one.send(subscription(endpoint))
                for at, one in enumerate(sockets):
                    assert one.poll(int(LIMIT_S * 1000))
                    if at % 2:
                        one.send(encode_message(Leave(os.getpid())))
                    one.close()
            held.append(resident_bytes(run.pid))
        until(lambda: (descriptors_of(run.pid), threads_of(run.pid)) == before)
        assert held[-1] - held[1] < MOST_GROWTH_BYTES
        run.send()
        assert run.finish() == (0, "", "")
