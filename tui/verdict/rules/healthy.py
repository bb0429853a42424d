"""Nothing wrong, and what the limit is then."""

from collections.abc import Sequence
from dataclasses import replace
from typing import Final

from ...steps import Step
from ..code_loops import looped_cells, looped_parts
from ..code_places import (
    convolves,
    forward_of_net,
    main_places,
    multiplies,
    share_held,
    share_where,
    unmarked_fetches,
)
from ..findings import Evidence, Finding
from ..format import cores, percent
from ..own_operations import own_operations
from ..place_names import function_of, place_evidence
from ..scoring import state
from ..step_time import paused_of, spent
from ..thresholds.causes import IDLE_CORES, LARGE_PART_OF_NET, MOST_OF_IT
from ..thresholds.hysteresis import CONTRIBUTOR, ENTER_SHARE
from ..window import StepWindow
from .double_precision import FLOAT32
from .other_format import (
    BF16_LINE,
    CHANNELS_LAST_LINE,
    other_format,
    tried_formats,
    tried_words,
)
from .small_operations import SmallOperations, lstm_cells, small_operations

BF16_FROM_NS: Final = 250_000
"""Forward and backward of an operation. Two cores with AVX512-BF16, torch 2.13, from 1 ms on:
products of 1,024 1.9x, transformers of 256 and 128 1.5x and 1.6x, an LSTM 1.4x, convolutions 1.4x,
1.4x and 2.2x, but those of one image at a time 1.0x; at half of one a transformer of 96 1.1x; at
0.1 products of 256 by 64 rows 0.9x. Of public scripts a GAN at 0.36 ms 1.4x, others at 0.27, 0.42,
0.56 and 1.0 ms 1.3x, 1.0x, 1.5x and 0.9x; at 0.02 to 0.09 ms 0.7x, 0.7x and 1.1x."""
BF16: Final = (
    f"{BF16_LINE}: this CPU multiplies bf16 natively "
    "(1.4 to 2.2x in seven nets; 0.9 to 2.1x in seven public scripts, 1.3x in the middle)"
)


GAINS_LARGE_CELLS: Final = "1.0 to 2.9x for cells of 256 and more, most with batches of 16 and 32"
"""Forward and backward of 20 to 40 steps on one and two cores (torch 2.13): cells of 256 by 32 rows
1.3 and 1.5x, by 64 1.0 and 1.2x, by 128 0.95 and 1.6x; of 512 by 16 2.4 and 2.9x, by 64 1.3 and
1.1x; of 1,024 by 32 1.4 and 2.1x. Of 64 and 128, whose loop is a cause, 2.0 to 5.7x."""
GAINS_OTHER_CELLS: Final = "1.05 to 1.6x"
"""GRU's 1.05 to 1.25x and RNN's 1.2 to 1.6x on two cores; REINVENT's three layers of GRU cells 1.2
and 1.6x. Their layers are loops on a CPU as well."""
MORE_AT_ONCE: Final = (
    "more samples in a batch, or sequences side by side: as many operations, with more in each"
)
"""A neural Turing machine that learns from one sequence at a time, in 1,400 operations of 25 us on
two cores: eight at once are 3.4 to 4.4 times as fast."""
LOOK: Final = "whether it must be done in each step, for all of it, is what to look at next"
CHANNELS_LAST: Final = (
    f"{CHANNELS_LAST_LINE}: the CPU's convolutions need not order their channels anew ({{gains}})"
)
"""One core with AVX512, torch 2.14, fp32: 1.0 to 1.2x in 13 nets (ResNets, VGG, U-Nets, DnCNN,
DCGAN, SqueezeNet, DenseNet, LeNet), 1.7x with 8 and 16 channels; MobileNet 1.7x, EfficientNet 1.4x,
ShuffleNet 1.3x; beside InstanceNorm 0.7x. In 26 public scripts on two cores 0.95 to 1.36x (seven
ResNets 0.98 to 1.36x, a DenseNet and FlowNet 0.95x), 1.13x at the median."""
GAINS: Final = "1.1x in the middle of 26 scripts, 1.2 to 1.4x in 11 of them, 0.95x at the least"
GAINS_DEPTHWISE: Final = "1.3 to 1.7x in three nets with depthwise ones"


