"""What a run lacks, or does to itself, and the probe with it: it ends as it would have without us.

Each case trains twice, with the probe and with `GPUWATCH=0`: what is printed (a hash of losses and
parameters) and the exit code are the same.
"""

import json
import os
import resource
import signal
import socket
import subprocess
import sys
import textwrap
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Final

import pytest

from tests.faults.training import TRAIN, bare
from tests.processes.monitored import ROOT, hello_of, pages_of, started, subscribed, until

pytestmark = pytest.mark.fault
PLAIN = TRAIN.replace("import probe; probe.install()", "import probe")
"""The probe is installed where a case says so."""

FEW_FREE = """
    import resource
    held = []
    def leave_free(free):
        limit = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
        resource.setrlimit(resource.RLIMIT_NOFILE, (256, limit))
        try:
            while True:
                held.append(os.open(os.devnull, os.O_RDONLY))
        except OSError:
            pass
        for _ in range(free):
            os.close(held.pop())
"""

DENIED = """
    import ctypes, errno, struct
    NUMBERS = dict(epoll_create1=291, eventfd2=290, epoll_ctl=233, memfd_create=319, clone3=435,
                   socket=41, bind=49, listen=50)
    def deny(name, error):
        # BPF: load the number; equal -> return the error, else allow
        code = b"".join(struct.pack("<HBBI", *one) for one in [
            (0x20, 0, 0, 0), (0x15, 0, 1, NUMBERS[name]),
            (0x06, 0, 0, 0x00050000 | error), (0x06, 0, 0, 0x7FFF0000)])
        program = ctypes.create_string_buffer(code)
        filter = struct.pack("<HxxxxxxQ", 4, ctypes.addressof(program))
        libc = ctypes.CDLL(None, use_errno=True)
        assert libc.prctl(38, 1, 0, 0, 0) == 0
        if libc.prctl(22, 2, ctypes.create_string_buffer(filter), 0, 0):
            print("no seccomp here"); sys.exit(0)
"""


SHORT = """
    import resource
    def leave_memory(more_mb):
        size = int(open("/proc/self/statm").read().split()[0]) * os.sysconf("SC_PAGE_SIZE")
        resource.setrlimit(resource.RLIMIT_AS, (size + more_mb * 2**20,) * 2)

    def leave_no_thread():
        import _thread
        def refused(*_, **__):
            raise RuntimeError("can't start new thread")
        for module, name in ((_thread, "start_new_thread"), (threading, "_start_new_thread"),
                             (threading, "_start_joinable_thread")):
            setattr(module, name, refused)
"""

CLOSES = """
print(train(20))
time.sleep(0.3)
os.closerange(3, 256)
mine = [open(os.path.join(folder, f"{n}.txt"), "w") for n in range(24)]
for one in mine:
    one.write("the user's own\\n")
print(train(40))
time.sleep(0.6)
for one in mine:
    one.write("still\\n"); one.flush()
    print(os.path.getsize(one.name))
"""

FORKS = """
import importlib
spare = ["wave", "colorsys", "imaplib", "xml.dom.minidom", "sqlite3", "ctypes.util",
         "json.tool", "tarfile", "unittest.mock", "curses", "pdb", "cProfile", "mailbox"]
for ms in range(0, 80, 4):
    time.sleep(0.004)
    pid = os.fork()
    if not pid:
        for name in spare:
            importlib.import_module(name)
        import gpuwatch.probe.serve
        loss = torch.nn.Linear(2, 1)(torch.ones(1, 2)).sum(); loss.backward()
        os._exit(0)
    assert os.waitpid(pid, 0)[1] == 0
print(train(workers=2))
"""

WAITS_FOR_SIGNALS = """
train(20)
waited = {signal.SIGUSR1, signal.SIGTERM, signal.SIGHUP, signal.SIGALRM, signal.SIGINT}
signal.pthread_sigmask(signal.SIG_BLOCK, waited)
for number in sorted(waited) * 20:
    os.kill(os.getpid(), number)
    print(signal.sigtimedwait(waited, 5).si_signo)
print(train(40))
"""

INSTALL = "probe.install()"
DENIABLE = ("epoll_create1", "eventfd2", "epoll_ctl", "memfd_create", "clone3", "socket", "bind",
            "listen")  # fmt: skip
CASES: Final = {
    **{f"{free} free at install": f"leave_free({free}); {INSTALL}; print(train())"
       for free in (0, 1, 2, 3, 9, 24)},
    **{f"{free} left after install": f"{INSTALL}; leave_free({free}); print(train())"
       for free in (0, 2)},
    **{f"{name} is denied": f"deny({name!r}, errno.EPERM); {INSTALL}; print(train())"
       for name in DENIABLE},
    **{f"{mb} MB of address space": f"leave_memory({mb}); {INSTALL}; print(train()); "
       "blocks = [bytearray(2**20) for _ in range(8)]" for mb in (16, 80)},
    "no thread": f"leave_no_thread(); {INSTALL}; print(train())",
    "it closes every descriptor": INSTALL + CLOSES,
    "it forks": INSTALL + FORKS,
    "it waits for signals": INSTALL + WAITS_FOR_SIGNALS,
}  # fmt: skip

