"""Stacks that wait for another thread, a process or a server, by Python's own means."""

import pytest

from gpuwatch.tui.session.stack_phases.classify import classify
from tests.unit.stack_phases.real_stacks import TRAIN

RESULT = ("Future.result (concurrent/futures/_base.py:451)", "Condition.wait (threading.py:320)")
MAP = ("Executor.map.<locals>.result_iterator (concurrent/futures/_base.py:619)", *RESULT)
IMAP = ("IMapIterator.next (multiprocessing/pool.py:861)", "Condition.wait (threading.py:320)")
PIPE = (
    "_ConnectionBase.recv (multiprocessing/connection.py:250)",
    "Connection._recv_bytes (multiprocessing/connection.py:430)",
)
JOIN = ("Thread.join (threading.py:1112)",)
RUN = ("run (subprocess.py:550)", "Popen.communicate (subprocess.py:1209)")
POST = ("post (site-packages/requests/api.py:115)", "SocketIO.readinto (socket.py:706)")
LOG = ("Run.log (wandb/sdk/wandb_run.py:1600)", *RESULT)


@pytest.mark.parametrize(
    ("frames", "line"),
    [
        (RESULT, "x, y = ahead.result()"),
        (RESULT, "return self.ahead.popleft().result()"),
        (RESULT, "batches.append(ahead.result())"),
        (RESULT, ""),
        (MAP, "for x, y in pool.map(load, range(steps)):"),
        (IMAP, "for x in pool.imap(make, range(10**6)):"),
        (PIPE, "got = [pipe.recv() for pipe in pipes]"),
    ],
)
def test_what_a_pool_or_a_pipe_hands_over_is_data(frames: tuple[str, ...], line: str) -> None:
    """ "Python between the phases, >10x by doing it on another thread", where it is done."""
    assert classify((*TRAIN, *frames), line).phase == "data"


@pytest.mark.parametrize(
    ("frames", "line"),
    [
        (RESULT, "saved.result()"),
        (RESULT, "if saved is not None: saved.result()"),
        (RESULT, "wait(saves)"),
        (("Executor.__exit__ (concurrent/futures/_base.py:649)", *JOIN), "with Pool(4) as pool:"),
        (JOIN, "logger.join()"),
        (RUN, "text = run(command, capture_output=True).stdout"),
        (POST, "requests.post(url, json=row)"),
        (LOG, "wandb.log(row)"),
        ((), "for work in works: work.wait()"),
    ],
)
def test_what_takes_nothing_only_waits(frames: tuple[str, ...], line: str) -> None:
    assert classify((*TRAIN, *frames), line).phase == "waiting"


@pytest.mark.parametrize(
    "frames",
    [
        ("Connection.send (multiprocessing/connection.py:206)", "dumps (multiprocessing/a.py:51)"),
        ("Popen.__init__ (multiprocessing/popen_fork.py:19)", "_launch (multiprocessing/b.py:7)"),
    ],
)
def test_what_sends_or_starts_a_process_works(frames: tuple[str, ...]) -> None:
    assert classify((*TRAIN, *frames), "pipe.send(rows)").phase == "other"


def test_an_evaluation_that_waits_is_one() -> None:
    found = classify((*TRAIN, "evaluate (train.py:30)", *RESULT), "scores = ahead.result()")
    assert found.evaluates