def healthy(window: StepWindow) -> Finding | None:
    """For runs without a GPU: no cause is above the threshold.

    Always `healthy`, never `compute`. On a CPU a run with nothing wrong *is* one whose step is
    forward and backward: no clock here separates a net that is as fast as it can be from one that
    could be smaller, so a second name would only be a guess. The evidence says what the limit is.
    """
    if window.gpu_present:
        return None
    rows = window.steps
    wall = max(1, spent(rows).wall_ns)
    compute = min(1.0, sum(row.forward_ns + row.backward_ns for row in rows) / wall)
    waits = min(1.0, sum(row.data_ns for row in rows) / wall)
    paused = min(1.0, sum(map(paused_of, rows)) / wall)
    inference = bool(rows) and rows[-1].inference
    model, takes = ("the forward pass", "takes") if inference else ("forward and backward", "take")
    if not inference and not any(row.optimizer_steps for row in rows):
        model = "forward, backward and an update by hand"
    evidence = [Evidence(f"{model} {takes} {percent(compute)} of the time", "hook", compute)]
    if window.sees_loading:
        evidence.append(Evidence(f"waiting for data takes {percent(waits)}", "hook", waits))
    else:
        seen = unmarked_fetches(window)
        text = f"no loader seen: {percent(seen.mean)} of the samples are beside the net, the "
        text += f"backward and the update (at most {percent(seen.high)} of the time)"
        evidence.append(Evidence(text, "py-spy", seen.mean))
    if paused >= 0.005:
        text = f"evaluation, checkpoints and compilation take {percent(paused)}"
        evidence.append(Evidence(text, "hook", paused))
    own = own_operations(window, LARGE_PART_OF_NET)
    line = _one_line_of_net(window)
    evidence += line or (() if own is None else (place_evidence(own, "main-thread"),))
    advice: list[str] = []
    if window.host.main_cpu_percent is not None:
        used = window.host.main_cpu_percent / 100
        of = f" of {cores(window.cores)}" if window.cores else ""
        text = f"the training process uses {used:.1f}{of}"
        evidence.append(Evidence(text, "proc", window.host.main_cpu_percent, "%"))
        machine = window.machine_cpu_percent
        idle = machine is not None and machine < 100 * IDLE_CORES
        more = more_threads(window)
        if idle and window.cores and more is not None and used < IDLE_CORES * window.cores:
            advice.append(
                f"cores are idle: torch.set_num_threads({more}) or OMP_NUM_THREADS may help a "
                "large net"
            )
    loop = looped_parts(window)
    if loop is not None and loop.holds_most:
        advice.append(
            f"{loop.instead}: calling it takes longer than its arithmetic where the parts are small"
        )
    if (instead := _instead_of_cells(window)) is not None:
        advice.append(instead)
    called = small_operations(window)
    if called is not None and called.share.low >= ENTER_SHARE:
        text = f"{called.count:,} operations in a step take {called.each_ns / 1e3:.0f} us each: "
        text += f"calling them takes about {percent(called.share.mean)} of the step"
        evidence.insert(1, Evidence(text, "hook", float(called.count)))
        advice.append(MORE_AT_ONCE)
    held_back = window.host.cpu_throttled or 0.0
    if held_back >= CONTRIBUTOR and window.cores:
        text = f"its CPU quota of {cores(window.cores)} throttles it {percent(held_back)} of the "
        evidence.append(Evidence(text + "time", "proc", held_back))
        advice.append(
            "raise the quota (cgroup cpu.max, or the container's --cpus), or use no more threads "
            f"than it allows: torch.set_num_threads({max(1, int(window.cores))})"
        )
    if window.settings is not None and window.settings.parameter_dtype == "float64":
        advice.insert(0, f"{FLOAT32}: vectors of twice as many numbers, and half the bytes")
    elif _gains_by_bf16(window, called):
        advice.append(BF16)
    if (instead := by_channels_last(window)) is not None:
        advice.append(instead)
    faster = other_format(window)
    if faster is not None:
        advice.insert(0, faster.line)
    if (tried := tried_formats(window)) is not None and (text := tried_words(tried)):
        evidence.insert(1, Evidence(text, "hook", tried.part))
    if own is not None:
        advice.append(f"{own.frame} computes {percent(own.share)} of the time by itself: {LOOK}")
    headline = f"no cause above {percent(ENTER_SHARE)}"
    if paused >= ENTER_SHARE:
        headline += f", but one {_longest_pause(rows)} so far took {percent(paused)}"
    elif compute >= MOST_OF_IT:
        headline += f": {model} {'is' if inference else 'are'} the limit"
    if faster is not None:
        headline += f", faster in {faster.name}"
    found = state("healthy", None, "info", headline, tuple(evidence), tuple(advice))
    return found if faster is None else replace(found, forecast=faster.forecast)


