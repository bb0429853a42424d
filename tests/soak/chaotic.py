"""A training to which things happen: `python -m tests.soak.chaotic SEED STEPS`.

What happens within (watchdogs that raise, forks, threads, files, limits, checkpoints) is drawn from
the seed and so is the same in the bare twin (`GPUWATCH=0`). A watchdog strikes at any moment: the
step is done again from where it began, so that the losses do not depend on the moment. Prints a
hash of losses and parameters and what became of the watchdogs; ends as the seed says.
"""

import probe

probe.install()

import copy
import hashlib
import io
import os
import random
import resource
import signal
import sys
import threading
import time
from collections.abc import Callable
from types import FrameType
from typing import Any, Final

import torch
from torch.utils.data import DataLoader, TensorDataset

BATCH: Final = 8
ROWS: Final = 4096
STRIKES: Final = 0.15
"""Of the steps, in which a watchdog strikes."""
WARM: Final = 3
"""First steps without any: torch itself swallows what is raised in its own first imports."""
HAPPENS: Final = 0.2
SIGNALS: Final = (signal.SIGUSR1, signal.SIGUSR2, signal.SIGWINCH, signal.SIGHUP)
"""Those that it has handlers for."""
ENDS: Final = ("return", "exit 3", "raise", "SIGTERM", "_exit 4", "SIGKILL")


class Watchdog(Exception):
    """The user's own: raised by a signal's handler, wherever the program is."""


class Watched:
    """Counts its strikes: each has to come out of the step it struck."""

    def __init__(self) -> None:
        self.armed = False
        self.raised = self.caught = self.unraisable = 0
        signal.signal(signal.SIGALRM, self._strike)
        sys.unraisablehook = self._lost

    def _strike(self, number: int, frame: FrameType | None) -> None:
        if self.armed:
            self.armed = False
            self.raised += 1
            raise Watchdog

    def _lost(self, args: Any) -> None:
        """Where Python itself cannot raise: in a finalizer, with and without the probe."""
        self.unraisable += isinstance(args.exc_value, Watchdog)


class Batches:
    """Batches by number; begun anew where a watchdog broke a fetch off."""

    def __init__(self, workers: int) -> None:
        generator = torch.Generator().manual_seed(5)
        x = torch.randn(ROWS, 8, generator=generator)
        self._loader = DataLoader(
            TensorDataset(x, x.sum(1, keepdim=True).sin()), BATCH, num_workers=workers
        )
        self._iterator: Any = None
        self._next = 0

    def at(self, number: int) -> Any:
        """The batch of that number."""
        if self._iterator is None or number != self._next:
            self._iterator, self._next = iter(self._loader), 0
        while True:
            at = self._next
            self._next = -1  # until this fetch has come back
            batch = next(self._iterator)
            self._next = at + 1
            if at == number:
                return batch


def forks(_: random.Random) -> None:
    """A child that ends at once."""
    if (pid := os.fork()) == 0:
        os._exit(0)
    os.waitpid(pid, 0)


def forks_a_training(_: random.Random) -> None:
    """A child that trains itself, and leaves by sys.exit."""
    if (pid := os.fork()) == 0:
        net = torch.nn.Linear(2, 1)
        for _step in range(3):
            net(torch.ones(1, 2)).sum().backward()
        os._exit(0)
    os.waitpid(pid, 0)


def threads(rng: random.Random) -> None:
    """Threads that come and go; one of them trains something of its own."""
    net = torch.nn.Linear(2, 1)
    made = [
        threading.Thread(target=lambda: net(torch.ones(1, 2)).sum().backward())
        for _ in range(rng.randrange(1, 4))
    ]
    for one in made:
        one.start()
    for one in made:
        one.join()


def saves(_: random.Random) -> None:
    """A checkpoint, in either format."""
    torch.save({"x": torch.ones(100)}, io.BytesIO())
    torch.save({"x": torch.ones(100)}, io.BytesIO(), _use_new_zipfile_serialization=False)


