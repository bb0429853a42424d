"""The step waits for data."""

from dataclasses import replace
from typing import Final

from ..code_places import fetches_tensors, main_places, place_evidence, share_where
from ..findings import Evidence, Finding
from ..forecast.gain import gain_on_the_host, gain_without
from ..format import ms, percent
from ..gpu_clock import OnDevice, on_device
from ..loader import Feeding, feeding
from ..pauses import startup_parts
from ..scoring import cause
from ..statistics import share_of
from ..step_time import spent, wall_of
from ..thresholds.causes import HANDED_OVER
from ..thresholds.gpu import HIDDEN_WORTH
from ..thresholds.hysteresis import CONTRIBUTOR
from ..window import StepWindow
from .input_pattern import Explained, Explanation, burst, cheaper, epoch_start, named, storage
from .input_workers import oversubscribed, serial, too_few_workers

EXPLANATIONS: Final[tuple[Explanation, ...]] = (
    epoch_start,
    serial,
    burst,
    storage,
    oversubscribed,
    too_few_workers,
)
"""The first that applies. Waiting at epoch starts comes first because more workers make it worse;
a burst before what its few late batches wait for, since the mean is fast enough; the cores before
the number of workers because they limit it."""


def input_bound(window: StepWindow) -> Finding | None:
    """Data wait and loader start-up, part of the wall time.

    With a GPU only its idle time counts: a batch that is late on the host may still be in time for
    a GPU that is behind (diagnosis, 2nd finding). That part is measured on its own clock, on
    the steps that were sampled, and taken of each step's wait. Where its clock is not read, this
    is what the *host* waits, an upper bound.
    """
    rows = window.steps
    device = on_device(window)
    exposed_share = 1.0 if device is None else device.exposed_share
    starts = startup_parts(window)
    waits = [row.data_ns + start for row, start in zip(rows, starts, strict=True)]
    parts = [round(exposed_share * wait) for wait in waits]
    share = share_of(parts, [wall_of(row) for row in rows])
    fed = feeding(window)
    if share.mean < CONTRIBUTOR or fed is None:
        return None
    total = spent(rows)
    steps = max(1, total.steps)
    wait_ns, step_ns = sum(parts) / steps, total.wall_ns / steps
    waited = _waited(wait_ns, step_ns, sum(waits) / steps, device)
    why = explained(window, fed)
    headline = f"GPU idle {percent(share.mean)} of each step, waiting for data"
    if device is None:
        headline = f"waiting for data takes {percent(share.mean)} of each step"
    if why.sub == "epoch-start":
        headline = f"starting epochs takes {percent(share.mean)} of the time"
    if window.gpu_present and device is None:
        headline += ", by the host's clock"
    fetched = _fetched(window)
    evidence = (*waited, *fetched, *why.evidence)
    gain = gain_without("input", window)
    gain = gain or gain_on_the_host(window, share.mean, frees_cores=True)
    if gain is not None and fetched:
        gain = replace(gain, speedup_is="bound")
    finding = cause("input", why.sub, share, headline, evidence, why.advice, gain=gain)
    return finding if why.foretold else replace(finding, speedup=None, speedup_is=None)


def _waited(
    felt_ns: float, step_ns: float, host_ns: float, device: OnDevice | None
) -> tuple[Evidence, ...]:
    if device is None:
        text = f"{ms(felt_ns)} of {ms(step_ns)} per step spent waiting for the loader"
        return (Evidence(text, "hook", felt_ns / 1e6, "ms"),)
    text = f"GPU idle {ms(felt_ns)} of {ms(step_ns)} per step, waiting for data"
    if host_ns - felt_ns >= HIDDEN_WORTH * step_ns:
        text += f"; another {ms(host_ns - felt_ns)} of host wait is hidden behind its work"
    return (Evidence(text, "event", felt_ns / 1e6, "ms"),)


def _fetched(window: StepWindow) -> tuple[Evidence, ...]:
    """A wait for a batch that is made, and still has to be handed over by its worker: cheaper
    batches do not take all of it away."""
    places = [place for place in main_places(window) if fetches_tensors(place)]
    if share_where(places, fetches_tensors) < HANDED_OVER:
        return ()
    shown = place_evidence(places[0], "main-thread")
    return (replace(shown, text=f"{shown.text}: receiving a finished batch from a worker"),)


def explained(window: StepWindow, fed: Feeding) -> Explained:
    """The first explanation that applies; what the main thread does where none does."""
    for explanation in EXPLANATIONS:
        if (found := explanation(window, fed)) is not None:
            return found
    places = main_places(window)
    return Explained(None, named(places, "main-thread"), (cheaper(places[0] if places else None),))
