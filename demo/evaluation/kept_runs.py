"""Examined runs as they are kept: a file of results, judged anew after a rule has changed, and the
recordings that are small enough for a repository."""

import shutil
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Final

import msgspec

from evaluation.examined import Examined, judged_as
from evaluation.ordinary import scripts
from evaluation.seeds import reported_on
from generated.spec import Spec
from generated.switches import switches

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


MOST_BYTES: Final = 3 << 20
"""Of recordings that are kept for good."""


def keep_all(path: Path, results: Sequence[Examined]) -> None:
    """Write them, a line each, whole or not at all."""
    part = path.with_suffix(".part")
    rows = (msgspec.json.encode(asdict(each)) for each in results)
    part.write_bytes(b"[\n" + b",\n".join(rows) + b"\n]\n")
    part.rename(path)


def kept_in(path: Path) -> list[Examined]:
    """All that were kept; none where there is no file."""
    return msgspec.json.decode(path.read_bytes(), type=list[Examined]) if path.exists() else []


def choose(results: Sequence[Examined], folder: Path, chosen: Path) -> list[Examined]:
    """Copy recordings with a known truth to another folder, their results beside them.

    The smallest first, as far as they fit. Runs of seeds for the report are not among them: whoever
    changes a rule would look at them.
    """
    known = [each for each in results if each.label in ("positive", "negative")]
    found: list[Examined] = []
    left = MOST_BYTES
    for each in sorted(known, key=lambda run: run.recording_bytes):
        left -= each.recording_bytes
        if left >= 0 and (each.half == "development" or not each.name.isdecimal()):
            found.append(each)
    chosen.mkdir(parents=True, exist_ok=True)
    for each in found:
        shutil.copy(folder / recording_of(each), chosen)
    keep_all(chosen / RESULTS, found)
    return found


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
        **{name: kept[name] for name in MEASURED},
    )


def advice_of(result: Examined) -> dict[str, str]:
    """What a first action says that asks for each switch."""
    if "spec" in result.about:
        # As it was drawn then: the generator may draw another run from that seed now.
        spec = msgspec.convert(result.about["spec"], Spec)
        return {switch.name: switch.advice for switch in switches(spec)}
    (script,) = scripts(result.name)
    return {change.name: change.advice for change in script.switches}