def more_threads(window: StepWindow) -> int | None:
    """As many as there are cores, or as a rank's part of them allows where others run beside it;
    None where it has so many by now."""
    most = int((window.cores or 1.0) / ranks_here(window))
    now = window.settings.threads if window.settings is not None else None
    return None if most < 2 or (now is not None and now >= most) else most


def ranks_here(window: StepWindow) -> int:
    """Ranks of the job on this host; all of it where that is not known."""
    here = len(window.job.ranks) if window.job is not None else 0
    return max(1, here or window.world_size)


def _instead_of_cells(window: StepWindow) -> str | None:
    loop = looped_cells(window)
    if loop is None or loop.in_net.low < CONTRIBUTOR:
        return None
    if lstm_cells(window) is not None:
        return f"{loop.instead} ({GAINS_LARGE_CELLS})"
    return None if loop.cell == "LSTM" else f"{loop.instead} ({GAINS_OTHER_CELLS})"


def _gains_by_bf16(window: StepWindow, called: SmallOperations | None) -> bool:
    """Products in float32 without autocast, in operations that are large. By samples, where there
    are any: transforms, sorting and embeddings gain nothing."""
    settings = window.settings
    if settings is None or called is None or called.each_ns < BF16_FROM_NS:
        return False
    if tried_formats(window) is not None:
        return False
    if settings.autocast != "" or settings.parameter_dtype != "float32":
        return False
    inside = forward_of_net(window)
    products = share_where(inside, multiplies)
    if inside and products <= MOST_OF_IT * share_where(inside, lambda _: True):
        return False
    return settings.cpu_bf16 is True


def by_channels_last(window: StepWindow) -> str | None:
    """The advice, with what it gave in nets whose forward is mostly convolutions, as this one's is
    by samples; None for others, beside InstanceNorm, which has no kernel for that order, beside
    layers that oneDNN may break in it, on a GPU, and once it has been tried."""
    settings = window.settings
    if tried_formats(window) is not None:
        return None
    inside = forward_of_net(window)
    if window.gpu_present or settings is None or not settings.filters or not inside:
        return None
    if settings.breakable_filters:
        return None
    if share_where(inside, convolves) <= MOST_OF_IT * share_held(inside):
        return None
    if any(function_of(one.frame) == "instance_norm" for one in inside):
        return None
    depthwise = settings.depthwise_filters or 0
    gains = GAINS_DEPTHWISE if depthwise > max(1, settings.filters) else GAINS
    return CHANNELS_LAST.format(gains=gains)


def _one_line_of_net(window: StepWindow) -> tuple[Evidence, ...]:
    """The place in the net that surely holds more than a quarter of the time: a net that is the
    limit may still be one line (`F.dropout` of a graph's 1,433 features a node: 72 % of a GCN)."""
    stacks = window.stacks
    inside = [place for place in main_places(window) if place.phase == "forward"]
    if stacks is None or not inside:
        return ()
    most = max(inside, key=lambda place: place.share)
    if stacks.seen([most]).low < LARGE_PART_OF_NET:
        return ()
    return (place_evidence(most, "main-thread"),)


def _longest_pause(rows: Sequence[Step]) -> str:
    """What a pause is mostly; of one that came once nobody knows how often it will."""
    ns = {
        "evaluation": sum(row.evaluation_ns for row in rows),
        "checkpoint": sum(row.checkpoint_ns for row in rows),
        "compilation": sum(row.compile_ns for row in rows),
    }
    return max(ns, key=ns.__getitem__)
