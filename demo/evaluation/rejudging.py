"""Examined runs judged anew from their recordings, after a rule has changed."""

from dataclasses import asdict
from pathlib import Path
from typing import Final

import msgspec

from evaluation.examined import Examined, judged_as
from evaluation.ordinary import scripts
from evaluation.seeds import reported_on
from generated.spec import Spec
from generated.switches import switches

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


def again(result: Examined, folder: Path) -> Examined:
    """The result, with what is reported on its recording now."""
    kept = asdict(result)
    advice = advice_of(result)
    return judged_as(
        result.name,
        # A switch that is not asked about any more counts no more either.
        [gain for gain in result.gains if gain.name in advice],
        reported_on(folder / f"{result.device}-{result.name}.gpuwatch"),
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
