"""Whose stacks py-spy saw, and the places that are worth naming."""

import os
from pathlib import Path

import pytest

from gpuwatch.probe.wire import UNCOUNTED
from gpuwatch.tui.model.frames import waits_for_work
from gpuwatch.tui.model.stack_shares import summarise
from gpuwatch.tui.session.stack_phases.classify import phase_of
from gpuwatch.tui.sources.py_spy import read_trace
from gpuwatch.tui.sources.source_text.files import ShortPaths, SourceLines
from gpuwatch.tui.sources.source_text.structure import SourceStructure
from gpuwatch.tui.sources.stack_samples import Chunk, sampled
from gpuwatch.tui.sources.stacks import why_refused
from gpuwatch.tui.verdict.code_origin import is_users
from tests.unit.sources.traces import Sample, process, thread, trace

TRAIN = ("<module>", "/home/ana/train.py", 14)
LOOP = ("_worker_loop", "/py/torch/utils/data/_utils/worker.py", 374)
GET = ("Queue.get", "/py/multiprocessing/queues.py", 113)
DECODE = (
    ("Photographs.__getitem__", "/home/ana/photographs.py", 41),
    ("ImageFile.load", "/py/PIL/ImageFile.py", 300),
)
WAIT = (
    ("_MultiProcessingDataLoaderIter._try_get_data", "/py/torch/utils/data/dataloader.py", 1291),
    GET,
)
BACKWARD = (
    ("<module>", "/home/ana/train.py", 15),
    ("Tensor.backward", "/py/torch/_tensor.py", 648),
)
MOMENTS = tuple(range(0, 2_000_000, 100_000))


def chunk() -> Chunk:
    """Twenty moments of a main thread, a worker and two threads that are nobody's business."""
    samples: list[Sample] = []
    main, worker = [process(10), thread(10)], [process(10), process(12), thread(12)]
    forked = [*worker, TRAIN, ("Popen._launch", "/py/multiprocessing/popen_fork.py", 71), LOOP]
    for i, at_us in enumerate(MOMENTS):
        frames = BACKWARD if i % 4 == 3 else (TRAIN, *WAIT)
        samples.append((at_us, 10, 0xA, [*main, *frames]))
        samples.append((at_us, 12, 0xA, [*forked, *((GET,) if i < 8 else DECODE)]))
        ours = [process(10), thread(11, ""), ("Publisher._run", "/py/probe/publish.py", i)]
        samples.append((at_us, 10, 0xB, ours))
        queue = [process(10), process(12), thread(13, "QueueFeederThread"), GET]
        samples.append((at_us, 12, 0xC, queue))
    read = read_trace(trace(samples, 2_000_000))
    return sampled(read, MOMENTS, 10, lambda path: path.removeprefix("/py/").rpartition("ana/")[2])


def test_roles_are_distinguished_and_our_own_thread_is_left_out() -> None:
    assert sorted((stack.role, stack.pid, stack.count) for stack in chunk().stacks) == [
        ("main", 10, 5),
        ("main", 10, 15),
        ("worker", 12, 8),
        ("worker", 12, 12),
    ]


def test_another_thread_of_the_process_counts_while_it_does_not_wait() -> None:
    works = ("corrupt", "/py/ana/t.py", 20)
    waits = ("Condition.wait", "/usr/lib/python3.11/threading.py", 327)
    for frame, roles in ((works, ["main", "other"]), (waits, ["main"])):
        samples: list[Sample] = [
            (at_us, 10, tid, [process(10), thread(10 + tid, name), one])
            for at_us in MOMENTS
            for tid, name, one in ((0, "MainThread", TRAIN), (4, "Thread-1", frame))
        ]
        found = sampled(read_trace(trace(samples, 2_000_000)), MOMENTS, 10, os.path.basename)
        assert sorted(stack.role for stack in found.stacks) == roles


def test_of_a_worker_in_its_turn_no_frame_names_the_process() -> None:
    forked = (TRAIN, ("Popen._launch", "/py/multiprocessing/popen_fork.py", 71), LOOP)
    samples: list[Sample] = [
        (at_us, 12, 0xA, [thread(12), *forked, *((GET,) if i < 8 else DECODE)])
        for i, at_us in enumerate(MOMENTS)
    ]
    seen = sampled(read_trace(trace(samples, 2_000_000)), MOMENTS, 10, sampled_pid=12)
    assert sorted((one.role, one.pid, one.count) for one in seen.stacks) == [
        ("worker", 12, 8),
        ("worker", 12, 12),
    ]
    assert all(one.frames[0].startswith("_worker_loop ") for one in seen.stacks)


def _below_py(path: str) -> str:
    return path.removeprefix("/py/")


