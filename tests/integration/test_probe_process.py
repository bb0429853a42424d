"""The probe in real processes: it is found, it reports, and it leaves the run alone."""

import signal
import tempfile
from glob import glob
from pathlib import Path

import pytest

from gpuwatch.probe.wire import page
from gpuwatch.tui.messages import Bye, Greeting
from gpuwatch.tui.settings import Settings
from gpuwatch.tui.steps import Batch, Step
from tests.processes.monitored import (
    hello_of,
    pages_of,
    started,
    subscribed,
    until,
    word_of,
)

TRAIN = """
    import sys
    import probe; probe.install()
    import torch
    from torch.utils.data import DataLoader, TensorDataset

    def main(epochs=1, workers=0, context=None):
        torch.manual_seed(0)
        rows = TensorDataset(torch.randn(320, 8), torch.randn(320, 1))
        net = torch.nn.Linear(8, 1)
        optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
        losses = []
        for _ in range(epochs):
            loader = DataLoader(
                rows, batch_size=32, num_workers=workers, multiprocessing_context=context
            )
            for x, y in loader:
                loss = torch.nn.functional.mse_loss(net(x), y)
                optimizer.zero_grad()
                loss.backward()
                optimizer.step()
                losses.append(loss.item().hex())
        return losses
"""
ARMED = "import probe, sys; probe.install(); sys.stdin.readline()"
"""Without torch, in a moment."""


def test_a_run_is_found_by_its_pid_and_shows_its_steps(tmp_path: Path) -> None:
    script = TRAIN + "    main(); print('trained', flush=True); sys.stdin.readline()"
    with started(script, tmp_path) as run:
        assert run.line() == "trained"
        hello = hello_of(run.pid)
        assert hello.pid == run.pid
        assert hello.argv[0].endswith("train.py")
        assert hello.fault is None
        assert hello.endpoint is not None
        with subscribed(hello.endpoint) as next_reply:
            greeting = next_reply()
            assert isinstance(greeting, Greeting)
            assert greeting.hello == hello
            steps: list[Step] = []
            sequence = 0
            while sum(step.count for step in steps) < 10:
                batch = next_reply()
                assert isinstance(batch, Batch)
                assert batch.sequence == sequence + 1
                sequence = batch.sequence
                steps += batch.steps
            assert [step.number for step in steps] == list(range(1, 11))
            assert [step.samples for step in steps] == [32] * 10
            run.send()
            bye = next_reply()
            while not isinstance(bye, Bye):
                bye = next_reply()
            assert bye.reason == "exiting"
        status, _, err = run.finish()
        assert (status, err) == (0, "")
        assert not Path(hello.endpoint.removeprefix("ipc://")).exists()


@pytest.mark.parametrize(
    ("end", "reason"),
    [
        ("raise RuntimeError('boom')", "raised RuntimeError"),
        ("sys.exit(3)", "exiting"),
        ("sys.ps1 = '> '; raise RuntimeError('at a prompt')", "exiting"),
    ],
)
def test_a_good_bye_names_the_exception_that_nobody_caught(
    tmp_path: Path, end: str, reason: str
) -> None:
    with started(f"{ARMED}; {end}", tmp_path) as run:
        until(lambda: pages_of(run.pid))
        hello = hello_of(run.pid)
        assert hello.endpoint is not None
        with subscribed(hello.endpoint) as next_reply:
            assert isinstance(next_reply(), Greeting)
            run.send()
            bye = next_reply()
            while not isinstance(bye, Bye):
                bye = next_reply()
        assert bye.reason == reason


