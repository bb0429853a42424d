"""Forks in the middle of a step, spawned processes, and a program that becomes another."""

from pathlib import Path

import pytest

from gpuwatch.tui.discovery.state_page import hello_of as read_hello
from gpuwatch.tui.messages import Hello
from gpuwatch.tui.steps import Batch
from tests.faults.training import TRAIN, bare, sockets_in
from tests.processes.monitored import hello_of, pages_of, started, subscribed, until

FORKS = """
    children = []
    def fork(step):
        if step == 30:
            sys.stdout.flush()
            child = os.fork()
            if not child:
                print(train(), os.getpid(), flush=True)
                sys.stdin.readline()
                os._exit(0)
            children.append(child)
            os.waitpid(child, 0)
    print(train(before_backward=fork), flush=True)
    sys.stdin.readline()
"""


def hellos_of(pid: int) -> list[Hello]:
    """Of all pages that a process holds, its parent's too."""
    return [read_hello(raw) for raw in pages_of(pid)]


def test_a_fork_in_the_middle_of_a_step_that_trains_itself(tmp_path: Path) -> None:
    with started(TRAIN + FORKS, tmp_path, TMPDIR=str(tmp_path)) as run:
        output, _, pid = run.line().rpartition(" ")
        assert output == bare()
        (own,) = (hello for hello in hellos_of(int(pid)) if hello.pid == int(pid))
        until(lambda: len(sockets_in(tmp_path)) == 2)
        with subscribed(own.endpoint or "") as next_reply:
            next_reply()
            reported = next_reply()
            assert isinstance(reported, Batch)
            assert reported.steps[-1].number <= 60, "the parent's thirty are not its own"
        run.send()
        assert run.line() == bare()
        with subscribed(hello_of(run.pid).endpoint or "") as next_reply:
            assert next_reply() is not None
        run.send()
        assert run.finish() == (0, "", "")


@pytest.mark.fault
def test_forks_that_only_leave(tmp_path: Path) -> None:
    script = (
        TRAIN
        + """
    def fork(step):
        for how in (os._exit, sys.exit) if step % 6 == 0 else ():
            child = os.fork()
            if not child:
                how(0)
            assert os.waitpid(child, 0)[1] == 0
    print(train(before_backward=fork), flush=True)
    sys.stdin.readline()
    """
    )
    with started(script, tmp_path, TMPDIR=str(tmp_path)) as run:
        assert run.line() == bare()
        assert len(sockets_in(tmp_path)) == 1
        with subscribed(hello_of(run.pid).endpoint or "") as next_reply:
            assert next_reply() is not None
        run.send()
        assert run.finish() == (0, "", "")
    assert sockets_in(tmp_path) == []


@pytest.mark.fault
@pytest.mark.parametrize("how", ["spawn", "forkserver", "fork"])
def test_processes_that_train_for_themselves(tmp_path: Path, how: str) -> None:
    script = (
        TRAIN
        + f"""
    def work(digests):
        digests.put(train())

    if __name__ == "__main__":
        import multiprocessing
        context = multiprocessing.get_context({how!r})
        digests = context.Queue()
        ranks = [context.Process(target=work, args=(digests,)) for _ in range(2)]
        for rank in ranks:
            rank.start()
        print(train(), digests.get(), digests.get(), flush=True)
        for rank in ranks:
            rank.join()
            assert rank.exitcode == 0
    """
    )
    with started(script, tmp_path, TMPDIR=str(tmp_path)) as run:
        status, out, err = run.finish()
    assert (status, out, err) == (0, " ".join([bare()] * 3) + "\n", "")
    assert sockets_in(tmp_path) == []


@pytest.mark.fault
def test_workers_are_forked_while_a_monitor_watches(tmp_path: Path) -> None:
    script = TRAIN + "    print(train(at_step=wait_at(5), workers=2), flush=True)\n"
    script += "    sys.stdin.readline()\n"
    with started(script, tmp_path) as run:
        assert run.line() == "waiting"
        with subscribed(hello_of(run.pid).endpoint or "") as next_reply:
            next_reply()
            run.send()
            assert run.line() == bare()
            assert next_reply() is not None
        run.send()
        assert run.finish() == (0, "", "")


@pytest.mark.fault
def test_a_program_that_becomes_another(tmp_path: Path) -> None:
    script = (
        TRAIN
        + """
    def become(step):
        if step == 30:
            os.environ["AGAIN"] = "1"
            os.execv(sys.executable, [sys.executable, *sys.argv])
    if "AGAIN" in os.environ:
        print(train(), flush=True)
        sys.stdin.readline()
    else:
        train(at_step=become)
    """
    )
    with started(script, tmp_path, TMPDIR=str(tmp_path)) as run:
        assert run.line() == bare()
        with subscribed(hello_of(run.pid).endpoint or "") as next_reply:
            assert next_reply() is not None
        assert len(sockets_in(tmp_path)) == 1
        run.send()
        assert run.finish() == (0, "", "")
    assert sockets_in(tmp_path) == []