def test_a_net_that_acts_shows_whose_loop_it_is_to_the_stacks_before_it(tmp_path: Path) -> None:
    """Two of the first 19 samples of CleanRL's PPO were in its rollouts, and 13 of 19 later on."""
    (tmp_path / "ppo.py").write_text(
        "for update in range(9):\n"
        "    for step in range(128):\n"
        "        with torch.no_grad():\n"
        "            action = net(seen)\n"
        "        seen = env.step(action)\n"
        "    learn(update)\n"
    )
    acts = [("<module>", "ppo.py", 5), ("Pole.step", "/py/gymnasium/envs/pole.py", 17)]
    net = [("<module>", "ppo.py", 4), ("Module._call_impl", "/py/torch/nn/modules/module.py", 9)]
    samples: list[Sample] = [
        (at_us, 10, 0xA, [process(10), thread(10), *(acts if i < 8 else net)])
        for i, at_us in enumerate(MOMENTS)
    ]
    source = SourceStructure(SourceLines([tmp_path]))
    read = read_trace(trace(samples, 2_000_000))
    seen = sampled(
        read, MOMENTS, 10, lambda path: path.removeprefix("/py/"), structure_of=source.of
    )
    assert [one.evaluates for one in seen.stacks] == [True, True]


PPO = """
class PPO:
    def evaluate(self, state, action):
        mean = self.actor(state)
        dist = MultivariateNormal(mean, self.cov)
        return dist.log_prob(action)

    def update(self, batch, optimizer):
        for _ in range(9):
            logprobs = self.evaluate(batch.state, batch.action)
            loss = -logprobs.mean(){}
            loss.backward()
            optimizer.step()
"""


@pytest.mark.parametrize(
    ("detached", "beside"), [("", "forward"), (".item()\n            loss = other()", "evaluation")]
)
def test_what_lies_beside_a_net_that_each_step_learns_from_is_no_evaluation(
    detached: str, beside: str, tmp_path: Path
) -> None:
    """A PPO's distribution, by the name of the function that makes it."""
    (tmp_path / "ppo.py").write_text(PPO.format(detached))
    called = ("PPO.update", "ppo.py", 10)
    net = ("Module._call_impl", "/py/torch/nn/modules/module.py", 9)
    made = ("Distribution.__init__", "/py/torch/distributions/distribution.py", 60)
    stacks = ([("PPO.evaluate", "ppo.py", 4), net], [("PPO.evaluate", "ppo.py", 5), made])
    samples: list[Sample] = [
        (at_us, 10, 0xA, [process(10), thread(10), TRAIN, called, *stacks[i % 2]])
        for i, at_us in enumerate(MOMENTS)
    ]
    seen = sampled(
        read_trace(trace(samples, 2_000_000)),
        MOMENTS,
        10,
        lambda path: path.removeprefix("/py/"),
        structure_of=SourceStructure(SourceLines([tmp_path])).of,
    )
    assert {one.frames[-1].split(".")[0]: phase_of(one) for one in seen.stacks} == {
        "Module": beside,
        "Distribution": beside,
    }


@pytest.mark.parametrize(
    ("decorator", "phase"),
    [
        ("torch.enable_grad()", "data"),
        ("torch.enable_grad", "data"),
        ("torch.set_grad_enabled(True)", "data"),
        ("torch.no_grad()", "evaluation"),
    ],
)
def test_a_function_that_is_decorated_with_gradients_evaluates_nothing(
    decorator: str, phase: str, tmp_path: Path
) -> None:
    """SiamFC's `train_over`: the wait for its batches was "evaluation takes 55% of the time"."""
    (tmp_path / "siamfc.py").write_text(
        f"@{decorator}\ndef train_over(loader):\n    for batch in loader:\n        learn(batch)\n"
    )
    calls = ("decorate_context", "/py/torch/utils/_contextlib.py", 124)
    frames = [TRAIN, calls, ("train_over", "siamfc.py", 3), *WAIT]
    samples: list[Sample] = [(0, 10, 0xA, [process(10), thread(10), *frames])]
    seen = sampled(
        read_trace(trace(samples, 2_000_000)),
        (0,),
        10,
        lambda path: path.removeprefix("/py/"),
        structure_of=SourceStructure(SourceLines([tmp_path])).of,
    )
    assert [phase_of(one) for one in seen.stacks] == [phase]


def test_each_stack_knows_its_moments() -> None:
    seen = chunk()
    assert seen.moments_ms == tuple(range(0, 2_000, 100))
    assert seen.seen == (1 << 20) - 1
    bits = {(stack.role, stack.count): stack.moments for stack in seen.stacks}
    assert bits["worker", 8] == 0b1111_1111
    assert bits["main", 5] == 0b1000_1000_1000_1000_1000


def test_a_forked_worker_shows_only_its_own_frames() -> None:
    workers = [stack for stack in chunk().stacks if stack.role == "worker"]
    assert all(stack.frames[0].startswith("_worker_loop ") for stack in workers)


JOIN = ("Thread.join", "/py/threading.py", 1119)


