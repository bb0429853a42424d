"""Notes on PyTorch's settings and the GPU's memory."""

from collections.abc import Callable, Iterable

from ..attention_module import weights_thrown_away
from ..attention_parts import attention_from_parts, share_of_function
from ..broadcast_distances import by_all_differences
from ..code_places import (
    ATTENTION_CALL,
    checks_arguments,
    convolves,
    empties_cache,
    forward_of_net,
    main_places,
    multiplies,
    share_held,
    share_where,
)
from ..findings import EvidenceSource, Note
from ..format import cores, percent, size, times
from ..loader import SAME_UPDATE, micro_batches
from ..memory.trends import batch_room
from ..on_device import on_device
from ..place_names import by_user_function, call_at, file_of, path_of, place_name
from ..rules.gpu_work import many_convolve, products_seen
from ..rules.healthy import by_channels_last, more_threads, ranks_here
from ..rules.optimizer import nothing_faster
from ..rules.other_format import OtherFormat, other_format
from ..rules.sync import WITHOUT_CHECKS
from ..scoring import speedup_of
from ..stack_samples import FrameShare
from ..step_time import spent
from ..thresholds import causes as limits
from ..thresholds.gpu import MEMORY_FULL
from ..thresholds.hysteresis import ENTER_SHARE
from ..traced_places import traced
from ..window import StepWindow


def phase_share(window: StepWindow, phase: str) -> tuple[float, EvidenceSource]:
    """Part of the steps' time that a phase takes, 0 to 1, and by whose clock."""
    device = on_device(window)
    if device is not None:
        whole = sum(row.wall_ns for row in device.rows)
        part = sum(getattr(row, f"{phase}_ns") for row in device.rows)
        return part / max(1, whole), "event"
    whole = spent(window.steps).wall_ns
    return sum(getattr(row, f"{phase}_ns") for row in window.steps) / max(1, whole), "hook"


def sampled(window: StepWindow, which: Callable[[FrameShare], bool]) -> float:
    """Part of the training thread's samples in such places; 0 where that is too little."""
    share = share_where(main_places(window), which)
    return share if share >= limits.NOTE_SHARE else 0.0


def in_samples(share: float) -> str:
    """ "4% of main-thread samples"."""
    return f"{percent(share)} of main-thread samples"


def _first_at(places: Iterable[FrameShare], which: Callable[[FrameShare], bool]) -> str:
    """ " (train.py:31)", where the first such place is; "" where no line is named."""
    found = next((place for place in places if which(place)), None)
    frame = (found.caller or found.frame) if found is not None else ""
    _, bracket, position = frame.rpartition("(")
    return f" ({position}" if bracket else ""


def on_lines(
    window: StepWindow, which: Callable[[FrameShare], bool], what: str, instead: str
) -> Note | None:
    """A note on such lines, by their samples: what is done there, with the first of them, and what
    to do instead."""
    share = sampled(window, which)
    if not share:
        return None
    text = f"{what}{_first_at(main_places(window), which)}: {instead}"
    return Note(text, in_samples(share), "py-spy")


def channels_last(window: StepWindow) -> Note | None:
    """On a CPU, beside a cause that may be worth less: a super-resolution net was 1.38x as fast,
    and 1.12x with workers that persist, which was the verdict."""
    faster = other_format(window)
    if faster is not None and not faster.in_bf16:
        return _of_format(faster)
    instead = by_channels_last(window)
    if instead is None:
        return None
    return Note(instead, in_samples(share_where(forward_of_net(window), convolves)), "py-spy")


def in_bf16(window: StepWindow) -> Note | None:
    """On a CPU whose products were tried so, beside a cause that may be worth less: a crowd counter
    (CSRNet) gained 1.1x by a rarer evaluation, which was the verdict, and 1.5x by this."""
    faster = other_format(window)
    return _of_format(faster) if faster is not None and faster.in_bf16 else None


def merged_batches(window: StepWindow) -> Note | None:
    """On a CPU, where calling its operations is much of a step that accumulates gradients: a LoRA
    of 4,060 operations and 4 texts four times gained 2.2x by 16 at once (two cores)."""
    several, seen, total = micro_batches(window), traced(window), spent(window.steps)
    if several is None or seen is None or window.gpu_present or not total.wall_ns:
        return None
    net_ns = sum(row.forward_ns + row.backward_ns for row in window.steps)
    called_ns = min(limits.NET_NS_AN_OPERATION * seen.operations * total.steps, net_ns)
    gain = speedup_of(called_ns / total.wall_ns * (1 - 1 / several.count))
    if gain < speedup_of(ENTER_SHARE):
        return None
    text = f"about {times(gain)} by {several.merged}: {SAME_UPDATE}"
    cost = f"calling its {seen.operations:,} operations takes about "
    return Note(text, cost + f"{percent(called_ns / total.wall_ns)} of a step", "hook", gain=gain)


