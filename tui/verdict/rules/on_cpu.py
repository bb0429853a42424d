"""CPU tensors in a GPU's training, and a training on the CPU beside a GPU."""

from dataclasses import replace

from ..code_places import evaluates, fetches, main_places, share_seen
from ..findings import Evidence, Finding
from ..forecast.gain import gain_on_device
from ..forecast.interval import at_least
from ..forecast.replay import ISSUING
from ..format import ms, percent, size
from ..gpu_clock import computing, crossing, made_on_host, sent_bytes, too_long_to_launch
from ..idle_ledger import computed_for_gpu, idle_ledger
from ..loader import loader_floor
from ..on_device import counted_by
from ..place_names import by_user_function, place_evidence, place_name
from ..scoring import cause, speedup_of
from ..stack_samples import FrameShare
from ..statistics import at_most, beyond, without_rows
from ..step_time import spent
from ..thresholds import causes as limits
from ..thresholds.hysteresis import CONTRIBUTOR
from ..traced_places import shown, traced_forward
from ..window import StepWindow


def on_cpu(window: StepWindow) -> Finding | None:
    """An embedding that was left on the host, its lookups and what is concatenated with them: what
    the GPU idles for within the phases, as far as the bytes that come back explain it. How much of
    that is launching nobody knows, so that the forecast is a lower one, of half of it (DeepSDF on
    an H200, its latent codes on the CPU: 5.6 and 7.2x by taking them to the GPU)."""
    ledger, settings, activity = idle_ledger(window), window.settings, window.activity
    if ledger is None or settings is None or activity is None:
        return None
    share, left = min(ledger.computed, crossing(window)), settings.host_parameters
    if share < CONTRIBUTOR:
        return None
    sent, every = sent_bytes(window), settings.parameters or 0
    which = f"{left} of {every} parameters" if every > (left or 0) else f"{left} parameters"
    text = f"{size(round(sent))} a step come back from the GPU over PCIe"
    found = cause(
        "host",
        None,
        without_rows(share),
        _headline(share),
        (
            Evidence(f"{which} are on the CPU", "hook"),
            Evidence(text, counted_by(activity), sent),
        ),
        (f"move what is on the CPU ({which}) to the GPU, with its inputs",),
        loader_floor(window),
    )
    return replace(found, forecast=at_least(speedup_of(share / 2)))


def beside_gpu(window: StepWindow) -> Finding | None:
    """Tensors of the user's own code that never were on the GPU, as a tree of points for each
    batch: the GPU is busy for too little of the time for launches to be what the host does within
    the phases. What a better way leaves of that nobody knows: the forecast is a lower one (KD-Net
    on an H200, 96 %: 41x by a tree in NumPy, 16x by the loader's workers)."""
    ledger, activity = idle_ledger(window), window.activity
    if ledger is None or activity is None or activity.busy is None:
        return None
    share = at_most(too_long_to_launch(window, ledger.dry), ledger.computed)
    if share.low < CONTRIBUTOR or crossing(window) >= CONTRIBUTOR:
        return None
    where = by_user_function(filter(computing, main_places(window)))
    least = percent(share.mean / limits.LAUNCHING_OF_BUSY)
    text = f"GPU busy {activity.busy:.1f}% of the time: launches would make it ≥ {least}"
    found = cause(
        "host",
        None,
        share,
        _headline(share.mean),
        (
            Evidence(text, counted_by(activity), activity.busy, "%"),
            place_evidence(where[0], "main-thread"),
        ),
        (
            "do it in NumPy, in the loader's workers, or once for all epochs; or on the GPU, in "
            f"one tensor expression: {place_name(where[0])}",
        ),
        loader_floor(window),
    )
    least_gain = speedup_of(limits.ELSEWHERE_GIVES * share.low)
    return replace(found, forecast=at_least(min(found.speedup or least_gain, least_gain)))


def traced_on_cpu(window: StepWindow) -> Finding | None:
    """Operations on tensors of the CPU in the step of a net on the GPU, as rays of a whole picture
    of which a few are used: a traced step has their time and their line. On the GPU they take a few
    launches. What holds no data is the copies' (`h2d`)."""
    seen, share = traced_forward(window), computed_for_gpu(window)
    computed = None if seen is None else seen.on_host
    if seen is None or computed is None or share.mean < CONTRIBUTOR:
        return None
    if crossing(window) >= CONTRIBUTOR or made_on_host(window) is not None:
        return None
    at = shown(computed.place)
    text = f"{computed.operations:,} of {seen.operations:,} operations of a traced step are on "
    text += f"tensors of the CPU, {ms(1e3 * computed.us)}{at and f', most in {at}'}"
    where = at and f": {at}"
    return cause(
        "host",
        None,
        share,
        _headline(share.mean),
        (Evidence(text, "hook", computed.us / 1e3, "ms"),),
        (f"make these tensors on the GPU, with device=..., or once for all steps{where}",),
        loader_floor(window),
        gain_on_device(window),
    )


def beside_unused_gpu(window: StepWindow) -> Finding | None:
    """All of the net is on the CPU, and there is a GPU. That leaves the launches of its operations;
    how much less is not known before, so that the forecast is a lower one, of half of what goes.
    On an H200 beside 16 cores a step of 9 ms with convolutions became 3.3 times as fast, one of
    541 ms with attention 54 times, a graph's auto-encoder 5.8 times; two small layers in 0.7 ms
    lost (0.5x), three in 1.5 ms did not gain (1.1x): for those nothing is reported. No more than
    the marked phases take: a policy that is asked for one action at a time has none of its calls
    in the graph."""
    settings, total = window.settings, spent(window.steps)
    if not window.gpu_unused or settings is None or not settings.graph_nodes:
        return None
    phases_ns = sum(row.forward_ns + row.backward_ns + row.optimizer_ns for row in window.steps)
    seen = at_most(share_seen(window, _computes), phases_ns / max(1, total.wall_ns))
    nodes = settings.graph_nodes * window.passes
    launching = nodes * limits.LAUNCHED_NODE_NS * total.steps / max(1, total.wall_ns)
    share = beyond(seen, launching)
    if share.low < CONTRIBUTOR:
        return None
    text = f"the {settings.parameters} tensors that are trained are on the CPU"
    found = cause(
        "compute",
        "unused-gpu",
        share,
        f"the net is on the CPU, where it takes {percent(seen.mean)} of each step, and the GPU is "
        "not used",
        (Evidence(text, "hook"), Evidence("the process has nothing on a GPU", "nvml")),
        ('move it to the GPU: model.to("cuda"), and each batch with .to("cuda")',),
        loader_floor(window),
    )
    return replace(found, forecast=at_least(speedup_of(share.mean / 2)))


def _computes(place: FrameShare) -> bool:
    """Of a phase of the net's, but for what makes a batch or an evaluation."""
    return place.phase in ISSUING and not (fetches(place) or evaluates(place))


def _headline(share: float) -> str:
    return f"the step computes on the CPU, and the GPU waits for it {percent(share)} of the time"
