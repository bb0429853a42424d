"""A long run for the monitor to hold, a second at a time: `python -m tests.tui.an_hour [MINUTES]`.

Everything that sources report of a run on one GPU with four workers goes through a session with the
real engine, its past and the screen, on a clock that is moved by hand. Prints after every ten
minutes of data what the monitor holds, and the process's resident memory.
"""

import asyncio
import gc
import random
import sys
from collections.abc import Iterator
from pathlib import Path
from types import CodeType, FunctionType, ModuleType

from msgspec import Struct
from msgspec.structs import astuple

from gpuwatch.tui.app import GpuwatchApp
from gpuwatch.tui.model.observations import (
    Activity,
    ActivitySeen,
    AnyObservation,
    GpusSeen,
    GpuUse,
    Greeted,
    ProcessesSeen,
    ProcessRole,
    ProcessUse,
    StackCount,
    StacksSeen,
)
from gpuwatch.tui.model.snapshot import Snapshot
from gpuwatch.tui.session.judge import Engine as Judging
from gpuwatch.tui.session.session import Session
from gpuwatch.tui.steps import GpuClock, GpuMemory, GpuStep
from gpuwatch.tui.verdict.engine import Engine
from tests.tui.fake_run import WithHistory
from tests.unit.session.making import HELLO, MS, S, delivered, loader, step

GIB = 1024**3
STEPS_S = 5
SHARED = (ModuleType, FunctionType, CodeType, type)


class Watched(WithHistory):
    """A session whose time a test moves."""

    def __init__(self, engine: Judging) -> None:
        super().__init__()
        self.now_ns = 0
        self.session = Session(48213, "train.py", 0, engine)
        self.session.ingest(Greeted(t_ns=0, hello=HELLO))
        self._rng = random.Random(5)
        self._places = _places()

    def snapshot(self) -> Snapshot:
        """The run as it stands."""
        self.session.judge_if_due(self.now_ns)
        return self.session.snapshot(self.now_ns, 1.8e9 + self.now_ns / S)

    def go_on(self) -> None:
        """One more second of data."""
        for seen in _second(self._rng, self.now_ns, self._places):
            self.session.ingest(seen)
        self.now_ns += S


def _places() -> list[tuple[str, ...]]:
    """Stacks as a program has them: the same way in, and many places at its end."""
    way = tuple(f"call_{depth} (module_{depth}.py:{depth})" for depth in range(10))
    return [(*way, f"inner_{i % 6} (a.py:{i % 6})", f"leaf_{i} (b.py:{i})") for i in range(40)]


def _second(
    rng: random.Random, at_ns: int, places: list[tuple[str, ...]]
) -> Iterator[AnyObservation]:
    second = at_ns // S
    made, rows = [], []
    for i in range(STEPS_S):
        number, data_ms = second * STEPS_S + i + 1, rng.uniform(80, 110)
        start_ms = at_ns / MS + i * 1000 / STEPS_S
        one = step(
            number, start_ms, data_ms=data_ms, forward_ms=30, backward_ms=40, optimizer_ms=10
        )
        made.append(one)
        rows.append(_on_gpu(number, one.start_ns, one.end_ns, round(data_ms * MS)))
    held = {"allocated": 9 * GIB, "active": 9 * GIB, "peak_allocated": 11 * GIB, "device": 0}
    reserved = {"reserved": 12 * GIB, "peak_reserved": 12 * GIB, "at_backward": 11 * GIB}
    memory = GpuMemory(t_ns=at_ns, step=second * STEPS_S, retries=0, ooms=0, **held, **reserved)
    yield delivered(
        made,
        at_ns / MS + 999,
        loaders=[loader()] if second % 60 == 0 else [],
        gpu_steps=rows,
        gpu_memory=[memory],
        gpu_clocks=[GpuClock(0, 6_000, 1, 21_000, 0)],
        rss_bytes=3 * GIB + second * 100_000,
    )
    for tenth in range(1, 11):
        yield ActivitySeen(t_ns=at_ns + tenth * 100 * MS, gpus=(_activity(rng),))
    yield GpusSeen(t_ns=at_ns + S, gpus=(_gpu(rng),))
    workers = [_process(rng, 11 + i, "worker") for i in range(4)]
    yield ProcessesSeen(
        t_ns=at_ns + S,
        processes=(_process(rng, 48213, "main"), *workers),
        cores=16.0,
        machine_cpu_percent=rng.uniform(50, 60),
        memory_total_bytes=128 * GIB,
        memory_available_bytes=90 * GIB,
    )
    yield StacksSeen(
        t_ns=at_ns + S,
        started_ns=at_ns,
        samples=20,
        stacks=tuple(
            StackCount(
                role="main" if i == 0 else "worker",
                pid=48213 if i == 0 else 10 + i,
                thread="MainThread",
                frames=rng.choice(places),
                count=4,
                moments=rng.getrandbits(20),
            )
            for i in range(5)
        ),
        moments_ms=tuple(range(0, 1000, 50)),
        seen=2**20 - 1,
    )


