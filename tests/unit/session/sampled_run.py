"""A run without a probe, as its sources see it: a random walk through the phases, sampled."""

import random
from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

from msgspec import structs

from gpuwatch.tui.model.observations import (
    AnyObservation,
    GpuUse,
    Missing,
    ProcessesSeen,
    ProcessRole,
    ProcessUse,
    StackCount,
    StacksSeen,
    ThreadRole,
)
from gpuwatch.tui.model.snapshot import Snapshot
from gpuwatch.tui.session.session import Session
from gpuwatch.tui.verdict.engine import Engine
from tests.unit.session.making import judged
from tests.unit.stack_phases.real_stacks import BACKWARD, FETCH, FORWARD, SAVE, STEP, TRAIN, WAIT
from tests.unit.stack_phases.test_waits import RESULT

S = 1_000_000_000
SAMPLES = 19
STACKS: Mapping[str, tuple[str, ...]] = {
    "data": (*TRAIN, *WAIT),
    "serial": (*TRAIN, *FETCH, "Photos.__getitem__ (photos.py:20)"),
    "stream": (
        *(*TRAIN, *FETCH[:-1]),
        "_IterableDatasetFetcher.fetch (torch/utils/data/_utils/fetch.py:35)",
        "Stream.__iter__ (data.py:9)",
    ),
    "forward": (*TRAIN, *FORWARD),
    "backward": (*TRAIN, *BACKWARD),
    "optimizer": (*TRAIN, *STEP),
    "checkpoint": (*TRAIN, *SAVE),
    "evaluation": (*TRAIN, "evaluate (train.py:30)", *FORWARD),
    "acts": (*TRAIN, "collect (train.py:30)", "TimeLimit.step (gymnasium/wrappers/common.py:125)"),
    "other": (*TRAIN, "count_words (metrics.py:7)"),
    "printed": (*TRAIN, "count_words (metrics.py:9)", "_str (torch/_tensor_str.py:722)"),
    "loads": (*TRAIN, "load (torch/serialization.py:1540)", "_load (torch/serialization.py:2146)"),
    "ahead": (*TRAIN, *RESULT),
    "ranks": (
        *(*TRAIN, "average_gradients (train.py:15)"),
        "_exception_logger.<locals>.wrapper (torch/distributed/c10d_logger.py:83)",
        "all_reduce (torch/distributed/distributed_c10d.py:3252)",
    ),
    "collects": (
        "<module> (a3c.py:110)",
        "Queue.get (multiprocessing/queues.py:103)",
        "Connection.recv_bytes (multiprocessing/connection.py:216)",
    ),
    "joins": ("<module> (train.py:90)", "join (threading.py:1112)"),
    "serves": ("<module> (a.py:9)", "serve_forever (socketserver.py:232)", "select (selectors.py)"),
    "locked": (*TRAIN, "wait (threading.py:355)"),
}
NO_PROBE = Missing(t_ns=0, source="probe", reason="none in the process")
NO_GPU = Missing(t_ns=0, source="nvml", reason="no NVIDIA driver")


def session() -> Session:
    """Of a process without a probe and without a GPU."""
    made = Session(48213, "train.py", 0, Engine())
    made.ingest(NO_PROBE)
    made.ingest(NO_GPU)
    return made


def chunk(number: int, names: Sequence[str]) -> StacksSeen:
    """Two seconds of samples; `names` in the order in which they were taken."""
    bits: dict[str, int] = {}
    for index, name in enumerate(names):
        bits[name] = bits.get(name, 0) | 1 << index
    return StacksSeen(
        t_ns=(2 * number + 2) * S,
        started_ns=2 * number * S,
        samples=len(names),
        stacks=tuple(
            StackCount(
                role="main",
                pid=48213,
                thread="MainThread",
                frames=STACKS[name],
                count=moments.bit_count(),
                moments=moments,
            )
            for name, moments in bits.items()
        ),
        moments_ms=tuple(100 * index + 50 for index in range(len(names))),
        seen=(1 << len(names)) - 1,
    )


def chunks(shares: Mapping[str, float], seconds: int, seed: int = 0) -> list[StacksSeen]:
    """Phases as often as `shares` say, at random."""
    chance = random.Random(seed)
    names, weights = list(shares), list(shares.values())
    return [
        chunk(number, chance.choices(names, weights, k=SAMPLES)) for number in range(seconds // 2)
    ]


class Seen(NamedTuple):
    """A stack with its line."""

    frames: tuple[str, ...]
    line: str = ""
    role: ThreadRole = "main"


def drawn(
    places: Mapping[str, Seen], shares: Mapping[str, float], seconds: int
) -> list[AnyObservation]:
    """Such stacks as often as `shares` say, at random."""
    chance, names, weights = random.Random(1), list(shares), list(shares.values())
    made = list[AnyObservation]()
    for number in range(seconds // 2):
        taken = chance.choices(names, weights, k=SAMPLES)
        stacks = tuple(
            StackCount(
                role=places[name].role,
                pid=48213 if places[name].role == "main" else 48300,
                thread="MainThread",
                frames=places[name].frames,
                line=places[name].line,
                count=taken.count(name),
                moments=sum(1 << at for at, one in enumerate(taken) if one == name),
            )
            for name in dict.fromkeys(taken)
        )
        made.append(structs.replace(chunk(number, ["other"] * SAMPLES), stacks=stacks))
    return made


def processes(
    t_ns: int, main_percent: float, worker_percents: Sequence[float], rss_bytes: int = 2**30
) -> ProcessesSeen:
    """The target and its workers, on eight cores that nobody else uses."""
    main = structs.replace(use(48213, "main", main_percent), rss_bytes=rss_bytes)
    workers = [use(48300 + i, "worker", percent) for i, percent in enumerate(worker_percents)]
    return ProcessesSeen(
        t_ns=t_ns,
        processes=(main, *workers),
        cores=8.0,
        machine_cpu_percent=20.0,
        memory_total_bytes=2**35,
        memory_available_bytes=2**34,
        others_cpu_percent=0.0,
    )


def use(pid: int, role: ProcessRole, percent: float) -> ProcessUse:
    """A process that never waits for a core."""
    return ProcessUse(
        pid=pid,
        role=role,
        name="python",
        cpu_percent=percent,
        rss_bytes=2**30,
        pss_bytes=2**29,
        read_bytes_s=0.0,
        write_bytes_s=0.0,
        status="S",
        threads=1,
        run_delay_percent=0.0,
        thread_cpu_percent=min(100.0, percent),
    )


def gpu() -> GpuUse:
    """One that is there; how busy it is others report."""
    return GpuUse(
        uuid="GPU-1",
        index=0,
        name="NVIDIA H200",
        utilization_percent=50.0,
        memory_used_bytes=2**30,
        memory_total_bytes=2**37,
        target_memory_bytes=2**30,
        power_w=300.0,
        sm_clock_mhz=1900,
        temperature_c=50,
    )


def watched(made: Session, seen: Iterable[AnyObservation], seconds: int) -> Snapshot:
    """Everything in its order, a look a second; the last picture."""
    left = sorted(seen, key=lambda one: one.t_ns)
    for second in range(1, seconds + 1):
        while left and left[0].t_ns <= second * S:
            made.ingest(left.pop(0))
        judged(made, second * S, 0.0)
    return judged(made, seconds * S, 0.0)