HARNESS = PLAIN + FEW_FREE + DENIED + SHORT + """
    import json, traceback
    folder, cases = sys.argv[1], json.loads(sys.argv[2])
    train(2)
    ended = {}
    for name, code in cases.items():
        ended[name] = []
        for watched in "10":
            written = os.path.join(folder, "written")
            pid = os.fork()
            if not pid:
                os.environ["GPUWATCH"] = watched
                os.dup2(os.open(written, os.O_CREAT | os.O_TRUNC | os.O_WRONLY), 1)
                os.dup2(1, 2)
                os.closerange(3, 256)
                exec(code)
                sys.exit(0)
            late_s = time.monotonic() + 60
            while not (done := os.waitpid(pid, os.WNOHANG))[0]:
                if time.monotonic() > late_s:
                    os.kill(pid, signal.SIGKILL)
                time.sleep(0.01)
            lines = open(written).read().splitlines()
            ended[name].append([done[1], [it for it in lines if not it.startswith("gpuwatch: ")]])
    print(json.dumps(ended))
"""  # fmt: skip
"""Each case in forks of one process, since torch takes seconds to import."""

Ended = dict[str, tuple[tuple[int, list[str]], tuple[int, list[str]]]]


@pytest.fixture(scope="module")
def ended(tmp_path_factory: pytest.TempPathFactory) -> Ended:
    """How each case ends, with the probe and without."""
    folder = tmp_path_factory.mktemp("harm")
    (folder / "train.py").write_text(textwrap.dedent(HARNESS))
    done = subprocess.run(
        [sys.executable, str(folder / "train.py"), str(folder), json.dumps(CASES)],
        capture_output=True,
        text=True,
        timeout=580,
        env={**os.environ, "PYTHONPATH": str(ROOT), "TMPDIR": str(folder)},
        check=False,
    )
    assert done.returncode == 0, done.stderr
    made: Ended = json.loads(done.stdout)
    return made


def without_torchs_own_words(one: tuple[int, list[str]]) -> tuple[int, list[str]]:
    """A run with no descriptor left cannot import at its end, and says so; with the probe, which
    lets go of its own first, it can."""
    status, lines = one
    cut = next((at for at, line in enumerate(lines) if "ignored in atexit" in line), len(lines))
    return status, lines[:cut]


@pytest.mark.timeout(600)
@pytest.mark.parametrize("case", CASES)
def test_it_ends_as_it_would_without_us(ended: Ended, case: str) -> None:
    watched, bare = (without_torchs_own_words(one) for one in ended[case])
    assert watched == bare
    if case.endswith("is denied") and bare[1][:1] == ["no seccomp here"]:
        pytest.skip("no seccomp here")
    if case == "0 free at install" and bare[0]:
        return  # where torch itself needs a descriptor from here on
    assert bare[0] == 0
    assert any(line.startswith("trained") for line in bare[1])
    if case == "it closes every descriptor":
        assert bare[1][2:] == ["21"] * 24


HALFWAY = (
    TRAIN + "    print(train(60, at_step=wait_at(30)), flush=True)\n    sys.stdin.readline()\n"
)


def test_it_is_attached_to_at_its_limit_of_descriptors(tmp_path: Path) -> None:
    script = HALFWAY.replace("    print(train", FEW_FREE + "    print(train", 1)
    script = script.replace('print("waiting"', 'leave_free(1); print("waiting"')
    with started(script, tmp_path, TMPDIR=str(tmp_path)) as run:
        assert run.line() == "waiting"
        path = (hello_of(run.pid).endpoint or "").removeprefix("ipc://")
        with socket.socket(socket.AF_UNIX) as one:
            one.connect(path)
            before = os.listdir(f"/proc/{run.pid}/fd")
            time.sleep(1)
            assert os.listdir(f"/proc/{run.pid}/fd") == before
            run.send()
            assert run.line() == bare()
        run.send()
        assert run.finish() == (0, "", "")


def test_eleven_hundred_connections(tmp_path: Path) -> None:
    limit = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (min(4096, limit[1]), limit[1]))
    held: list[socket.socket] = []
    try:
        with started(HALFWAY, tmp_path, TMPDIR=str(tmp_path)) as run:
            assert run.line() == "waiting"
            endpoint = hello_of(run.pid).endpoint or ""
            until(Path(endpoint.removeprefix("ipc://")).exists)
            for _ in range(1_100):
                held.append(socket.socket(socket.AF_UNIX))
                held[-1].setblocking(False)
                try:
                    held[-1].connect(endpoint.removeprefix("ipc://"))
                except BlockingIOError:
                    time.sleep(0.002)
            assert len(os.listdir(f"/proc/{run.pid}/fd")) < 64
            run.send()
            assert run.line().startswith("trained")
            for one in held:
                one.close()
            with subscribed(endpoint) as next_reply:
                next_reply()
            assert pages_of(run.pid)
            run.send()
            assert run.finish() == (0, "", "")
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, limit)


def blocked_in(task: Path) -> set[int]:
    """Signals that a thread blocks."""
    for line in (task / "status").read_text().splitlines():
        if line.startswith("SigBlk:"):
            mask = int(line.split()[1], 16)
            return {number for number in range(1, 65) if mask >> (number - 1) & 1}
    return set()


def test_the_publisher_takes_no_signal(tmp_path: Path) -> None:
    with started(HALFWAY, tmp_path, TMPDIR=str(tmp_path)) as run:
        assert run.line() == "waiting"
        tasks = sorted(Path(f"/proc/{run.pid}/task").iterdir(), key=lambda task: int(task.name))
        assert not blocked_in(tasks[0])
        everything: Sequence[int] = (signal.SIGINT, signal.SIGTERM, signal.SIGUSR1, signal.SIGCHLD)
        assert any(set(everything) <= blocked_in(task) for task in tasks[1:])
        run.send()
        run.line()
        run.send()
        run.finish()
