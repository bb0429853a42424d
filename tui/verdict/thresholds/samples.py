"""Thresholds on samples of stacks: when they say something, and by which names they say it."""

from typing import Final

# How many say something.

LEAST_STACKS: Final = 15
"""Fewer samples name a frame by chance: 15 give ±13 points at 50 %. A chunk of py-spy's has 19, and
shares of samples carry their interval: with 20 the first two seconds of them were not used, in
which three of six loops without a loader had a wrong verdict (H200)."""


# Functions, and text of lines, by which a place in the code is known for what it is.

FOR_LINES: Final = (
    r"^\s*(async )?for\b.*\bin\b.*\b"
    r"(\w*(loader|batches|dataset|tqdm|pbar|tepoch|progress)\w*|bar)\b"
)
"""Text of a loop over a loader, or over a bar around one."""
VECTOR_METHODS: Final = ("step_async", "step_wait", "reset_async", "reset_wait")
ENVIRONMENT_METHODS: Final = ("step", "reset", *VECTOR_METHODS)
"""Methods of many of gym's environments at a time, which nothing else has, and of a single one. A
loop that calls an optimizer's trains, and a meter is reset too."""
ENVIRONMENT_PACKAGES: Final = (
    *("gym/", "gymnasium/", "ale_py/", "envpool/", "pettingzoo/", "procgen/"),
    "stable_baselines3/common/vec_env/",
)
"""Libraries of environments that a policy acts in."""
ROLLOUTS: Final = ("stable_baselines3/common/", "collect_rollouts")
"""A library's function that acts in them."""
SYNC_FRAMES: Final = frozenset(
    {"item", "tolist", "cpu", "numpy", "synchronize", "__bool__", "__float__", "nonzero"}
)
"""Where the training thread waits for the GPU: time there is not the host's (diagnosis, 5th
finding)."""
SYNC_LOOPS: Final = frozenset(
    (
        ("transformers/trainer.py", "_run_epoch"),
        ("transformers/trainer.py", "_inner_training_loop"),
    )
)
"""Functions of libraries' loops, with their file, that wait in a line of their own: the Trainer
looks at each step's loss for NaN (`logging_nan_inf_filter`), in C, which leaves no frame. All else
that they do has frames below them."""
CHECKING_FRAMES: Final = frozenset(
    (
        ("torch/distributions/distribution.py", "__init__"),
        ("torch/distributions/distribution.py", "_validate_sample"),
    )
)
"""Functions, with their file, that check a distribution's arguments: each asks the GPU whether all
are valid, in C."""
REPLAYING: Final = frozenset({"replay", "forward", "backward", "functionalized", "new_fwd"})
"""Functions of torch/cuda/graphs.py that run while a graph is replayed."""
COLLECTIVE_FILES: Final = frozenset(
    {
        "torch/distributed/distributed_c10d.py",
        "torch/distributed/_functional_collectives.py",
    }
)
"""PyTorch's files whose calls wait for other ranks: `all_reduce`, `barrier`, `wait_tensor`."""
READ_FRAMES: Final = frozenset(
    {
        *("read", "readinto", "readline", "readlines", "read_bytes", "read_text", "pread", "_read"),
        *("recv", "recv_into", "recv_bytes", "download", "get_object", "urlopen", "request"),
        *("open", "read_file", "fetch", "getresponse", "readall"),
    }
)
"""Functions that wait for bytes, by name."""
READ_LINES: Final = (
    r"\b(recv|recv_into|recv_bytes|recvfrom|read|readinto|readline|readlines|pread|open)\(",
    r"\b(read_bytes|read_text|imread|urlopen|getresponse|get|request|download|get_object)\(",
    r"\b(execute|fetchone|fetchall|fetchmany|query|sleep)\(",
)
"""Text of a line that calls such a function in C, which leaves no frame. It counts only for a
worker that hardly uses its core: a line alone proves nothing."""
HAND_OVER_FRAMES: Final = ("rebuild_storage", "rebuild_tensor", "_rebuild")
"""How the functions begin in which PyTorch opens a batch's shared memory."""
TO_CPU: Final = r"(device ?= ?)?(torch\.device\()?[\"']cpu\b"
"""What follows in `x.to(` where it goes back to the host, which waits for the GPU first."""
READS_OF_TENSORS: Final = (
    r"\.(item|cpu|numpy|nonzero|masked_select)\(|\bsynchronize\(|\bis(nan|inf|finite)\("
    rf"|\.to\((?={TO_CPU})(?!.*non_blocking)"
)
READS_OF_ANY: Final = (
    # A type is no wait, nor is a constant: x.float(), float("inf").
    r"\.tolist\(|\bprint\(|(?<![.\w])(float|int|bool)\((?![\"'\d])"
)
"""Text of a line on which a tensor is read, and of one that reads a list, an array or a text as
well."""
SYNC_LINES: Final = (
    READS_OF_TENSORS,
    READS_OF_ANY,
    r"\.(any|all|unique)\(",
    r"\[[^\]]*\bmask\b[^\]]*\]",
)
"""Text of a line on which the training thread may wait for the GPU. A line alone proves
nothing: many samples on it do."""
COPY_LINES: Final = (
    rf"\.(to|cuda|copy_|pin_memory)\((?!{TO_CPU})",
    r"\bdevice_put\(|\bprefetch\(",
)
"""Text of a line on which a batch goes to the GPU."""
MAKING_LINES: Final = r"\btorch\.(tensor|([a-z]+\.)?\w*Tensor)\(.*\)\.(to|cuda)\("
"""Text of a line that makes a tensor of a list, and copies it; `as_tensor` takes arrays as well."""
COPY_FRAMES: Final = frozenset(
    {
        *("to_device", "send_to_device", "move_to_device", "batch_to_device", "prefetch_to_device"),
        *("move_data_to_device", "transfer_batch_to_device", "recursive_to", "_prepare_input"),
    }
)
"""Functions of frameworks and of people's own that do it, with all that they call."""
ATTENTION_LINES: Final = (r"\bsoftmax\(",)
"""Text of a line that computes attention step by step. A classifier's last layer has it
too, once: it counts only where samples meet it."""
DROPOUT_FRAME: Final = ("torch/nn/functional.py", "dropout")
"""File and function in which PyTorch draws what to drop, element by element."""
PRODUCT_FRAMES: Final = frozenset(
    {
        *("linear", "matmul", "bmm", "addmm", "baddbmm", "einsum", "_conv_forward", "bilinear"),
        *("multi_head_attention_forward", "scaled_dot_product_attention", "chain_matmul"),
    }
)
PRODUCT_FILES: Final = frozenset({"linear.py", "conv.py", "rnn.py", "transformer.py"})
PRODUCT_LINES: Final = (
    r"(?<!sparse\.)\b(matmul|(b|add|baddb)?mm|einsum|linear|conv\dd|scaled_dot_product_attention)\(",
    r"[\w\])] @ [\w(]",
)
"""Functions, PyTorch's files of modules, and text of lines that issue matrix products: a
convolution is one too."""
SHAPE_LINES: Final = (r"\b(nonzero|masked_select|unique|argwhere)\(", r"\[[^\]]*\bmask\b[^\]]*\]")
"""Text of a line whose result has a shape that only the GPU knows: the host must wait for it."""
EMPTYING_LINES: Final = (r"\bempty_cache\(", r"\bipc_collect\(")
"""Text of a line on which the allocator gives its cache back."""


