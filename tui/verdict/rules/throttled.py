"""The GPU runs below its clock: too hot, or its power is held back."""

from typing import Final

from ..findings import Evidence, Finding
from ..format import percent
from ..scoring import cause
from ..statistics import without_rows
from ..thresholds.causes import THROTTLED_READINGS
from ..thresholds.hysteresis import CONTRIBUTOR
from ..window import RunFacts

_NEEDS: Final = {
    "too hot": "check its cooling: fans, air flow, the load of neighbouring GPUs",
    "power brake": "check the power supply: the machine asks its GPUs to draw less",
    "hardware slowdown": "check power and cooling: `nvidia-smi -q -d PERFORMANCE,TEMPERATURE`",
}


def throttled(window: RunFacts) -> Finding | None:
    """A reason other than the power cap in more than 10 % of the readings. Work on
    the GPU is slower by at most what its clock lacks; time in which it stands idle is not.
    Abstains where the clock, or the highest that it goes to, is not told."""
    told = window.activity
    if told is None or told.busy is None or told.clock_lost is None:
        return None
    if told.throttled <= THROTTLED_READINGS:
        return None
    share = without_rows(told.clock_lost * told.busy / 100)
    if share.mean < CONTRIBUTOR:
        return None
    reasons = " and ".join(told.throttle_reasons)
    slower = told.clock_lost / told.throttled
    return cause(
        "throttled",
        None,
        share,
        f"the GPU runs {percent(slower)} below its highest clock: {reasons}",
        (
            Evidence(
                f"{reasons} in {percent(told.throttled)} of the readings", "nvml", told.throttled
            ),
            Evidence(f"its clock is then {percent(slower)} below its highest", "nvml", slower),
            Evidence(f"the GPU is busy {told.busy:.0f}% of the time", "nvml", told.busy, "%"),
        ),
        tuple(_NEEDS[reason] for reason in told.throttle_reasons if reason in _NEEDS),
    )