def _of_format(faster: OtherFormat) -> Note:
    gain = faster.forecast.speedup
    return Note(f"about {times(gain)} by {faster.line}", None, "hook", gain=gain)


def anomaly(window: StepWindow) -> Note | None:
    """It keeps a stack for every operation and looks for NaN after every node of the backward. How
    much of the backward that is, only a run without it would show."""
    if window.settings is None or not window.settings.anomaly:
        return None
    share, source = phase_share(window, "backward")
    return Note(
        "anomaly detection was left on: torch.autograd.set_detect_anomaly(False)",
        f"it slows the backward, {percent(share)} of each step",
        source,
    )


def deterministic(window: StepWindow) -> Note | None:
    """Some operations have slower kernels then, and fresh memory is filled. What that costs here,
    only a run without it would show."""
    if window.settings is None or not window.settings.deterministic:
        return None
    return Note(
        "deterministic algorithms only: torch.use_deterministic_algorithms(False), unless needed",
        None,
        "hook",
    )


def float64(window: StepWindow) -> Note | None:
    """Of data that NumPy made, mostly: the net was made to fit it, by `.double()`. Twice the bytes,
    and half the products of a vector; on most GPUs a 32nd or less of fp32's rate."""
    settings = window.settings
    if settings is None or settings.parameter_dtype != "float64":
        return None
    phases = [phase_share(window, name) for name in ("forward", "backward", "optimizer")]
    whole = percent(min(1.0, sum(share for share, _ in phases)))
    text = "parameters are float64, half as fast as float32 at best: model.float(), and batches "
    text += "as float32"
    return Note(text, f"forward, backward and update take {whole} of each step", phases[0][1])


def emptied_cache(window: StepWindow) -> Note | None:
    """It waits for the GPU and gives back what the next step asks for again. Between two phases of
    a program it is no smell; then hardly a sample meets it."""
    what, instead = "torch.cuda.empty_cache() in the loop", "PyTorch reuses its cached memory"
    return on_lines(window, empties_cache, what, instead)


def checked_distributions(window: StepWindow) -> Note | None:
    """Each distribution that is made looks whether its arguments are valid, in a handful of small
    operations: without that an actor-critic was 1.16x as fast on two cores. Beside a GPU the host
    waits for each answer."""
    what = "distributions check their arguments in each step"
    return on_lines(window, _checks, what, WITHOUT_CHECKS)


def _checks(place: FrameShare) -> bool:
    return checks_arguments(place) or path_of(place.frame) == "torch/distributions/constraints.py"


def attention_in_steps(window: StepWindow) -> Note | None:
    """A dozen launches for each head or layer, and a matrix of scores that is written and read
    between them. A small GPT on an H200, head by head: 1.42x by PyTorch's one kernel. With dropout
    a CPU has none. PyTorch's own module does so for weights that nobody looks at."""
    places = main_places(window) if window.gpu_present else ()
    found = attention_from_parts(places)
    if thrown_away := weights_thrown_away(places, window.settings):
        text = "attention makes weights that nobody looks at, in "
        text += f"{place_name(by_user_function(thrown_away)[0])}: with need_weights=False "
        text += "scaled_dot_product_attention does it in one kernel"
        return Note(text, f"{in_samples(share_held(thrown_away))} are in it", "py-spy")
    if found is None:
        return None
    text = f"attention is computed step by step, {call_at(found, ATTENTION_CALL)}: "
    text += "F.scaled_dot_product_attention does it in one kernel"
    cost = f"{in_samples(share_of_function(places, found))} are in its function"
    return Note(text, cost, "py-spy")


def all_differences(window: StepWindow) -> Note | None:
    """Beside a GPU samples show that a line is there, and not what its kernels take: a VQ-VAE on an
    H200 was 3.4x as fast by a product of matrices."""
    found = by_all_differences(main_places(window)) if window.gpu_present else []
    if not found:
        return None
    text = "distances are summed of all differences, in "
    text += f"{place_name(by_user_function(found)[0])}: torch.cdist, or a product of matrices, "
    text += "makes no tensor of these"
    return Note(text, f"{in_samples(share_held(found))} are there", "py-spy")


def kept_gradients(window: StepWindow) -> Note | None:
    """Filling writes them, and the backward then reads, adds and writes again what it could have
    put there."""
    settings = window.settings
    if settings is None or settings.set_to_none is not False:
        return None
    text = "gradients are zeroed, not dropped: zero_grad(set_to_none=True), the default"
    held = settings.parameter_bytes
    cost = f"{size(held)} are zeroed and added to in each step" if held else None
    return Note(text, cost, "hook")


def memory_full(window: StepWindow) -> Note | None:
    """Full memory is no cause of slow steps, but the next longer batch may not fit."""
    room = batch_room(window)
    if room is None or room.full < MEMORY_FULL:
        return None
    text = f"the GPU's memory is {percent(room.full)} full at the peak of a step: "
    if room.activations >= room.kept:
        text += "activation checkpointing (torch.utils.checkpoint) frees most of "
        text += f"{size(room.activations)}; half the batch with gradient accumulation half of it"
    else:
        text += f"{size(room.kept)} are kept between steps: bf16 weights, an 8-bit or a sharded "
        text += "optimizer (FSDP)"
    retries = window.gpu_memory[-1].retries
    cost = f"{retries:,} allocations had to empty the cache first" if retries else None
    return Note(text, cost, "hook")


