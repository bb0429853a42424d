"""Examined runs as they are kept: a file of results, judged anew after a rule has changed, and
their recordings, in the repository for good."""

from collections.abc import Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import asdict, replace
from multiprocessing import get_context
from pathlib import Path
from typing import Final

import msgspec
from msgspec import structs

from evaluation.examined import Examined, judged_as
from evaluation.ordinary import scripts
from evaluation.seeds import reported_on
from generated.spec import Spec
from generated.switches import switches
from gpuwatch.tui.model.observations import Greeted
from gpuwatch.tui.recording.format import Entry
from gpuwatch.tui.recording.reader import Recording
from gpuwatch.tui.recording.recorder import RecordingWriter

RESULTS: Final = "results.json"
MEASURED: Final = (
    "half",
    "device",
    "gpu",
    "mode",
    "causes",
    "failed",
    "others_cores",
    "seconds",
    "recording_bytes",
    "about",
)
"""What stays as it was measured."""


MOST_BYTES: Final = 7 << 20
"""Of a folder in which recordings are kept for good, their results included."""
ELSEWHERE: Final = "/srv/train"
SOMEWHERE: Final = "host"
"""What stands in kept recordings for the folder and the machine of the run."""


def keep_all(path: Path, results: Sequence[Examined]) -> None:
    """Write them, a line each, whole or not at all."""
    part = path.with_suffix(".part")
    rows = (msgspec.json.encode(asdict(each)) for each in results)
    part.write_bytes(b"[\n" + b",\n".join(rows) + b"\n]\n")
    part.rename(path)


def kept_in(path: Path) -> list[Examined]:
    """All that were kept; none where there is no file."""
    return msgspec.json.decode(path.read_bytes(), type=list[Examined]) if path.exists() else []


def keep(results: Sequence[Examined], folder: Path, kept: Path) -> list[Examined]:
    """Add runs to the folder of those kept for good: `cpu`, `cuda` or `ordinary` in `kept`, each
    with its recordings and one file of results. One that is there is replaced.

    All of them, whatever came out, the smallest first: returns those for which `MOST_BYTES` has no
    room. Where they were made is not kept.
    """
    used = sum(path.stat().st_size for path in kept.rglob("*") if path.is_file())
    homes: dict[Path, dict[str, Examined]] = {}
    left_out: list[Examined] = []
    for each in sorted(results, key=lambda run: run.recording_bytes):
        home = kept / (each.device if "spec" in each.about else "ordinary")
        home.mkdir(parents=True, exist_ok=True)
        rows = homes.setdefault(home, {run.name: run for run in kept_in(home / RESULTS)})
        file = home / recording_of(each)
        old = (rows[each.name], file) if each.name in rows else None
        if old is not None:
            used -= _bytes_of(*old)
        part = file.with_suffix(".part")
        keep_recording(folder / recording_of(each), part)
        now = replace(each, recording_bytes=part.stat().st_size)
        if used + _bytes_of(now, part) > MOST_BYTES:
            part.unlink()
            used += _bytes_of(*old) if old is not None else 0
            left_out.append(each)
            continue
        used += _bytes_of(now, part)
        part.rename(file)
        rows[each.name] = now
    for home, rows in homes.items():
        keep_all(home / RESULTS, sorted(rows.values(), key=lambda run: (len(run.name), run.name)))
    return left_out


def _bytes_of(result: Examined, file: Path) -> int:
    """With its line of the results."""
    return file.stat().st_size + len(msgspec.json.encode(asdict(result))) + len(b",\n")


def keep_recording(file: Path, copy: Path) -> None:
    """Copy a recording without the names of the machine and of the folders it was made in."""
    recording = Recording(file)
    try:
        entries = [_anonymous(entry) for entry in recording.entries()]
        header = structs.replace(recording.header, host=SOMEWHERE)
    finally:
        recording.close()
    with copy.open("wb", buffering=0) as out:
        writer = RecordingWriter(out, header)
        writer.write(entries)
        writer.end()


def _anonymous(entry: Entry) -> Entry:
    if not isinstance(entry, Greeted):
        return entry
    hello = entry.hello
    argv = [each.replace(hello.cwd, ELSEWHERE) for each in hello.argv]
    changes = {"argv": argv, "cwd": ELSEWHERE, "host": SOMEWHERE}
    hello = structs.replace(hello, executable=Path(hello.executable).name, **changes)
    return structs.replace(entry, hello=hello)


def recording_of(result: Examined) -> str:
    """The name of its file."""
    return f"{result.device}-{result.name}.gpuwatch"


def again(result: Examined, folder: Path) -> Examined:
    """The result, with what is reported on its recording now."""
    kept = asdict(result)
    advice = advice_of(result)
    return judged_as(
        result.name,
        # A switch that is not asked about any more counts no more either.
        [gain for gain in result.gains if gain.name in advice],
        reported_on(folder / recording_of(result)),
        advice,
        cut=bool(result.about.get("cut")),
        before_s=float(result.about.get("before_s", 0.0)),
        begun_step=result.about.get("begun_step"),
        **{name: kept[name] for name in MEASURED},
    )


def all_again(results: Sequence[Examined], folder: Path, jobs: int) -> list[Examined]:
    """The same of all, by so many processes."""
    folders = [folder] * len(results)
    if jobs == 1:
        return list(map(again, results, folders))
    with ProcessPoolExecutor(jobs, get_context("spawn")) as pool:
        return list(pool.map(again, results, folders, chunksize=4))


def advice_of(result: Examined) -> dict[str, str]:
    """What a first action says that asks for each switch."""
    if "spec" in result.about:
        # As it was drawn then: the generator may draw another run from that seed now.
        spec = msgspec.convert(result.about["spec"], Spec)
        return {switch.name: switch.advice for switch in switches(spec)}
    (script,) = scripts(result.name)
    return {change.name: change.advice for change in script.switches}
