"""py-spy's lines, and the places that are worth naming. The lines are from a real run."""

import pytest

from tui.sources.frames import is_users, summarise, waits_for_work
from tui.sources.stack_lines import parse
from tui.sources.stacks import why_refused

RAW = """\
py-spy> Sampling process 10 times a second for 2 seconds. Press Control-C to exit.

process 10:"python train.py";thread (11): gpuwatch;Publisher._run (probe/publish.py:39) 19
process 10:"python train.py";thread (10): MainThread;<module> (train.py:14);\
_patch_next.<locals>.__next__ (probe/hooks/dataloader.py:58);\
_BaseDataLoaderIter.__next__ (torch/utils/data/dataloader.py:725);\
_MultiProcessingDataLoaderIter._try_get_data (torch/utils/data/dataloader.py:1291);\
Queue.get (multiprocessing/queues.py:113);wait (multiprocessing/connection.py:947) 15
process 10:"python train.py";thread (10): MainThread;<module> (train.py:15);\
Tensor.backward (torch/_tensor.py:648) 5
process 10:"python train.py";process 12:"python -c x;y 3";thread (12): MainThread;\
<module> (train.py:14);Popen._launch (multiprocessing/popen_fork.py:71);\
_worker_loop (torch/utils/data/_utils/worker.py:374);\
Photographs.__getitem__ (photographs.py:41);ImageFile.load (PIL/ImageFile.py:300) 12
process 10:"python train.py";process 12:"python -c x;y 3";thread (12): MainThread;\
<module> (train.py:14);_worker_loop (torch/utils/data/_utils/worker.py:360);\
Queue.get (multiprocessing/queues.py:113) 8
process 10:"python train.py";process 12:"python -c x;y 3";thread (13): QueueFeederThread;\
Queue._feed (multiprocessing/queues.py:231) 20
py-spy> Wrote raw flamegraph data to '/dev/stdout'. Samples: 114 Errors: 0
"""


def test_roles_are_told_apart_and_our_own_thread_is_left_out() -> None:
    chunk = parse(RAW, target=10)
    assert [(stack.role, stack.pid, stack.count) for stack in chunk.stacks] == [
        ("main", 10, 15),
        ("main", 10, 5),
        ("worker", 12, 12),
        ("worker", 12, 8),
    ]
    assert chunk.moments == 20


def test_a_forked_worker_shows_only_its_own_frames() -> None:
    worker = parse(RAW, target=10).stacks[2]
    assert worker.frames[0].startswith("_worker_loop ")


def test_the_place_that_holds_the_time_is_named_with_the_users_line() -> None:
    stacks = summarise(parse(RAW, target=10).stacks)
    wait = stacks.main[0]
    assert wait.share == 0.75
    assert "_try_get_data (torch/utils/data/dataloader.py:1291)" in wait.frame
    assert wait.caller == "<module> (train.py:14)"
    decode = stacks.workers[0]
    assert (decode.share, decode.frame) == (1.0, "ImageFile.load (PIL/ImageFile.py:300)")
    assert decode.caller == "Photographs.__getitem__ (photographs.py:41)"
    assert stacks.worker_samples == 20
    assert stacks.worker_idle_share == pytest.approx(0.4)


def test_a_worker_waiting_for_work_makes_no_batch() -> None:
    assert waits_for_work(("_worker_loop (w.py:1)", "Queue.get (multiprocessing/queues.py:113)"))
    assert not waits_for_work(("_worker_loop (w.py:1)", "fetch (f.py:2)"))


@pytest.mark.parametrize("text", ["", "nonsense 3", "thread (x: y;a 1", "process 1: 5\n;;; 2"])
def test_other_lines_are_passed_over(text: str) -> None:
    assert parse(text, target=1).stacks == ()


@pytest.mark.parametrize(
    ("path", "users"),
    [
        ("train.py:3", True),
        ("my_project/data.py:3", True),
        ("torch/nn/modules/conv.py:3", False),
        ("PIL/ImageFile.py:3", False),
        ("threading.py:3", False),
        ("random.py:243", False),
        ("json/decoder.py:3", False),
        ("/usr/lib/python3/dist-packages/x.py:3", False),
        ("<string>:1", False),
    ],
)
def test_whose_code_a_file_is(path: str, users: bool) -> None:
    assert is_users(path) is users


@pytest.mark.parametrize(
    ("said", "reason"),
    [
        ("Permission Denied: Try running again with elevated permissions", "ptrace is restricted"),
        ("It looks like you are running in a docker container.", "container"),
        ("Error: Failed to find python version from target process", "this Python"),
        ("1: EPERM: Operation not permitted", "ptrace is restricted"),
        ("Error: something new", "something new"),
        ("", "py-spy failed"),
    ],
)
def test_a_refusal_is_said_in_words(said: str, reason: str) -> None:
    assert reason in why_refused(said)[0]
