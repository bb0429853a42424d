"""Places in the code that samples name: what kind of place each is, and what part of the samples a
kind holds."""

import re
from collections.abc import Callable, Collection, Iterable, Sequence
from dataclasses import replace
from functools import lru_cache
from typing import Final

from .code_origin import NOWHERE
from .on_device import idle_of, keeps_up_ns, on_device
from .place_names import file_of, function_of, own_frame, path_of
from .stack_samples import FrameShare, StackPhase, Stacks
from .statistics import Share, error_of, of_samples, probability_above
from .syntax import compares_elements, selects_by_mask
from .thresholds import samples as limits
from .thresholds.causes import COPY_LEAST_MB_S
from .thresholds.gpu import LOOP_SHARE
from .thresholds.hysteresis import ENTER_SHARE
from .window import RunFacts

READ_CALL: Final = re.compile("|".join(limits.READ_LINES))
SYNC_CALL: Final = re.compile("|".join(limits.SYNC_LINES))
OF_ANY: Final = re.compile(limits.READS_OF_ANY)
OF_TENSORS: Final = re.compile(limits.READS_OF_TENSORS)
MAKING_CALL: Final = re.compile(limits.MAKING_LINES)
COPY_CALL: Final = re.compile("|".join(limits.COPY_LINES))
ATTENTION_CALL: Final = re.compile("|".join(limits.ATTENTION_LINES))
FOR_CALL: Final = re.compile(limits.FOR_LINES)
CLIP_CALL: Final = re.compile(r"\bclip_grad_(norm|value)_\(")
ZERO_CALL: Final = re.compile(r"\bzero_grad\(")
EMBEDDING_CALL: Final = re.compile(r"\bembed(ding)?(_bag|s)?\(")
PRODUCT_CALL: Final = re.compile("|".join(limits.PRODUCT_LINES))
CONVOLUTION: Final = re.compile(r"\bconv[123]d\(")
SHAPE_CALL: Final = re.compile("|".join(limits.SHAPE_LINES))
EMPTYING_CALL: Final = re.compile("|".join(limits.EMPTYING_LINES))
NUMPY_PRODUCT: Final = re.compile(
    r"\b(np|numpy)\.(dot|matmul|inner|vdot|tensordot|cov|corrcoef|linalg\.\w+)\("
)
_BLAS: Final = ("numpy/linalg/", "scipy/linalg/", "sklearn/")
_PYTORCH: Final = "torch/"
ARRAYS: Final = ("numpy/", "scipy/", "sklearn/", "skimage/", "pandas/", "PIL/", "cv2/", "networkx/")
"""Libraries that know no tensors."""
"""Frames name files from their package on. What runs in this one is a phase of its own."""


def reads(place: FrameShare) -> bool:
    """The thread waits for bytes there: by the function, or by what the user's line calls in C."""
    names = [function_of(place.frame)]
    if names[0] in ("sleep", "wait", "poll", "select") and place.caller:
        names.append(function_of(place.caller))
    if any(name in limits.READ_FRAMES for name in names):
        return True
    return calls(place, READ_CALL)


def at_own_line(place: FrameShare) -> bool:
    """Nothing is seen below the user's own frame there: it is at work itself, or a call into C."""
    return place.caller in (None, place.frame)


def calls(place: FrameShare, what: re.Pattern[str]) -> bool:
    """The user's line calls such a thing, and it is that call which takes the time: a call into C
    leaves no frame, so what is seen below the user's own frame is another call of the line."""
    return at_own_line(place) and bool(what.search(place.line))


def waits_for_gpu(place: FrameShare) -> bool:
    """The thread waits for the GPU there, if there is one: by the function, by what the user's
    line calls, or because a tensor is printed, or its elements are compared or selected by a mask.
    Inside a fetch it is the fetch that waits, inside a checkpoint the checkpoint."""
    if place.idle or place.phase in ("data", "checkpoint", "evaluation", "compile"):
        return False
    function, path = function_of(place.frame), path_of(place.frame)
    known = function in limits.SYNC_FRAMES or (path, function) in limits.SYNC_LOOPS
    printed = path.endswith("_tensor_str.py") or reads_elements(place) or selects(place)
    return known or printed or checks_arguments(place) or calls(place, SYNC_CALL)


def reads_elements(place: FrameShare) -> bool:
    """Elements of a tensor are compared there one by one, in a net, each of which is a kernel and a
    wait. (Where the GPU runs no such kernels, `main_places` has it as Python.)"""
    seen = place.in_net and place.phase != "other" and at_own_line(place)
    return seen and compares_elements(place.line)


