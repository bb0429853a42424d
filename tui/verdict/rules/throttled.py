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
    the GPU is slower by at most what its clock lacks; idle time is not.
    Abstains where the clock, or its maximum, is unknown."""
    activity = window.activity
    if activity is None or activity.busy is None or activity.clock_lost is None:
        return None
    if activity.throttled <= THROTTLED_READINGS:
        return None
    share = without_rows(activity.clock_lost * activity.busy / 100)
    if share.mean < CONTRIBUTOR:
        return None
    reasons = " and ".join(activity.throttle_reasons)
    slower = activity.clock_lost / activity.throttled
    return cause(
        "throttled",
        None,
        share,
        f"the GPU runs {percent(slower)} below its highest clock: {reasons}",
        (
            Evidence(
                f"{reasons} in {percent(activity.throttled)} of the readings",
                "nvml",
                activity.throttled,
            ),
            Evidence(f"its clock is then {percent(slower)} below its highest", "nvml", slower),
            Evidence(
                f"the GPU is busy {activity.busy:.0f}% of the time", "nvml", activity.busy, "%"
            ),
        ),
        tuple(_NEEDS[reason] for reason in activity.throttle_reasons if reason in _NEEDS),
    )
