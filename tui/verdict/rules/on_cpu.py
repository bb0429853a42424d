"""CPU tensors in a GPU's training."""

from dataclasses import replace

from ..findings import Evidence, Finding
from ..forecast.interval import at_least
from ..format import percent, size
from ..gpu_clock import sent_bytes
from ..idle_ledger import idle_ledger
from ..loader import loader_floor
from ..on_device import counted_by
from ..scoring import cause, speedup_of
from ..statistics import without_rows
from ..thresholds.hysteresis import CONTRIBUTOR
from ..window import StepWindow


def on_cpu(window: StepWindow) -> Finding | None:
    """An embedding that was left on the host, its lookups and what is concatenated with them: what
    the GPU idles for within the phases, as far as the bytes that come back explain it. How much of
    that is launching nobody knows, so that the forecast is a lower one, of half of it (DeepSDF on
    an H200, its latent codes on the CPU: 5.6 and 7.2x by taking them to the GPU)."""
    ledger, settings, activity = idle_ledger(window), window.settings, window.activity
    if ledger is None or settings is None or activity is None:
        return None
    share, left = ledger.crossing, settings.host_parameters
    if share < CONTRIBUTOR:
        return None
    sent, every = sent_bytes(window), settings.parameters or 0
    which = f"{left} of {every} parameters" if every > (left or 0) else f"{left} parameters"
    text = f"{size(round(sent))} a step come back from the GPU over PCIe"
    found = cause(
        "host",
        None,
        without_rows(share),
        f"the step computes on the CPU, and the GPU waits for it {percent(share)} of the time",
        (
            Evidence(f"{which} are on the CPU", "hook"),
            Evidence(text, counted_by(activity), sent),
        ),
        (f"move what is on the CPU ({which}) to the GPU, with its inputs",),
        loader_floor(window),
    )
    return replace(found, forecast=at_least(speedup_of(share / 2)))
