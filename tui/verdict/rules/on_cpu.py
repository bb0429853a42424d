"""CPU tensors in a GPU's training."""

from dataclasses import replace

from ..findings import Evidence, Finding
from ..forecast.interval import at_least
from ..format import percent, size
from ..gpu_clock import crosses_to_host, sent_bytes
from ..idle_ledger import idle_ledger
from ..loader import loader_floor
from ..on_device import counted_by
from ..scoring import cause, speedup_of
from ..statistics import without_rows
from ..thresholds.hysteresis import CONTRIBUTOR
from ..window import StepWindow


def on_cpu(window: StepWindow) -> Finding | None:
    """An embedding that was left on the host, its lookups and what is concatenated with them: all
    that the GPU idles for within the phases. How much of it is launching nobody knows, so that the
    forecast is a lower one, of half of it (DeepSDF on an H200, its latent codes on the CPU: 7.2x by
    taking them to the GPU)."""
    ledger, settings, activity = idle_ledger(window), window.settings, window.activity
    if ledger is None or settings is None or activity is None or not crosses_to_host(window):
        return None
    share, left = ledger.shares["host"], settings.host_parameters
    if share < CONTRIBUTOR:
        return None
    sent = sent_bytes(window)
    text = f"{size(round(sent))} a step come back from the GPU over PCIe"
    found = cause(
        "host",
        None,
        without_rows(share),
        f"the step computes on the CPU, and the GPU waits for it {percent(share)} of the time",
        (
            Evidence(f"{left} of {settings.parameters} parameters are on the CPU", "hook"),
            Evidence(text, counted_by(activity), sent),
        ),
        (
            f"move the parameters on the CPU ({left} of {settings.parameters}) to the GPU, "
            "with their inputs",
        ),
        loader_floor(window),
    )
    return replace(found, forecast=at_least(speedup_of(share / 2)))