def few_descriptors(rng: random.Random) -> None:
    """So few are free for a while that nobody should take one."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (min(256, soft), hard))
    held = []
    try:
        while True:
            held.append(os.open(os.devnull, os.O_RDONLY))
    except OSError:
        pass
    for _ in range(rng.randrange(8)):
        if held:
            os.close(held.pop())
    time.sleep(0.3)
    for one in held:
        os.close(one)
    resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))


def little_address_space(_: random.Random) -> None:
    """No thread of 8 MB fits in any more, for a while."""
    soft, hard = resource.getrlimit(resource.RLIMIT_AS)
    with open("/proc/self/statm", "rb") as statm:
        taken = int(statm.read().split()[0]) * resource.getpagesize()
    resource.setrlimit(resource.RLIMIT_AS, (taken + (64 << 20), hard))
    time.sleep(0.3)
    resource.setrlimit(resource.RLIMIT_AS, (soft, hard))


def phases(rng: random.Random) -> None:
    """Named, some of them never closed."""
    for number in range(rng.randrange(30)):
        named = probe.phase(f"phase {number % 7}")
        named.__enter__()
        if rng.random() < 0.7:
            named.__exit__(None, None, None)


def installs(_: random.Random) -> None:
    """Out and in again."""
    probe.uninstall()
    probe.install()


def waits(rng: random.Random) -> None:
    """The host computes, or sleeps."""
    time.sleep(rng.uniform(0, 0.2))


ACTIONS: Final[tuple[Callable[[random.Random], None], ...]] = (
    forks, forks_a_training, threads, saves, few_descriptors, little_address_space, phases,
    installs, waits,
)  # fmt: skip


def train(seed: int, steps: int) -> str:
    """The line that both runs have to print."""
    rng, watched = random.Random(seed), Watched()
    torch.manual_seed(seed)
    net = torch.nn.Sequential(torch.nn.Linear(8, 16), torch.nn.Tanh(), torch.nn.Linear(16, 1))
    optimizer = torch.optim.AdamW(net.parameters(), lr=1e-2)
    batches = Batches(rng.choice((0, 0, 0, 2)))
    digest = hashlib.sha256()
    for number in range(steps):
        strikes_in_s = rng.uniform(1e-4, 8e-3) if rng.random() < STRIKES else 0.0
        if number < WARM:
            strikes_in_s = 0.0
        if rng.random() < HAPPENS:
            rng.choice(ACTIONS)(rng)
        before = copy.deepcopy((net.state_dict(), optimizer.state_dict()))
        while True:
            try:
                watched.armed = True
                signal.setitimer(signal.ITIMER_REAL, strikes_in_s)
                x, y = batches.at(number)
                loss = torch.nn.functional.mse_loss(net(x), y)
                optimizer.zero_grad()
                loss.backward()
                optimizer.step()
                watched.armed = False
                break
            except Watchdog:
                watched.caught += 1
                torch.set_grad_enabled(True)  # torch's own exit from no_grad may be cut off
                strikes_in_s = 0.0
                net.load_state_dict(before[0])
                optimizer.load_state_dict(before[1])
        signal.setitimer(signal.ITIMER_REAL, 0)
        digest.update(float(loss.item()).hex().encode())
    for parameter in net.parameters():
        digest.update(parameter.detach().numpy().tobytes())
    lost = watched.raised - watched.caught - watched.unraisable
    return f"{digest.hexdigest()} watchdogs lost {lost}"


def end(how: str) -> None:
    """Leave as the seed says."""
    for name in SIGNALS:
        signal.signal(name, signal.SIG_IGN)  # Python gives its own handlers up as it ends
    sys.stdout.flush()
    if how == "exit 3":
        sys.exit(3)
    if how == "raise":
        raise RuntimeError("as the seed says")
    if how == "_exit 4":
        os._exit(4)
    if how.startswith("SIG"):
        os.kill(os.getpid(), getattr(signal, how))


def main() -> None:
    """Train and end."""
    seed, steps = int(sys.argv[1]), int(sys.argv[2])
    for name in SIGNALS:
        signal.signal(name, lambda *_: None)
    torch.set_num_threads(1)
    print("trains", flush=True)
    print(train(seed, steps))
    end(random.Random(seed).choice(ENDS))


if __name__ == "__main__":
    main()
