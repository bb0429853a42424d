"""Random faults around a training, compared with its bare twin: `python -m tests.soak.chaos`.

Each round has a seed. The same seed draws what happens within the training (`chaotic`) and what is
done to it from outside, to the watched one alone: signals, stops, monitors that come, are killed,
stopped and garbled, a socket that is deleted, a disk that is full. Output and exit code have to be
those of the twin. `--seed N --rounds 1` does one round again.
"""

import argparse
import json
import os
import random
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

from tests.processes.command_line import environment

STEPS: Final = 120
LIMIT_S: Final = 240.0
SIGNALS: Final = ("SIGUSR1", "SIGUSR2", "SIGWINCH", "SIGHUP", "SIGCHLD", "SIGURG")
MOST_MONITORS: Final = 3


@dataclass
class Round:
    """What came of one seed."""

    seed: int
    faults: Counter[str] = field(default_factory=Counter)
    bare: tuple[int, str, str] = (0, "", "")
    watched: tuple[int, str, str] = (0, "", "")
    """Exit code, stdout, stderr."""

    @property
    def same(self) -> bool:
        """Nothing of the probe shows. A worker that is cut off while it hands a tensor over has
        multiprocessing write tracebacks, with the probe or without, as time has it."""
        code, out, err = self.watched
        noisy = any("resource_sharer" in text for text in (err, self.bare[2]))
        same_errors = "gpuwatch" not in err if noisy else err == self.bare[2]
        return (code, out) == self.bare[:2] and same_errors and "lost 0" in out


class Outside:
    """What is done to one watched run, in the order that a seed gives."""

    def __init__(
        self, pid: int, rng: random.Random, folder: Path, faults: "Counter[str]", can_fill: bool
    ) -> None:
        self._pid = pid
        self._rng = rng
        self._folder = folder
        self._faults = faults
        self._monitors: list[subprocess.Popen[bytes]] = []
        self._filler = folder / "filler"
        self._all: tuple[Callable[[], None], ...] = (
            self.sends_signals, self.stops, self.watches, self.watches, self.kills_a_monitor,
            self.stops_a_monitor, self.talks_nonsense, self.connects_a_lot, self.deletes_socket,
            self.deletes_directory, self.opens_directory, self.waits,
        )  # fmt: skip
        if can_fill:
            self._all += (self.fills_the_disk,)

    def one(self) -> None:
        """The next fault. What is in its way (the run has ended, no socket) is no fault."""
        does = self._rng.choice(self._all)
        with suppress(OSError):
            does()
            self._faults[does.__name__.replace("_", " ")] += 1

    def close(self) -> None:
        """End all that was started."""
        for monitor in self._monitors:
            monitor.kill()
            monitor.wait()

    def sends_signals(self) -> None:
        for _ in range(self._rng.randrange(1, 20)):
            os.kill(self._pid, getattr(signal, self._rng.choice(SIGNALS)))
            time.sleep(0.002)

    def stops(self) -> None:
        os.kill(self._pid, signal.SIGSTOP)
        time.sleep(self._rng.uniform(0.05, 1.5))
        os.kill(self._pid, signal.SIGCONT)

    def watches(self) -> None:
        self._monitors = [one for one in self._monitors if one.poll() is None]
        if len(self._monitors) >= MOST_MONITORS:
            return
        words = ["attach", str(self._pid), self._rng.choice(("--json", "--plain"))]
        self._monitors.append(
            subprocess.Popen(
                [sys.executable, "-m", "gpuwatch.tui.cli.main", *words],
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                stderr=subprocess.DEVNULL,
                env=environment(),
            )
        )

    def kills_a_monitor(self) -> None:
        for monitor in self._monitors[:1]:
            monitor.send_signal(self._rng.choice((signal.SIGKILL, signal.SIGTERM, signal.SIGINT)))

    def stops_a_monitor(self) -> None:
        for monitor in self._monitors[-1:]:
            monitor.send_signal(signal.SIGSTOP)
            time.sleep(self._rng.uniform(0, 1.0))
            monitor.send_signal(signal.SIGCONT)

    def talks_nonsense(self) -> None:
        with self._connected() as knock:
            for _ in range(self._rng.randrange(1, 5)):
                knock.send(self._rng.randbytes(self._rng.choice((1, 10, 64, 200, 9_000))))

    def connects_a_lot(self) -> None:
        held = []
        with suppress(OSError):
            for _ in range(self._rng.randrange(2, 60)):
                held.append(self._connected())
        for one in held:
            one.close()

    def deletes_socket(self) -> None:
        self._socket().unlink()

    def deletes_directory(self) -> None:
        shutil.rmtree(self._socket().parent)

    def opens_directory(self) -> None:
        self._socket().parent.chmod(0o777)
        time.sleep(0.1)
        self._socket().parent.chmod(0o700)

    def fills_the_disk(self) -> None:
        with open(self._filler, "wb") as filler, suppress(OSError):
            while True:
                filler.write(bytes(65_536))
        self._socket().unlink()
        time.sleep(self._rng.uniform(0, 0.5))
        self._filler.unlink()

    def waits(self) -> None:
        time.sleep(self._rng.uniform(0, 1))

    def _socket(self) -> Path:
        for path in self._folder.glob(f"gpuwatch-*/{self._pid}-*.sock"):
            return path
        raise FileNotFoundError

    def _connected(self) -> socket.socket:
        knock = socket.socket(socket.AF_UNIX)
        knock.setblocking(False)
        try:
            knock.connect(str(self._socket()))
        except OSError:
            knock.close()
            raise
        return knock