def one_by_one(window: StepWindow) -> Note | None:
    """On a GPU each tensor costs a dozen launches where all together would. PyTorch groups them by
    itself, so `foreach=False` was set."""
    settings = window.settings
    if settings is None or settings.foreach is not False or settings.fused:
        return None
    many = (settings.parameters or 0) >= limits.NOTE_TENSORS
    if not many or settings.parameter_device != "cuda":
        return None
    share, source = phase_share(window, "optimizer")
    name = settings.optimizer or "the optimizer"
    text = f"{name}(foreach=False) updates {settings.parameters} tensors one by one: drop it"
    return Note(text, f"the optimizer takes {percent(share)} of each step", source)


def costly_update(window: StepWindow) -> Note | None:
    """A large part of each step that no setting makes faster: what is left is another training."""
    share, source = phase_share(window, "optimizer")
    why = nothing_faster(window)
    if why is None or share < ENTER_SHARE:
        return None
    text = f"{why}: only fewer updates take less, larger batches or gradients accumulated over some"
    return Note(text, f"the optimizer takes {percent(share)} of each step", source)


def one_thread(window: StepWindow) -> Note | None:
    """Of use only to a net that computes on the CPU, and where no other process needs the cores."""
    settings, machine = window.settings, window.machine_cpu_percent
    if settings is None or settings.threads != 1 or settings.parameter_device != "cpu":
        return None
    more, ranks = more_threads(window), ranks_here(window)
    if window.cores is None or more is None or machine is None:
        return None
    if machine >= 100 * limits.IDLE_CORES:
        return None
    idle = (1 - machine / 100) * window.cores
    each = f" for each of {ranks} ranks" if ranks > 1 else ""
    text = f"one thread{each} on {cores(window.cores)}: torch.set_num_threads({more})"
    return Note(text, f"{idle:.1f} of them are idle", "proc")


def profiler(window: StepWindow) -> Note | None:
    """It records every operation, and what that costs in C only a run without it would show."""
    if window.settings is None or not window.settings.profiler:
        return None
    text = "a profiler of the program's own records every operation: torch.profiler in a few steps "
    return Note(text + "only, with schedule(…, repeat=1)", None, "hook")


def scaler(window: StepWindow) -> Note | None:
    """bfloat16 has the range of fp32, so nothing has to be scaled. The scaler multiplies and checks
    every gradient and, unless the optimizer is fused, waits for the answer before each step. With
    float16 it is needed; there bfloat16 would do without."""
    settings = window.settings
    if settings is None or not settings.scaler:
        return None
    if settings.autocast == "bfloat16" or settings.parameter_dtype == "bfloat16":
        text = "a GradScaler with bfloat16, which needs none: GradScaler(enabled=False)"
    elif settings.autocast == "float16" and (settings.capability or 0) >= limits.TF32_CAPABILITY:
        text = "autocast to float16 needs its GradScaler, torch.bfloat16 does without"
    else:
        return None
    if share := sampled(window, _scales):
        return Note(text, f"{in_samples(share)} are in it", "py-spy")
    on_gpu = settings.parameter_device == "cuda"
    waits = "the host waits for the GPU before each optimizer step"
    return Note(text, waits if on_gpu and not settings.fused else None, "hook")


def _scales(place: FrameShare) -> bool:
    return file_of(place.frame) == "grad_scaler.py"


def tf32(window: StepWindow) -> Note | None:
    """Matrix products of fp32 use the tensor cores only as tf32, which Ampere and later devices
    have. A product must have been seen; where there are counters, the fp32 units must be at work
    and the tensor cores rest."""
    settings, activity = window.settings, window.activity
    if settings is None or settings.matmul_precision != "highest" or settings.autocast:
        return None
    if settings.parameter_dtype != "float32" or settings.parameter_device != "cuda":
        return None
    if (settings.capability or 0) < limits.TF32_CAPABILITY:
        return None
    products = [place for place in main_places(window) if multiplies(place)]
    if not products_seen(window) or (settings.cudnn_tf32 is not False and many_convolve(products)):
        return None
    text = 'fp32 products without tensor cores: torch.set_float32_matmul_precision("high")'
    if activity is None or activity.fp32 is None or activity.tensor is None:
        return Note(text, None, "hook")
    if activity.fp32 < 100 * limits.NOTE_FP32 or activity.tensor >= 100 * limits.NOTE_SHARE:
        return None
    cost = f"fp32 units are at work {percent(activity.fp32 / 100)} of the time, "
    cost += f"tensor cores {percent(activity.tensor / 100)}"
    return Note(text, cost, "gpm")
