"""A believable run that never happened: data-bound, on one H200, a step every 1.24 s.

Everything is a pure function of the clock, which a test sets.
"""

from collections.abc import Callable
from dataclasses import dataclass, field
from functools import lru_cache
from math import sin

from gpuwatch.tui.messages import SCHEMA, Hello
from gpuwatch.tui.model.observations import GpuUse, ProcessUse
from gpuwatch.tui.model.provider import Frame, Reach
from gpuwatch.tui.model.snapshot import (
    Event,
    MemoryView,
    PhaseStats,
    Sawtooth,
    Snapshot,
    Spread,
    Status,
    StepStats,
)
from gpuwatch.tui.session.history import History
from gpuwatch.tui.steps import Step
from gpuwatch.tui.timeseries.series import Series, StepEdges
from gpuwatch.tui.timeseries.writer import Growing
from gpuwatch.tui.verdict.findings import Evidence, Finding, Verdict
from gpuwatch.tui.verdict.memory.trends import Exhaustion
from gpuwatch.tui.verdict.stack_samples import FrameShare, Stacks
from gpuwatch.tui.verdict.window import MemoryPoint, OpenStep
from tests.tui import fake_memory, fake_stacks

MS = 1_000_000
S = 1_000_000_000
GIB = 1024**3
MIB = 1024**2

STEP_MS = 1240.0
PHASES = (
    ("data", 706.0),
    ("forward", 172.0),
    ("backward", 288.0),
    ("optimizer", 46.0),
    ("other", 28.0),
)
START = 1_000 * S
NOW = START + 400 * S

HELLO = Hello(
    schema=SCHEMA,
    pid=48213,
    start_ticks=1,
    started_unix=1.8e9,
    argv=["train.py"],
    cwd="/home/ana/resnet",
    executable="/usr/bin/python3",
    python="3.12.4",
    torch="2.9.0",
    probe="0.1.0",
    host="node7",
    uid=1000,
    rank=0,
    local_rank=0,
    world_size=1,
    restart_count=None,
    endpoint=None,
    fault=None,
)
INPUT = Finding(
    kind="input",
    sub="workers",
    severity="critical",
    share=0.57,
    share_low=0.55,
    share_high=0.59,
    speedup=2.32,
    speedup_is="bound",
    headline="data wait is 57% of every step",
    evidence=(
        Evidence("706 of 1,240 ms a step wait in DataLoader.__next__", "hook", 706.0, "ms"),
        Evidence("4 of 4 workers busy on the CPU, 81% of it in PIL decode", "py-spy", 0.81),
        Evidence("workers use 398% of a core, 11 of 16 cores idle", "proc", 398.0, "%"),
    ),
    advice=(
        "num_workers 4 → 10 (16 cores, 11 idle), then decode on the GPU",
        "store the images at the size they are used",
    ),
)
GROWTH = Finding(
    kind="memory-growth",
    sub="growth",
    severity="warning",
    share=None,
    share_low=None,
    share_high=None,
    speedup=None,
    speedup_is=None,
    headline="host memory grows 38 MiB per 100 steps",
    evidence=(
        Evidence("4.1 GiB to 4.6 GiB over 1,350 steps, R² 0.98", "proc", 38.0, "MiB"),
        Evidence("at this rate the machine is full in 31 h", "proc", 31.0, "h"),
    ),
    advice=("look for losses kept with their graph: use loss.item() when you log",),
)
MAIN = (
    FrameShare(0.94, "_get_data (dataloader.py:1275)", "train_epoch (train.py:88)"),
    FrameShare(0.03, "backward (_tensor.py:648)", "train_epoch (train.py:93)"),
    FrameShare(0.02, "conv2d (conv.py:543)", "forward (model.py:51)"),
)
WORKERS = (
    FrameShare(0.81, "load (PIL/ImageFile.py:300)", "__getitem__ (dataset.py:41)"),
    FrameShare(0.11, "resize (functional.py:468)", "__getitem__ (dataset.py:43)"),
    FrameShare(0.08, "collate (collate.py:155)", None),
)
FULL = Exhaustion(1_100_000, 1_300_000, STEP_MS / 3.6e6)
NO_GPU_NOTE = "no GPU: share of time the training process is not waiting"