class SmallDisk:
    """A file system of a megabyte for the socket, so that it can be full; where nobody may mount,
    a plain folder."""

    def __init__(self, folder: Path) -> None:
        folder.mkdir()
        words = ["mount", "-t", "tmpfs", "-o", "size=1m,mode=777", "gpuwatch-chaos", str(folder)]
        self.folder = folder
        self.is_mounted = subprocess.run(words, capture_output=True, check=False).returncode == 0

    def close(self) -> None:
        if self.is_mounted:
            subprocess.run(["umount", "--lazy", str(self.folder)], check=False)


def play(seed: int, steps: int = STEPS) -> Round:
    """One round: both trainings beside each other."""
    found = Round(seed)
    rng = random.Random(~seed)
    words = [sys.executable, "-W", "ignore", "-m", "tests.soak.chaotic", str(seed), str(steps)]
    with tempfile.TemporaryDirectory(prefix="gw-chaos-") as made:
        disk = SmallDisk(Path(made) / "disk")
        caches = {"TORCHINDUCTOR_CACHE_DIR": str(Path(made) / "torch")}
        bare = _started(words, TMPDIR=made, GPUWATCH="0", **caches)
        watched = _started(words, TMPDIR=str(disk.folder), **caches)
        outside = Outside(watched.pid, rng, disk.folder, found.faults, disk.is_mounted)
        try:
            until = time.monotonic() + LIMIT_S
            while watched.poll() is None and not os.pread(watched.files[0].fileno(), 1, 0):
                time.sleep(0.02)  # until its handlers are there: before, a signal ends any program
            while watched.poll() is None and time.monotonic() < until:
                outside.one()
                time.sleep(rng.uniform(0, 0.2))
            found.watched, found.bare = _ended(watched), _ended(bare)
        finally:
            outside.close()
            disk.close()
    return found


def _started(words: list[str], **more: str) -> Any:
    """A process with its `files`: nobody reads a pipe meanwhile."""
    out, err = tempfile.TemporaryFile(), tempfile.TemporaryFile()  # noqa: SIM115
    process = subprocess.Popen(
        words, stdin=subprocess.DEVNULL, stdout=out, stderr=err, env=environment(**more)
    )
    process.files = out, err  # type: ignore[attr-defined]
    return process


def _ended(process: Any) -> tuple[int, str, str]:
    """Exit code (-1000 where it hung), stdout, stderr."""
    try:
        code = process.wait(LIMIT_S)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()
        code = -1000
    texts = []
    for file in process.files:
        file.seek(0)
        texts.append(file.read().decode(errors="replace"))
        file.close()
    return code, texts[0], texts[1]


def main() -> int:
    """Rounds until the time is over; exit 1 where one differs. Seeds are printed."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--minutes", type=float, default=60.0)
    parser.add_argument("--seed", type=int, default=int(time.time()))
    parser.add_argument("--rounds", type=int, default=10**9)
    parser.add_argument("--out", type=Path, help="a line of JSON for each round")
    options = parser.parse_args()
    began, differ, faults = time.monotonic(), [], Counter[str]()
    rounds = 0
    while rounds < options.rounds and time.monotonic() - began < 60 * options.minutes:
        found = play(options.seed + rounds)
        rounds += 1
        faults += found.faults
        if not found.same:
            differ.append(found.seed)
            print(f"seed {found.seed} differs:\n  bare {found.bare}\n  watched {found.watched}")
        print(f"{rounds} rounds, seed {found.seed}, exit {found.watched[0]}", flush=True)
        if options.out:
            row = {"seed": found.seed, "same": found.same, "faults": dict(found.faults)}
            with options.out.open("a") as out:
                out.write(json.dumps({**row, "bare": found.bare, "watched": found.watched}) + "\n")
    minutes = (time.monotonic() - began) / 60
    print(f"{rounds} rounds in {minutes:.0f} min, {sum(faults.values())} faults: {dict(faults)}")
    print(f"seeds that differ: {differ}" if differ else "each as its bare twin")
    return 1 if differ else 0


if __name__ == "__main__":
    sys.exit(main())