def test_settings_are_reported_to_whoever_comes_and_again_when_they_change(tmp_path: Path) -> None:
    script = """
    import select, sys, time
    import probe; probe.install()
    import torch

    net = torch.nn.Linear(8, 1)
    optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
    print("ready", flush=True)
    while True:
        time.sleep(0.002)
        optimizer.zero_grad()
        net(torch.randn(32, 8)).mean().backward()
        optimizer.step()
        if select.select([sys.stdin], [], [], 0)[0]:
            torch.set_float32_matmul_precision(sys.stdin.readline().strip())
    """
    with started(script, tmp_path) as run:
        assert run.line() == "ready"
        endpoint = hello_of(run.pid).endpoint
        assert endpoint is not None
        reported: list[Settings] = []
        for wanted, known in (("highest", []), ("high", ["highest"])):
            with subscribed(endpoint) as next_reply:
                came: list[str | None] = []
                while wanted not in came:
                    batch = next_reply()
                    if isinstance(batch, Batch) and batch.settings is not None:
                        reported.append(batch.settings)
                        if (precision := batch.settings.matmul_precision) in (None, *came):
                            continue  # another one has become known
                        came.append(precision)
                        if came == known:
                            run.send(wanted)
                assert came == [*known, wanted]
        assert (reported[-1].scaler, reported[-1].anomaly) == (False, False)
        # The graph of torch 2.4 shows no types.
        assert reported[-1].autocast in ("", None)
        assert (reported[-1].optimizer, reported[-1].parameters, reported[-1].set_to_none) == (
            "SGD",
            2,
            True,
        )
        assert len(reported) < 8, "sent when they change, not in every message"


def test_it_can_be_watched_before_its_first_step(tmp_path: Path) -> None:
    with started(ARMED, tmp_path) as run:
        endpoint = hello_of(run.pid).endpoint
        assert endpoint is not None
        with subscribed(endpoint) as next_reply:
            assert isinstance(next_reply(), Greeting)
            batch = next_reply()
            assert isinstance(batch, Batch)
            assert (batch.steps, batch.open.kind) == ([], 0)


def publishes(pid: int) -> bool:
    """Whether it has bound a socket, which is named by its pid. Folders of other tests may vanish
    meanwhile, which `Path.glob` does not bear before Python 3.13."""
    return bool(glob(f"{tempfile.gettempdir()}/gpuwatch-*/{pid}-*.sock"))


@pytest.mark.parametrize("context", ["fork", "spawn"])
def test_workers_are_inert(tmp_path: Path, context: str) -> None:
    script = (
        TRAIN
        + f"""
    if __name__ == "__main__":
        from torch.utils.data import DataLoader
        loader = DataLoader(range(64), num_workers=2, multiprocessing_context="{context}")
        batches = iter(loader)
        next(batches)
        print(*(worker.pid for worker in batches._workers), flush=True)
        sys.stdin.readline()
    """
    )
    with started(script, tmp_path) as run:
        pids = [int(pid) for pid in run.line().split()]
        until(lambda: publishes(run.pid))
        for pid in pids:
            own = [found for found in pages_of(pid) if f'"pid": {pid},'.encode() in found]
            assert own == []
            assert not publishes(pid)
        run.send()
        assert run.finish()[0] == 0, "its workers end with it"


def test_a_forked_child_that_trains_has_a_page_of_its_own(tmp_path: Path) -> None:
    script = (
        TRAIN
        + """
    import os
    child = os.fork()
    if child == 0:
        main()
        print(os.getpid(), flush=True)
        sys.stdin.readline()
        os._exit(0)
    os.waitpid(child, 0)
    """
    )
    with started(script, tmp_path) as run:
        child = int(run.line())
        own = [found for found in pages_of(child) if f'"pid": {child},'.encode() in found]
        assert len(own) == 1
        run.send()
        assert run.finish()[0] == 0


def test_a_forked_child_frees_nothing_of_the_parents_device_not_even_at_its_end(
    tmp_path: Path,
) -> None:
    script = (
        TRAIN
        + """
    import os
    from gpuwatch.probe import api
    class Pinned:
        parent = os.getpid()
        def __call__(self, *_): pass
        def __del__(self):
            if os.getpid() != self.parent:
                os.write(1, b"freed\\n")
    main()
    recorder = api._installed.recorder
    recorder.notes.numerics = Pinned()
    recorder.stamp_with(Pinned())
    child = os.fork()
    if child == 0:
        sys.exit()
    os.waitpid(child, 0)
    print("over", flush=True)
    sys.stdin.readline()
    """
    )
    with started(script, tmp_path) as run:
        assert run.line() == "over"
        run.send()
        assert run.finish()[0] == 0