def busy(t_ns: int) -> float:
    """How busy the GPU is at a moment: flat while data is waited for, then a tooth."""
    at_ms = (t_ns - START) / MS % STEP_MS
    if at_ms < 706 or t_ns < START:
        return 1.0
    return 78.0 + 14.0 * sin(t_ns / S * 2.1) * sin((at_ms - 706) / 170.0)


class WithHistory:
    """What a screen needs of a run that goes on; a test's class adds the snapshot."""

    plays = False
    hurries = False

    def __init__(self) -> None:
        self._history = History()
        self._newest: Snapshot | None = None

    def start(self) -> None:
        """Nothing to open."""

    def close(self) -> None:
        """Nothing to let go."""

    def snapshot(self) -> Snapshot:
        """The run now."""
        raise NotImplementedError

    @property
    def reach(self) -> Reach:
        """As far back as it was read."""
        return self._history.reach(self._newest or self.snapshot())

    def moment(self, held_ns: int | None) -> Frame:
        """The run now, or as it was."""
        self._newest = self.snapshot()
        self._history.keep(self._newest)
        return self._history.moment(held_ns, self._newest)

    def go_to(self, t_ns: int) -> None:
        """It does not play."""

    def change_speed(self, by: int) -> None:
        """It does not play."""


@dataclass
class FakeRun(WithHistory):
    """A run whose clock stands still until a test moves it."""

    now_ns: int = NOW
    change: Callable[[Snapshot], Snapshot] = field(default=lambda snapshot: snapshot)
    """What is different in this test."""
    interval_ns: int = 100 * MS
    started: int = 0
    closed: int = 0

    def __post_init__(self) -> None:
        super().__init__()

    def start(self) -> None:
        """Count the calls."""
        self.started += 1

    def close(self) -> None:
        """Count the calls."""
        self.closed += 1

    def snapshot(self) -> Snapshot:
        """The picture at the clock's moment."""
        return self.change(snapshot_at(self.now_ns, self.interval_ns))


class RunClock:
    """The monitor's clock, where a test holds it: the fake run's moment, whatever the machine's
    own clock shows, which begins with the machine."""

    def now_ns(self) -> int:
        return NOW

    def now_unix(self) -> float:
        return 1.8e9 + NOW / S

    def own_cpu_ns(self) -> int:
        return 0


@lru_cache(maxsize=64)
def snapshot_at(now_ns: int, interval_ns: int = 100 * MS) -> Snapshot:
    """The whole run at a moment. Frames draw the same one again: it is made once (20 ms)."""
    step_ns = round(STEP_MS * MS)
    done = (now_ns - START) // step_ns
    return Snapshot(
        t_ns=now_ns,
        t_unix=1.8e9 + now_ns / S,
        attached_s=401.0,
        hello=HELLO,
        script="train.py",
        pid=48213,
        status=Status("hooks", "live", None, 0.1, 0, 0, 0.004, 2.2, ()),
        verdict=Verdict(INPUT, 0.92, 240, now_ns - 372 * S, (GROWTH,), ()),
        steps=StepStats(
            total=17_882 + done,
            in_window=48,
            window_s=60.0,
            p50_ms=STEP_MS,
            p95_ms=1_410.0,
            max_ms=1_733.0,
            steps_s=0.81,
            samples_s=206.5,
            inference=False,
            phases=tuple(
                PhaseStats(
                    name, ms, ms / STEP_MS, Spread(0.99 * ms, 1.14 * ms, 1.4 * ms, 0.01 * ms)
                )
                for name, ms in PHASES
            ),
            error_ms=9.0,
        ),
        recent=_recent(17_882 + done, START + done * step_ns),
        open_step=OpenStep("data", 0.3, 0.3, False, None),
        loaders=(),
        sawtooth=_sawtooth(now_ns, interval_ns, step_ns, done),
        memory=_memory(now_ns, done),
        stacks=Stacks(312, MAIN, 1_248, WORKERS, 0.02),
        trees=fake_stacks.TREES,
        processes=(
            ProcessUse(
                pid=48213,
                role="main",
                name="python",
                cpu_percent=46.0,
                rss_bytes=int(4.6 * GIB),
                pss_bytes=None,
                read_bytes_s=0.0,
                write_bytes_s=0.0,
                status="S",
                threads=71,
            ),
            *(_worker(48231 + i, "D" if i == 2 else "R") for i in range(4)),
        ),
        cores=16.0,
        gpus=(
            GpuUse(
                uuid="GPU-1",
                index=0,
                name="NVIDIA H200",
                utilization_percent=41.0,
                memory_used_bytes=int(68.9 * GIB),
                memory_total_bytes=int(139.8 * GIB),
                target_memory_bytes=int(68.1 * GIB),
                power_w=310.0,
                sm_clock_mhz=1980,
                temperature_c=41,
            ),
        ),
        events=(
            Event(now_ns - 363 * S, 17_900, "step time 1.2 s, +38% (was 900 ms)", "pace"),
            Event(now_ns - 38 * S, 18_000, "checkpoint 4.1 s", "checkpoint"),
        ),
        series=(
            fake_memory.series("host", fake_memory.process_bytes, now_ns),
            fake_memory.series("workers", fake_memory.workers_bytes, now_ns),
        ),
        trends=(
            fake_memory.trend("process", fake_memory.process_bytes, now_ns, 0.38, FULL, GROWTH),
        ),
    )


