"""What a GPU's training computes on the CPU: an embedding whose parameters were left there, with
all that is looked up in it, concatenated with it, and taken to the GPU and back in every step."""

from .step_time import spent
from .thresholds.causes import CROSSING_BACK, CROSSING_BYTES
from .window import StepWindow


def crosses_to_host(window: StepWindow) -> bool:
    """Parameters lie on the CPU beside a net on the GPU, and their gradients come back over the
    link in each step: what the GPU waits for then is no launch. A checkpoint crosses it too, so
    that a window that holds one shows nothing."""
    settings, activity = window.settings, window.activity
    if settings is None or not settings.host_parameters or settings.parameter_device != "cuda":
        return False
    if activity is None or any(row.checkpoint_ns for row in window.steps):
        return False
    received, sent = activity.pcie_rx_mb_s or 0.0, activity.pcie_tx_mb_s or 0.0
    return sent >= CROSSING_BACK * received and sent_bytes(window) >= CROSSING_BYTES


def sent_bytes(window: StepWindow) -> float:
    """Bytes over the link from the GPU to the host in a step; 0 where nobody counts them."""
    activity, total = window.activity, spent(window.steps)
    if activity is None or activity.pcie_tx_mb_s is None or not total.steps:
        return 0.0
    return activity.pcie_tx_mb_s * 1e6 * total.wall_ns / 1e9 / total.steps
