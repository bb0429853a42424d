"""What a step waits for its data while the GPU has nothing to do, and what else the loader takes
between two epochs."""

from math import inf

from .code_places import ends_workers, evaluates, frees_batch, share_seen
from .on_device import OnDevice, on_device
from .pauses import epoch_parts, shared_starts, starts_of_workers
from .stack_samples import FrameShare
from .statistics import Share
from .step_time import spent
from .window import StepWindow


def exposed_wait(window: StepWindow) -> float:
    """Part of the time in which the GPU idles while the step waits for data, start-up included."""
    whole = spent(window.steps).wall_ns
    return sum(exposed_parts(window)) / whole if whole > 0 else 0.0


def exposed_parts(window: StepWindow) -> list[int]:
    """That wait in each row of the window, ns. Without the GPU's clock what the host waits. While
    an evaluation's workers start the GPU has nothing to do."""
    device = on_device(window)
    if device is None:
        starts = epoch_parts(window) or starts_of_workers(window)
        return [row.data_ns + start for row, start in zip(window.steps, starts, strict=True)]
    longest_ns, behind_ns = _longest_measured(device)
    parts: list[int] = []
    for row, shared_ns in zip(window.steps, shared_starts(window), strict=True):
        wait_ns = row.data_ns + row.startup_ns
        exposed_ns = round(device.exposed_share * wait_ns)
        if wait_ns > row.count * longest_ns:
            exposed_ns = max(exposed_ns, wait_ns - row.count * behind_ns)
        parts.append(exposed_ns + shared_ns)
    return parts


def _longest_measured(device: OnDevice) -> tuple[float, int]:
    """The longest wait of a measured step, ns, and how far the GPU was ever behind the host: of one
    that is longer the rest is exposed. One step in so many is measured, and of slow batches now and
    then it may be none. An endless one where the clocks are not aligned."""
    lags = [(row.lag_start_ns, row.lag_optimizer_ns, row.lag_backward_ns) for row in device.rows]
    behind_ns = max((lag for row in lags for lag in row if lag is not None), default=None)
    if device.abstains or behind_ns is None:
        return inf, 0
    # Of merged steps all may be one step's.
    return max(row.host_wait_ns for row in device.rows), behind_ns


def worker_ends(window: StepWindow) -> Share:
    """Part of the time in which the loader's workers are ended: the training thread waits for them,
    between two epochs. Those of an evaluation are in its part, or in the loader's start-up."""
    return share_seen(window, ends_its_workers)


def given_back(window: StepWindow) -> Share:
    """Part of the time in which the training thread gives the last batch's memory back, as it takes
    the next."""
    return share_seen(window, frees_batch)


def loader_ends(window: StepWindow) -> Share:
    """Both: the loader's, though no fetch waits for them."""
    return share_seen(window, lambda place: ends_its_workers(place) or frees_batch(place))


def ends_its_workers(place: FrameShare) -> bool:
    """The loader ends its workers there, and not those of an evaluation."""
    return ends_workers(place) and not evaluates(place)