def selects(place: FrameShare) -> bool:
    """A net takes there the elements that a mask says: the host needs to know how many."""
    return place.in_net and at_own_line(place) and selects_by_mask(place.line)


def checks_arguments(place: FrameShare) -> bool:
    """A distribution of PyTorch's looks there whether its arguments are valid."""
    return (path_of(place.frame), function_of(place.frame)) in limits.CHECKING_FRAMES


def fetches_tensors(place: FrameShare) -> bool:
    """The training thread opens the shared memory of a batch that a worker has made."""
    return function_of(place.frame).startswith(limits.HAND_OVER_FRAMES)


def copies_to_gpu(place: FrameShare) -> bool:
    """A batch goes to the GPU there, and not as a part of making it."""
    if place.makes:
        return False
    return place.copies or (place.phase != "data" and calls(place, COPY_CALL))


def replays_graph(place: FrameShare) -> bool:
    """A CUDA graph is replayed there, the program's own or one of torch.compile's. An optimizer
    asks in the first one's file as well, whether a graph is being captured."""
    path = path_of(place.frame)
    own = path == "torch/cuda/graphs.py" and function_of(place.frame) in limits.REPLAYING
    return own or path == "torch/_inductor/cudagraph_trees.py"


def empties_cache(place: FrameShare) -> bool:
    """The allocator's cache is emptied there."""
    named = function_of(place.frame) in ("empty_cache", "ipc_collect")
    return named or bool(EMPTYING_CALL.search(place.line))


def steps_one_by_one(place: FrameShare) -> bool:
    """An optimizer walks through its parameters there."""
    return "single_tensor" in function_of(place.frame)


def in_optimizer(place: FrameShare) -> bool:
    """Code of PyTorch's optimizers is at work there, and not what they call back."""
    return path_of(place.frame).startswith("torch/optim/")


def multiplies(place: FrameShare) -> bool:
    """Matrix products are issued there: by PyTorch's function or module, or in the line."""
    if function_of(place.frame) in limits.PRODUCT_FRAMES:
        return True
    return file_of(place.frame) in limits.PRODUCT_FILES or bool(PRODUCT_CALL.search(place.line))


def convolves(place: FrameShare) -> bool:
    """Convolutions are issued there: products that tf32 takes by a switch of cuDNN's own, or, one
    channel at a time, none at all."""
    return file_of(place.frame) == "conv.py" or bool(CONVOLUTION.search(place.line))


def embeds(place: FrameShare) -> bool:
    """Rows of an embedding are looked up there."""
    return function_of(place.frame) in ("embedding", "embedding_bag") or (
        file_of(place.frame) == "sparse.py" or bool(EMBEDDING_CALL.search(place.line))
    )


def drops_out(place: FrameShare) -> bool:
    """PyTorch draws there which elements to drop, each by itself."""
    return (path_of(place.frame), function_of(place.frame)) == limits.DROPOUT_FRAME


def recurs(place: FrameShare) -> bool:
    """A recurrent net, which walks through time, is at work there."""
    return file_of(place.frame) == "rnn.py"


def clips(place: FrameShare) -> bool:
    """Gradients are clipped there, which is part of the update."""
    return file_of(place.frame) == "clip_grad.py" or calls(place, CLIP_CALL)


def zeroes(place: FrameShare) -> bool:
    """Gradients are dropped, or filled with zeros, there: also in what wraps that call."""
    below = place.phase == "other" and in_pytorch(place)
    called = below and bool(ZERO_CALL.search(place.line))
    return called or function_of(place.frame) == "zero_grad" or calls(place, ZERO_CALL)


def in_collective(place: FrameShare) -> bool:
    """The thread waits there for other ranks: PyTorch's own calls of a process group."""
    return path_of(place.frame) in limits.COLLECTIVE_FILES


def asks_for_shape(place: FrameShare) -> bool:
    """The host needs a shape there that the GPU must compute first."""
    return calls(place, SHAPE_CALL) or selects(place)


def fetches(place: FrameShare) -> bool:
    """A batch is fetched or made there."""
    return place.phase == "data" and not place.ends_workers


def evaluates(place: FrameShare) -> bool:
    """An evaluation, or a rollout, is at work there."""
    return place.phase == "evaluation"


def ends_workers(place: FrameShare) -> bool:
    """The loader ends its workers there."""
    return place.ends_workers