def test_switched_off_it_is_not_there_and_losses_are_the_same_bit_for_bit(tmp_path: Path) -> None:
    script = TRAIN + "    print(main(epochs=3), flush=True); sys.stdin.readline()"
    losses = []
    for switch, pages in (("0", 0), ("1", 1)):
        with started(script, tmp_path, GPUWATCH=switch) as run:
            losses.append(run.line())
            assert len(pages_of(run.pid)) == pages
            run.send()
            status, _, err = run.finish()
            assert (status, err) == (0, "")
    assert losses[0] == losses[1]


def test_a_hook_that_fails_disarms_the_probe_and_the_run_goes_on(tmp_path: Path) -> None:
    script = (
        TRAIN
        + """
    from gpuwatch.probe import loaders
    def broken(iterator):
        raise ValueError("broken on purpose")
    loaders.describe_iterator = broken
    print(len(main()), flush=True)
    sys.stdin.readline()
    """
    )
    with started(script, tmp_path) as run:
        assert run.line() == "10"
        until(lambda: word_of(run.pid, page.WORD_STATE) == page.STATE_DISARMED)
        assert "broken on purpose" in (hello_of(run.pid).fault or "")
        run.send()
        status, _, err = run.finish()
        assert status == 0
        assert len(err.splitlines()) == 1
        assert "the run goes on" in err


def test_the_page_names_the_phase_a_stuck_run_is_in(tmp_path: Path) -> None:
    script = """
    import probe; probe.install()
    import sys
    from torch.utils.data import DataLoader

    class Stuck:
        def __len__(self):
            return 10
        def __getitem__(self, index):
            print("stuck", flush=True)
            sys.stdin.readline()

    next(iter(DataLoader(Stuck())))
    """
    with started(script, tmp_path) as run:
        run.line()
        until(lambda: page.unpack_open(word_of(run.pid, page.WORD_OPEN), 0)[0] == 2)


def test_ctrl_c_ends_the_run_as_it_would_without(tmp_path: Path) -> None:
    script = TRAIN + "    print('go', flush=True)\n    main(epochs=10_000)"
    with started(script, tmp_path) as run:
        run.line()
        run.process.send_signal(signal.SIGINT)
        status, _, err = run.finish()
        assert status == -signal.SIGINT
        assert "KeyboardInterrupt" in err
        assert "gpuwatch:" not in err


def test_a_socket_directory_open_to_others_is_not_used(tmp_path: Path) -> None:
    import os

    (tmp_path / f"gpuwatch-{os.getuid()}").mkdir(mode=0o777)
    (tmp_path / f"gpuwatch-{os.getuid()}").chmod(0o777)
    with started(ARMED, tmp_path, TMPDIR=str(tmp_path)) as run:
        hello = hello_of(run.pid)
        assert Path((hello.endpoint or "").removeprefix("ipc://")).parent.name.endswith("-2")
        assert hello.fault is None


def test_a_removed_socket_is_bound_again(tmp_path: Path) -> None:
    with started(ARMED, tmp_path) as run:
        endpoint = hello_of(run.pid).endpoint
        assert endpoint is not None
        path = Path(endpoint.removeprefix("ipc://"))
        until(path.exists)
        path.unlink()
        until(path.exists)
        with subscribed(endpoint) as next_reply:
            assert isinstance(next_reply(), Greeting)


def test_it_is_there_at_once_when_torch_was_imported_before(tmp_path: Path) -> None:
    script = "import torch, probe, sys; probe.install(); sys.stdin.readline()"
    with started(script, tmp_path) as run:
        assert hello_of(run.pid).torch is not None