def _on_gpu(number: int, start_ns: int, end_ns: int, data_ns: int) -> GpuStep:
    parts = dict.fromkeys(
        ("startup", "forward", "backward", "optimizer", "other", "evaluation", "checkpoint"), 0
    )
    return GpuStep(
        number=number,
        count=1,
        start_ns=start_ns,
        end_ns=end_ns,
        device=0,
        gpu_start_ns=start_ns,
        gpu_end_ns=end_ns,
        data_ns=data_ns,
        compile_ns=0,
        phases={},
        host_wait_ns=data_ns,
        lag_start_ns=0,
        lag_data_ns=0,
        lag_forward_ns=0,
        lag_backward_ns=0,
        lag_optimizer_ns=0,
        uncertain_ns=6_000,
        **{f"{name}_ns": ns for name, ns in parts.items()},
    )


def _activity(rng: random.Random) -> Activity:
    busy = rng.uniform(0, 90)
    return Activity(index=0, source="gpm", interval_ns=100 * MS, busy=busy, sm=busy, tensor=busy)


def _gpu(rng: random.Random) -> GpuUse:
    return GpuUse(
        uuid="GPU-1",
        index=0,
        name="NVIDIA H200",
        utilization_percent=60.0,
        memory_used_bytes=14 * GIB,
        memory_total_bytes=140 * GIB,
        target_memory_bytes=13 * GIB,
        power_w=rng.uniform(300, 420),
        sm_clock_mhz=1980,
        temperature_c=rng.randrange(41, 44),
    )


def _process(rng: random.Random, pid: int, role: ProcessRole) -> ProcessUse:
    return ProcessUse(
        pid=pid,
        role=role,
        name="python",
        cpu_percent=rng.uniform(90, 100),
        rss_bytes=GIB + rng.randrange(2**20),
        pss_bytes=GIB // 2,
        read_bytes_s=rng.uniform(0, 2e7),
        write_bytes_s=0.0,
        status="R",
        threads=4,
    )


def held_bytes(*roots: object) -> int:
    """Bytes of all objects that these hold, each counted once."""
    seen: set[int] = set()
    left: list[object] = list(roots)
    held = 0
    while left:
        one = left.pop()
        if id(one) in seen or isinstance(one, SHARED):
            continue
        seen.add(id(one))
        held += sys.getsizeof(one)
        # What a step holds is no business of the collector's, which knows of no way in.
        left += astuple(one) if isinstance(one, Struct) else gc.get_referents(one)
    return held


def resident_bytes() -> int:
    """Of this process."""
    pages = int(Path("/proc/self/statm").read_text().split()[1])
    return pages * 4096


async def hold(
    engine: Judging, minutes: int, every: int, look_s: int, frame_s: int
) -> list[tuple[int, int, int]]:
    """After every so many minutes of data: bytes that the session holds, the same with its past,
    and the resident memory. It is looked at every `look_s` of data and drawn every `frame_s`."""
    run = Watched(engine)
    app = GpuwatchApp(run, frames_s=0.001)
    reported: list[tuple[int, int, int]] = []
    async with app.run_test(size=(100, 30)) as pilot:
        for second in range(1, minutes * 60 + 1):
            run.go_on()
            if second % look_s == 0:
                run.moment(None)
            if second % frame_s == 0:
                app.frame()
                await pilot.pause()
            if second % (every * 60) == 0:
                gc.collect()
                reported.append((held_bytes(run.session), held_bytes(run), resident_bytes()))
    return reported


def main() -> None:
    """Print the table."""
    minutes = int(sys.argv[1]) if len(sys.argv) > 1 else 60
    print(f"{'minutes':>7}  {'session':>9}  {'with its past':>13}  {'resident':>9}   MB")
    for i, reported in enumerate(asyncio.run(hold(Engine(), minutes, 10, 1, 4)), 1):
        session, past, resident = (value / 1e6 for value in reported)
        print(f"{i * 10:>7}  {session:>9.1f}  {past:>13.1f}  {resident:>9.1f}")


if __name__ == "__main__":
    main()