# Moments at which the GPU was idle, or busy: which samples show what it waits for.

IDLE_BELOW: Final = 5.0
"""Percent of a reading in which anything ran: below, the GPU was idle all through it. Of 283 such
readings in two recorded runs 279 were 0."""
BUSY_FROM: Final = 75.0
"""From here on a moment of the reading is three times as likely a busy one. In between nothing is
known of a moment: steps shorter than a reading leave it at 25 to 70."""
MOMENT_NS: Final = 8_000_000
"""How well a moment is known: a GPM reading covers the 85 to 100 ms before it came, and py-spy
writes a sample down up to 5 ms after it was taken. So much on both sides must be alike."""


# Runs without a probe, of which samples are all there is.

SAMPLED_LEAST: Final = 38
"""Samples before there is a verdict: two chunks of py-spy, 4 s of a run. A half is then known to
13 points."""
SAMPLED_ENTER_LOW: Final = 0.10
"""A cause enters when even the lower bound of its share is above the tenth that makes it one. With
the 5 % that are enough for steps, two of eight healthy runs that wait for data 5 % of the time were
called bound at some moment of 80 s; with this one of a hundred, by an optimizer that holds 9 %
(simulated)."""
SAMPLED_SWAP_RENEWED: Final = 0.5
"""Part of the window's samples that must be new before another cause takes the headline. The
window is the last minute: were all of it to be new, what the first 4 s showed would stand for a
minute. Two equal causes took no turns in 960 s with it, three with 0.25 (simulated)."""
SAMPLED_MOST_CONFIDENT: Final = 0.89
"""Samples show where the thread was, not what the GPU lost by it, and a name in the table may mean
something else in this program. Of one half of the recordings without a probe (names by hash) 15 of
16 were right where there was a verdict: by the rule of succession 0.89."""
SAMPLED_SERIAL: Final = 0.5
"""Part of the wait in which the training thread makes the batch itself, from which on it has
no workers."""
SAMPLED_RESTARTS: Final = 2
SAMPLED_YOUNG_S: Final = 20.0
"""Workers that came and went, times those that there are, and the most that one of these has been
there for: then they are started anew for every epoch, and epochs are short."""
SAMPLED_STARTS_BUSY: Final = 0.5
"""Of such workers' samples, from their start on, those in which they make a batch: beyond, what the
training waits for is mostly made, and a worker that persists makes it as well."""
STILL_S: Final = 20.0
"""The stack has not moved and nothing runs, neither here nor in the workers nor on the GPU: twice
what is enough where a probe sees each mark."""
STILL_BESIDE_GPU_S: Final = 120.0
"""A GPU that is busy all the while may have a long kernel; or it waits in a collective."""
STILL_THREAD: Final = 0.003
STILL_CORES: Final = 0.02
"""CPU below which a thread, and the rest of its process tree, do nothing: waking up every few
seconds to look for a batch costs 0.0001, the least part of a step that goes on 0.01."""
STILL_GPU: Final = 5.0
"""Percent, likewise."""

READING_LEAST: Final = 0.25
"""A function of the user's own that waits for the GPU in this part of its samples, and runs no net,
is there to read results. Of one that reads an accuracy class by class 3 in 5 samples wait on an
H100: without it the runs were 1.4 and 1.8x as fast, where the lines that wait held 9 and 11 %."""
