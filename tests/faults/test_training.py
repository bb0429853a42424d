"""The training that everything here is compared with: it distinguishes two runs by one bit."""

from pathlib import Path

import pytest

from tests.faults.training import TRAIN, bare, descriptors_of, sockets_in, threads_of
from tests.processes.monitored import hello_of, started, until


def test_bare_and_watched_are_the_same_and_a_bit_is_seen(tmp_path: Path) -> None:
    script = (
        TRAIN
        + """
    print(train(at_step=lambda step: None))
    print(train(at_step=lambda step: torch.rand(1)))
    one = torch.nextafter(torch.tensor(1.0), torch.tensor(2.0))
    fair = torch.nn.functional.mse_loss
    torch.nn.functional.mse_loss = lambda *given: fair(*given) * one
    print(train())
    """
    )
    with started(script, tmp_path) as run:
        status, out, err = run.finish()
    assert (status, err) == (0, "")
    same, also, other = out.splitlines()
    assert (same, also) == (bare(), bare())
    assert other != same


def test_uninstalled_nothing_of_it_is_left(tmp_path: Path) -> None:
    script = (
        TRAIN.replace("import probe; probe.install()", "import probe")
        + """
    train()
    print("bare", flush=True)
    sys.stdin.readline()
    for _ in range(30):
        probe.install()
        digest = train()
        assert probe.uninstall() == ()
    print(digest, flush=True)
    sys.stdin.readline()
    """
    )
    with started(script, tmp_path, TMPDIR=str(tmp_path)) as run:
        assert run.line() == "bare"
        before = threads_of(run.pid), descriptors_of(run.pid)
        run.send()
        assert run.line() == bare()
        # Python joins a thread before the kernel has taken it off its list.
        until(lambda: (threads_of(run.pid), descriptors_of(run.pid)) == before or None)
        assert sockets_in(tmp_path) == []
        run.send()
        assert run.finish()[2] == ""


@pytest.mark.fault
def test_ended_it_leaves_no_file(tmp_path: Path) -> None:
    script = TRAIN + "    print(train(), flush=True); sys.stdin.readline()"
    with started(script, tmp_path, TMPDIR=str(tmp_path)) as run:
        assert run.line() == bare()
        hello_of(run.pid)
        until(lambda: sockets_in(tmp_path))
        run.send()
        assert run.finish()[2] == ""
    assert sockets_in(tmp_path) == []