def _worker(pid: int, status: str) -> ProcessUse:
    return ProcessUse(
        pid=pid,
        role="worker",
        name="pt_data_worker",
        cpu_percent=99.0,
        rss_bytes=int(1.1 * GIB),
        pss_bytes=int(0.55 * GIB),
        read_bytes_s=21.0 * MIB,
        write_bytes_s=0.0,
        status=status,
        threads=1,
    )


def _recent(newest: int, ends_ns: int) -> tuple[Step, ...]:
    """The last 200 steps, one behind the other."""
    walls_ns = [
        round((STEP_MS + 60 * sin(i * 1.7) + (480 if i % 67 == 40 else 0)) * MS) for i in range(200)
    ]
    start_ns = ends_ns - sum(walls_ns)
    steps: list[Step] = []
    for i, wall_ns in enumerate(walls_ns):
        steps.append(_step(newest - 199 + i, start_ns, wall_ns))
        start_ns += wall_ns
    return tuple(steps)


def _step(number: int, start_ns: int, wall_ns: int) -> Step:
    return Step(
        number=number,
        count=1,
        start_ns=start_ns,
        end_ns=start_ns + wall_ns,
        data_ns=706 * MS,
        startup_ns=0,
        forward_ns=172 * MS,
        backward_ns=288 * MS,
        optimizer_ns=46 * MS,
        other_ns=28 * MS,
        evaluation_ns=0,
        checkpoint_ns=0,
        compile_ns=0,
        phases={},
        fetches=1,
        backwards=1,
        optimizer_steps=1,
        samples=256,
        ready=0,
        data_max_ns=706 * MS,
        inference=False,
    )


def _sawtooth(now_ns: int, interval_ns: int, step_ns: int, done: int) -> Sawtooth:
    starts_ns = [START + i * step_ns for i in range(max(0, done - 400), done + 1)]
    return Sawtooth(
        title="GPU busy %",
        source=f"nvml {interval_ns // MS} ms",
        note="",
        series=series_of(busy, now_ns, interval_ns),
        step_starts_ns=StepEdges.of(starts_ns, 17_883 + max(0, done - 400)),
    )


@lru_cache(maxsize=64)
def series_of(
    value: Callable[[int], float],
    now_ns: int,
    interval_ns: int,
    samples: int = 1_201,
    name: str = "busy",
) -> Series:
    """The newest samples of a quantity that is a function of time."""
    last = now_ns // interval_ns
    growing = Growing(name, name, "%", "nvml", 0, interval_ns)
    for i in range(last - samples + 1, last + 1):
        growing.add(i * interval_ns, value(i * interval_ns - interval_ns // 2))
    return growing.series()


def _memory(now_ns: int, done: int) -> MemoryView:
    points = tuple(
        MemoryPoint(
            step=int(17_882 + done - (300 - i) / 1.24),
            t_ns=now_ns - (300 - i) * S,
            bytes=int(4.0 * GIB + i * 2 * MIB + 9 * MIB * sin(i * 2.3)),
        )
        for i in range(301)
    )
    return MemoryView(
        host=points,
        host_rss_bytes=points[-1].bytes,
        workers_bytes=int(2.2 * GIB),
        total_bytes=503 * GIB,
        available_bytes=417 * GIB,
        slope_bytes_per_100_steps=38.0 * MIB,
        growing=True,
    )
