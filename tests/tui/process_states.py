"""The fake run with processes around it, and with events of every kind."""

from dataclasses import replace

import msgspec

from gpuwatch.tui.model.observations import ProcessUse
from gpuwatch.tui.model.snapshot import Event, Snapshot, Surroundings
from tests.tui import fake_memory
from tests.tui.fake_memory import GIB, MIB, S


def process(pid: int, role: str, name: str, **fields: object) -> ProcessUse:
    """One process that does nothing much."""
    given: dict[str, object] = {
        "cpu_percent": 0.0,
        "rss_bytes": 210 * MIB,
        "pss_bytes": None,
        "read_bytes_s": 0.0,
        "write_bytes_s": 0.0,
        "status": "S",
        "threads": 3,
        "thread_cpu_percent": 0.0,
        **fields,
    }
    return ProcessUse(pid=pid, role=role, name=name, **given)  # type: ignore[arg-type]


def launched(snapshot: Snapshot) -> Snapshot:
    """Under torchrun with another rank, with a pin thread, and a compiler below."""
    assert snapshot.hello is not None
    main, *workers = snapshot.processes
    main = msgspec.structs.replace(
        main, parent=48190, pin_cpu_percent=12.0, thread_cpu_percent=44.0, write_bytes_s=0.2 * MIB
    )
    workers = [
        msgspec.structs.replace(
            one, parent=48213, thread_cpu_percent=98.0, run_delay_percent=31.0 if i == 1 else 2.0
        )
        for i, one in enumerate(workers)
    ]
    compiler = process(48301, "child", "cc1plus", parent=48300, cpu_percent=61.0, status="R")
    shell = process(48300, "child", "g++", parent=48213)
    return replace(
        snapshot,
        hello=msgspec.structs.replace(snapshot.hello, world_size=2),
        processes=(main, *workers, shell, compiler),
        surroundings=Surroundings(
            busy_percent=35.0,
            others_percent=22.0,
            throttled_percent=None,
            around=(
                process(48190, "launcher", "torchrun", threads=12),
                process(
                    48214,
                    "rank",
                    "python",
                    rank=1,
                    parent=48190,
                    cpu_percent=51.0,
                    thread_cpu_percent=50.0,
                    rss_bytes=int(4.5 * GIB),
                    threads=71,
                ),
            ),
        ),
        events=events(snapshot.t_ns),
        series=(*snapshot.series, fake_memory.series("cores", fake_memory.cores, snapshot.t_ns)),
    )


def many_workers(snapshot: Snapshot) -> Snapshot:
    """64 of them, some busier than others, under a quota."""
    run = launched(snapshot)
    worker = run.processes[1]
    assert run.surroundings is not None
    return replace(
        run,
        surroundings=replace(run.surroundings, around=(), throttled_percent=12.0),
        processes=(
            run.processes[0],
            *(
                msgspec.structs.replace(
                    worker,
                    pid=48231 + i,
                    cpu_percent=float(20 + i * 37 % 80),
                    read_bytes_s=(5 + i * 11 % 40) * MIB / 4,
                    status="D" if i % 17 == 3 else "R",
                    run_delay_percent=None,
                )
                for i in range(64)
            ),
        ),
    )


def events(now_ns: int) -> tuple[Event, ...]:
    """One of each kind, and some more checkpoints."""
    reported = (
        (1_402, 17_100, "verdict", "verdict: input/workers (was healthy)"),
        (1_210, 17_240, "evaluation", "evaluation 21.4 s"),
        (700, 17_620, "checkpoint", "checkpoint 3.9 s"),
        (363, 17_900, "pace", "step time +38% (was 900 ms)"),
        (241, 17_998, "workers", "4 loader workers started again (iteration 3)"),
        (180, 18_000, "checkpoint", "checkpoint 4.1 s"),
        (122, 18_044, "recompile", "recompile 7.2 s"),
        (61, 18_150, "allocator", "2 allocations had to empty the cache first"),
        (38, 18_170, "checkpoint", "checkpoint 4.1 s"),
        (12, None, "link", "the probe is silent"),
    )
    return tuple(Event(now_ns - ago * S, step, text, kind) for ago, step, kind, text in reported)