@pytest.mark.parametrize(
    ("trains", "line"),
    [
        (None, "Thread.join (/py/threading.py:1119)"),
        (15, "Tensor.backward (/py/torch/_tensor.py:648)"),
        (10, "Thread.join (/py/threading.py:1119)"),
        (4711, "Thread.join (/py/threading.py:1119)"),
    ],
)
def test_the_thread_that_trains_is_the_one_that_counts(trains: int | None, line: str) -> None:
    """A main thread that joins it was accused: "do it less often: t.join()". 4711: a process in a
    container knows other ids."""
    samples: list[Sample] = [
        (0, 10, 0xA, [process(10), thread(10), TRAIN, JOIN]),
        (0, 10, 0xB, [process(10), thread(15, "Thread-1 (fit)"), *BACKWARD]),
    ]
    read = read_trace(trace(samples, 9))
    (stack,) = [one for one in sampled(read, (0,), 10, trains=trains).stacks if one.role == "main"]
    assert stack.frames[-1] == line


def test_the_pin_thread_is_known_by_what_it_does() -> None:
    loop = ("_pin_memory_loop", "/py/torch/utils/data/_utils/pin_memory.py", 52)
    frames = [process(10), thread(14, "Thread-4"), loop, GET]
    read = read_trace(trace([(0, 10, 0xA, frames)], 9))
    assert [stack.role for stack in sampled(read, (0,), 10).stacks] == ["pin"]


def test_the_place_that_holds_the_time_is_named_with_the_users_line() -> None:
    stacks = summarise(chunk().stacks)
    wait = stacks.main[0]
    assert wait.share == 0.75
    assert "_try_get_data (torch/utils/data/dataloader.py:1291)" in wait.frame
    assert wait.caller == "<module> (train.py:14)"
    decode = stacks.workers[0]
    assert (decode.share, decode.frame) == (1.0, "ImageFile.load (PIL/ImageFile.py:300)")
    assert decode.caller == "Photographs.__getitem__ (photographs.py:41)"
    assert stacks.worker_samples == 20
    assert stacks.worker_idle_share == pytest.approx(0.4)


def test_the_main_threads_and_the_workers_stacks_carry_a_line() -> None:
    frames = [process(7), thread(7), TRAIN]
    read = read_trace(trace([(0, 7, 0xA, frames)], 9))
    (stack,) = sampled(read, (0,), 7, line_of=lambda frames: "the line").stacks
    assert stack.line == "the line"


def test_files_are_named_from_their_package_on(tmp_path: Path) -> None:
    package = tmp_path / "lib" / "torch" / "nn"
    package.mkdir(parents=True)
    for folder in (package, package.parent):
        (folder / "__init__.py").touch()
    paths = ShortPaths(os.getpid())
    assert paths.of(str(package / "functional.py")) == "torch/nn/functional.py"
    assert paths.of(str(tmp_path / "train.py")) == "train.py"
    hook = package / f"hook.py{UNCOUNTED}"
    assert paths.of(str(hook)) == "torch/nn/hook.py", "what our own frames have for `warnings`"
    assert paths.of("<string>") == "<string>"
    assert paths.of("<frozen importlib._bootstrap>") == "<frozen importlib._bootstrap>"


def test_what_is_installed_is_no_code_of_the_users(tmp_path: Path) -> None:
    home = tmp_path / "lib" / "python3.12" / "site-packages"
    for package in ("torchode", "torch", "spaces/inner"):
        (home / package).mkdir(parents=True)
        (home / package / "__init__.py").touch()
    paths = ShortPaths(os.getpid())
    solvers = paths.of(str(home / "torchode" / "solvers.py"))
    assert solvers == "site-packages/torchode/solvers.py"
    assert not is_users(f"{solvers}:12")
    assert paths.of(str(home / "torch" / "functional.py")) == "torch/functional.py"
    assert paths.of(str(home / "spaces" / "inner" / "a.py")) == "site-packages/spaces/inner/a.py"
    assert is_users(paths.of(str(tmp_path / "train.py")))


def test_a_worker_waiting_for_work_makes_no_batch() -> None:
    assert waits_for_work(("_worker_loop (w.py:1)", "Queue.get (multiprocessing/queues.py:113)"))
    assert not waits_for_work(("_worker_loop (w.py:1)", "fetch (f.py:2)"))


@pytest.mark.parametrize(
    ("path", "users"),
    [
        ("train.py:3", True),
        ("my_project/data.py:3", True),
        ("ultralytics/engine/trainer.py:3", False),
        ("streaming.py:3", True),
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
    ("text", "reason"),
    [
        ("Permission Denied: Try running again with elevated permissions", "stacks are off"),
        ("It looks like you are running in a docker container.", "container"),
        ("Error: Failed to find python version from target process", "this Python"),
        ("1: EPERM: Operation not permitted", "stacks are off"),
        ("Error: something new", "something new"),
        ("", "py-spy failed"),
    ],
)
def test_a_refusal_is_reported_in_words(text: str, reason: str) -> None:
    assert reason in why_refused(text, None)[0]