def frees_batch(place: FrameShare) -> bool:
    """The line that takes the next batch of a loader, and no frame below it: the one before is
    given back there, which of memory that a worker shares is work for the kernel."""
    return place.phase == "data" and calls(place, FOR_CALL) and own_frame(place) is not None


def is_users(place: FrameShare) -> bool:
    """Python that is no phase's: not PyTorch's modules, loader, backward or optimizers."""
    return place.phase != "data" and place.frame != NOWHERE and not in_pytorch(place)


def in_pytorch(place: FrameShare) -> bool:
    """The innermost frame worth naming is PyTorch's."""
    return path_of(place.frame).startswith(_PYTORCH)


def multiplies_in_numpy(place: FrameShare) -> bool:
    """A product or a decomposition of matrices in NumPy, which BLAS makes on threads of its own."""
    return calls(place, NUMPY_PRODUCT) or path_of(place.frame).startswith(_BLAS)


def works_on_host(place: FrameShare) -> bool:
    """Python that launches nothing on the GPU, waits for nothing there and makes no batch: a
    logger's, a metric's, whatever the marks book it as. Lines that call torch are phases of it; a
    line of the user's own that could not be read may call it. What a library of arrays does in a
    net's hook, or in a backward, is none of theirs."""
    within_net = place.phase == "backward" or is_in_forward(place)
    if within_net and path_of(place.frame).startswith(ARRAYS):
        return not place.makes
    if place.phase not in ("other", "waiting") or not is_users(place) or clips(place):
        return False
    if at_own_line(place) and not place.line:
        return False
    return not (waits_for_gpu(place) or empties_cache(place) or copies_to_gpu(place))


def leaves_step(places: Collection[FrameShare]) -> Callable[[FrameShare], bool]:
    """Whether a line calls the user's own function in which the net runs, and no frame is below it:
    what is seen there is what that function leaves to be freed as it returns, the batch's graph."""
    net = [one for one in places if one.phase in ("forward", "backward") and own_frame(one)]
    names = {_own_function(one) for one in net}
    called = re.compile("|".join(rf"\b{re.escape(name)}\(" for name in sorted(names - {""})))
    return lambda one: bool(names) and calls(one, called)


def _own_function(place: FrameShare) -> str:
    return function_of(place.caller or place.frame)


def within(places: Iterable[FrameShare], phases: Collection[StackPhase]) -> tuple[FrameShare, ...]:
    """The places in these phases; those whose phase is not known too."""
    return tuple(one for one in places if one.phase is None or one.phase in phases)


BETWEEN: Final[frozenset[StackPhase]] = frozenset(
    ("other", "synchronisation", "waiting", "forward")
)
"""Phases whose time may be Python between them: a line that calls torch counts as forward."""
LAUNCHING: Final[frozenset[StackPhase]] = frozenset(("forward", "synchronisation"))
"""Of these what launches: Python that goes on with the result is the host's work."""


def share_where(places: Iterable[FrameShare], which: Callable[[FrameShare], bool]) -> float:
    """Sum of the shares of the places for which `which(place)` holds."""
    return share_held(place for place in places if which(place))


def share_held(places: Iterable[FrameShare]) -> float:
    """Sum of their shares."""
    return min(1.0, sum(place.share for place in places))


def share_seen(window: RunFacts, which: Callable[[FrameShare], bool]) -> Share:
    """The part of the training thread's samples in such places, with its 90 % interval; nothing,
    and nothing excluded, where samples are too few."""
    places = main_places(window)
    if window.stacks is None or not places:
        return Share(0.0, 0.0, 1.0)
    return window.stacks.seen([place for place in places if which(place)])


def share_beside_net(places: Collection[FrameShare]) -> float:
    """The part of the samples in functions of the user's own that launch and call no module: a
    metric, an update by hand. Nothing where no module was seen, or where they hold most of the
    launches: then they are the net."""
    launching = [one for one in places if one.phase in ("forward", "synchronisation")]
    nets = {_own_function(one) for one in launching if one.in_net}
    beside = [
        one
        for one in launching
        if at_own_line(one)
        and own_frame(one) is not None
        and _own_function(one) not in nets
        and not (one.in_net or copies_to_gpu(one) or empties_cache(one))
    ]
    share = sum(one.share for one in beside)
    most = LOOP_SHARE * sum(one.share for one in launching)
    return share if nets and share < most else 0.0


def unmarked_fetches(window: RunFacts) -> Share:
    """The most that making batches can take of a loop in which no mark shows it: samples in places
    that fetch by their name, and in Python of the user's own outside the net, the backward and the
    update, with the 90 % interval; all of it where samples are too few."""
    stacks = window.stacks
    if stacks is None or stacks.main_samples < limits.LEAST_STACKS:
        return Share(1.0, 0.0, 1.0)
    places = main_places(window)
    leaves = leaves_step(places)
    freed = share_where(places, lambda one: one.phase == "other" and leaves(one))
    part = share_where(places, fetches) + max(0.0, stacks.main_unplaced - freed)
    return of_samples(min(1.0, part), stacks.main_samples)


def fetching_unseen(window: RunFacts) -> float:
    """The chance that making batches, of which no mark tells, holds a cause's share."""
    most = unmarked_fetches(window)
    return probability_above(most.mean, error_of(most.mean, most.low, most.high), ENTER_SHARE)


@lru_cache(maxsize=4)
def main_places(window: RunFacts) -> tuple[FrameShare, ...]:
    """Where the training thread was, if samples are enough to say. Lines that the text alone takes
    for copies or for reads, and that the GPU knows nothing of, are Python."""
    places = _enough(window.stacks, main=True)
    made, compared = _made_of_numbers(window, places), _without_kernels(window, places)
    read = _read_of_no_gpu(window, places)
    return tuple(
        replace(one, phase="other", makes=one.makes or one in made, idle=one in read)
        if one in made or one in compared or one in read
        else one
        for one in places
    )


def _made_of_numbers(window: RunFacts, places: Sequence[FrameShare]) -> list[FrameShare]:
    """Lines that make a tensor of Python's numbers and copy it, where the link moves hardly
    anything: a list of 80,000 takes 4 ms to become a tensor, and 0.1 ms to be copied. Not where the
    GPU is behind: the copy waits for it there, whatever is copied."""
    rx = None if window.activity is None else window.activity.pcie_rx_mb_s
    if rx is None or rx >= COPY_LEAST_MB_S:
        return []
    making = [one for one in places if MAKING_CALL.search(one.line) and copies_to_gpu(one)]
    return making if making and _no_wait(window, share_held(making)) else []


def _without_kernels(window: RunFacts, places: Sequence[FrameShare]) -> list[FrameShare]:
    """Lines that compare elements, on a GPU that is busy for too little of the time for each to be
    a kernel: they are a list's, or a CPU tensor's."""
    most = None if window.activity is None else window.activity.most_launching
    if most is None:
        return []
    compared = [one for one in places if reads_elements(one)]
    return compared if share_held(compared) > most else []


def _read_of_no_gpu(window: RunFacts, places: Sequence[FrameShare]) -> list[FrameShare]:
    """Lines outside a net that Python's own values, an array or a text explain as well as a tensor
    does, `print(text)` or `int(one)`: on a GPU that is done with the step by then, by its clock."""
    device = on_device(window)
    if device is None or device.abstains or device.lag_ns is None:
        return []
    other = [one for one in places if not (one.in_net or OF_TENSORS.search(one.line))]
    read = [one for one in other if calls(one, OF_ANY) and waits_for_gpu(one)]
    return read if read and _no_wait(window, share_held(read)) else []


def forward_of_net(window: RunFacts) -> list[FrameShare]:
    """Places of the training thread within its net's forward."""
    return [place for place in main_places(window) if is_in_forward(place)]


def is_in_forward(place: FrameShare) -> bool:
    """Below a net's call, and no evaluation."""
    return place.in_net and place.phase == "forward"


def _no_wait(window: RunFacts, share: float) -> bool:
    """What the GPU has left to do is no reason for lines of this share: it is idle for as long, and
    done with a step as soon as the host is, where its clock tells."""
    device, idle = on_device(window), idle_of(window)
    if idle < share:
        return False
    if device is None or device.abstains or device.lag_ns is None:
        return True
    return device.lag_ns <= keeps_up_ns(device.step_ns, idle)


def worker_places(window: RunFacts) -> tuple[FrameShare, ...]:
    """Where the workers were, if samples are enough to say."""
    return _enough(window.stacks, main=False)


def _enough(stacks: Stacks | None, main: bool) -> tuple[FrameShare, ...]:
    if stacks is None:
        return ()
    samples = stacks.main_samples if main else stacks.worker_samples
    if samples < limits.LEAST_STACKS:
        return ()
    return stacks.main if main else stacks.workers
