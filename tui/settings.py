"""How PyTorch is set up in a process, as the probe reads it from flags, optimizers and graphs."""

import msgspec


class RepeatedLayer(msgspec.Struct, frozen=True, array_like=True):
    """A linear layer that one forward calls again and again, though no call waits for another."""

    calls: int
    rows: int
    """Of the input of each call; the median."""
    inputs: int
    outputs: int


class SameProducts(msgspec.Struct, frozen=True, array_like=True):
    """Products of one graph that were computed before, of the same two operands."""

    part: float
    """Of the arithmetic of all, what is done again, 0 to 1."""
    products: int
    different: int


class RowProducts(msgspec.Struct, frozen=True, array_like=True):
    """Linear layers on rows of which some need not be."""

    part: float
    """Of the arithmetic of all products, what is done for those, 0 to 1."""
    rows: int
    needed: int
    inputs: int
    outputs: int
    """Of the layer with most of it."""


class RecomputedProducts(msgspec.Struct, frozen=True, array_like=True):
    """What `torch.utils.checkpoint` computes again in the backward."""

    part: float
    """Of the arithmetic of all products that the graph shows, 0 to 1."""
    hidden: int
    """Parts of the net whose products the graph does not show: the older, reentrant kind."""


class RepeatedBackward(msgspec.Struct, frozen=True, array_like=True):
    """Backwards of one step that share nodes of a graph."""

    part: float
    """Of the arithmetic of all of them, what one has done before, 0 to 1."""
    backwards: int


class Penalty(msgspec.Struct, frozen=True, array_like=True):
    """Parameters that a term of the loss squares as a whole."""

    part: float
    """Of the bytes of all parameters in the graph, 0 to 1."""
    parameters: int


class AttentionWeights(msgspec.Struct, frozen=True, array_like=True):
    """Attention that makes its weights in full, and multiplies with them, and nothing else that
    has a gradient uses them."""

    bytes_each: float
    """Of scores, weights and what is made between them, for each product of two numbers that the
    forward's matrix products and convolutions make…"""
    layers: int
    """…in so many layers, or calls of them…"""
    length: int
    width: int
    """…of which the largest attends to so many positions, with so many numbers each for a head."""
    dropped: bool
    """Dropout is taken of weights."""
    in_one_call: int
    """Calls of PyTorch's one kernel, beside these."""


class FormatTimes(msgspec.Struct, frozen=True, array_like=True):
    """What the products of one forward and its backward take on a CPU, as the probe has tried those
    that take most, a part of their samples."""

    part: float
    """Of the time of all products, what those that were tried take, 0 to 1."""
    now_us: int
    """As they are; all of them, as the others."""
    channels_last_us: int
    """With the convolutions of pictures in channels_last."""
    bf16_us: int
    """So, and as autocast has them in bf16; the same again on a CPU that does not multiply bf16."""


class FunctionTime(msgspec.Struct, frozen=True, array_like=True):
    """What a function's operations take of one step, forward and backward, as they were timed: on
    the device where there is one."""

    place: str
    """The line with most of it: "Net.forward (/home/me/train.py:12)"."""
    us: int
    host_us: int
    """What they took on the host."""
    backward_us: int
    unlearned_us: int
    """Of the forward, what no gradient goes through, but for copies from the host."""
    fusible_us: int
    """Pointwise arithmetic, reductions, copies and lookups…"""
    fused_us: int
    """…and what one kernel each way would take, by the bytes that come from elsewhere and go there.
    """
    operations: int
    operation: str
    """The one that takes most of it, as PyTorch names it…"""
    operation_us: int
    """…and what that takes."""


class NeedlessOperations(msgspec.Struct, frozen=True, array_like=True):
    """Operations of one step that need not be, with their backward."""

    place: str
    """The line with most of it."""
    us: int
    host_us: int
    operations: int


class ZeroProducts(msgspec.Struct, frozen=True, array_like=True):
    """Products of one step with matrices that hardly hold anything but zeros."""

    place: str
    """The line with most of it."""
    us: int
    host_us: int
    operations: int
    filled_ppm: int
    """Parts in a million of the fullest that are not zero."""


class SlowTransforms(msgspec.Struct, frozen=True, array_like=True):
    """Fourier transforms of one step whose length has a large prime factor."""

    place: str
    """The line with most of it."""
    us: int
    host_us: int
    operations: int
    length: int
    """What most of them have."""


class HostCopies(msgspec.Struct, frozen=True, array_like=True):
    """Tensors that one step copies from the host to a device, the loader's aside."""

    copies: int
    bytes: int
    made_bytes: int
    """Of these, what holds no data, but zeros, numbers in order or at random…"""
    made_at: str
    """…and the line that copies most of that."""


class LoopOperations(msgspec.Struct, frozen=True, array_like=True):
    """Operations that a loop of the program asks for in one step, forward and backward, none of
    whose turns needs another's."""

    place: str
    """The line with most of it."""
    us: int
    host_us: int
    operations: int
    turns: int


class GatheredOperations(msgspec.Struct, frozen=True, array_like=True):
    """What layers of one step take for rows that were gathered, repeated or made larger before
    them, where the layers could come first."""

    place: str
    """The line with most of it."""
    us: int
    """That could go."""
    host_us: int
    operations: int
    rows: int
    needed: int
    inputs: int
    outputs: int
    """Of the layer that takes most: its rows or pixels, how many differ, and their widths."""


class NewMemory(msgspec.Struct, frozen=True, array_like=True):
    """Large tensors that a traced step made on a CPU."""

    place: str
    """Where the function that makes most of it makes most."""
    bytes: int
    """That function's, with its backward…"""
    of_bytes: int
    """…of all."""


class StepOperations(msgspec.Struct, frozen=True, array_like=True):
    """Operations of one step that was traced, but those of loader and optimizer."""

    steps: int
    """That were traced so far."""
    operations: int
    us: int
    """What all took, on the device where there is one; 0 where only the forward could be traced,
    which shows `host_copies` and `on_host`…"""
    host_us: int
    """…and on the host."""
    functions: tuple[FunctionTime, ...] = ()
    """Those with most time first."""
    constant: NeedlessOperations | None = None
    """What is the same in each step."""
    repeated: NeedlessOperations | None = None
    """What was computed before in the step."""
    unread: NeedlessOperations | None = None
    """What nothing uses."""
    scattered: NeedlessOperations | None = None
    """The backward of `table[index]`, where each row is asked for often."""
    zeros: ZeroProducts | None = None
    host_copies: HostCopies | None = None
    loop: LoopOperations | None = None
    gathered: GatheredOperations | None = None
    on_host: NeedlessOperations | None = None
    """What a step on a GPU computes on the CPU; None from a probe that does not say."""
    wall_us: int | None = None
    """What the traced step took but for tracing: of two optimizers in turns it holds both steps."""
    multiplied_out: NeedlessOperations | None = None
    """Products of two narrow weights, which a layer could take in turn."""
    costly_order: NeedlessOperations | None = None
    """Products in a row whose other order takes a fraction of the arithmetic."""
    full_products: NeedlessOperations | None = None
    """On a device, products in fp32 beside others in half precision."""
    transforms: SlowTransforms | None = None
    zeroed: NeedlessOperations | None = None
    """What is computed only to be multiplied by 0."""
    castable_us: int | None = None
    """What operations take that autocast computes in half precision, with their backward; None from
    a probe that does not say."""
    picked: NeedlessOperations | None = None
    """The backward of a choice of few numbers, whose gradient is mostly zeros."""
    one_time: NeedlessOperations | None = None
    """The direction of a recurrent layer that ends at the only time that is used."""
    new_memory: NewMemory | None = None
    one_hot: NeedlessOperations | None = None
    """Products with rows of one 1 among zeros, which are made in the step."""
    few_sorted: NeedlessOperations | None = None
    """Sorts of which a small part is read."""
    inverse: NeedlessOperations | None = None
    """Of matrices, which are multiplied by a few vectors, and determinants of the same."""


class DiagonalSolves(msgspec.Struct, frozen=True, array_like=True):
    """Triangular systems whose matrices are diagonal."""

    part: float
    """Of all such systems, 0 to 1."""
    size: int
    """Rows of the largest."""


class Settings(msgspec.Struct, frozen=True, array_like=True):
    """How PyTorch is set up in the process and what the loop uses: read about once a second.

    None: not known, or not there in this version. A loop without a backward shows nothing, one
    whose optimizer is compiled nothing of its optimizer.
    """

    threads: int | None = None
    matmul_precision: str | None = None
    """torch.get_num_threads(), torch.get_float32_matmul_precision(): "highest" is without tf32."""
    cudnn_benchmark: bool | None = None
    deterministic: bool | None = None
    anomaly: bool | None = None
    """Deterministic algorithms only; autograd's anomaly detection. Both are slower."""
    autocast: str | None = None
    """Type that autocast was seen to use, as "bfloat16"; "" where products were seen to run without
    it, None where the graph does not show it (a compiled forward, in an older torch)."""
    scaler: bool | None = None
    """A GradScaler that is enabled steps the optimizer."""
    optimizer: str | None = None
    foreach: bool | None = None
    fused: bool | None = None
    """Class and settings of the optimizer that updates most bytes; None where PyTorch chooses."""
    parameters: int | None = None
    parameter_bytes: int | None = None
    """Tensors that it updates, all groups."""
    parameter_dtype: str | None = None
    parameter_device: str | None = None
    """Of most of those bytes, as "float32" and "cuda"."""
    cudnn_tf32: bool | None = None
    """fp32 convolutions may use tf32."""
    capability: int | None = None
    """Of the CUDA device that the parameters lie on, 90 for 9.0; None on others."""
    set_to_none: bool | None = None
    """`zero_grad` drops gradients; False where they are filled with zeros and live on."""
    failed_guard: str | None = None
    """Which failed last, of what was compiled anew most often, as dynamo words it:
    "L['n'] == 3  # y = x * n  # train.py:12 in forward"."""
    table_rows: int | None = None
    table_bytes: int | None = None
    table_lookups: int | None = None
    """Of embeddings with most of those bytes and dense gradients: lookups in one backward."""
    training_thread: int | None = None
    """The kernel's id of the thread that runs the backward, in the process's own pid namespace."""
    profiler: bool | None = None
    """A profiler of the program's own recorded as a backward began."""
    unused_parameters: int | None = None
    graph_parameters: int | None = None
    """Of the parameters that a backward computes gradients for, those that nothing updates, and
    all."""
    unused_nodes: float | None = None
    """Part of the operations of that backward which lead to those alone, 0 to 1."""
    graph_nodes: int | None = None
    graph_uses: int | None = None
    """Operations that one backward goes through, the mean of the last; and how many of them use the
    value, or the parameter, that most of them use."""
    graph_added_bytes: int | None = None
    """Of gradients of parameters that such a backward adds to those of an earlier use."""
    cpu_bf16: bool | None = None
    """The process's CPU multiplies bf16 in one instruction."""
    host_parameters: int | None = None
    """Of the tensors that the optimizer updates those that are in the CPU's memory."""
    filters: int | None = None
    depthwise_filters: int | None = None
    """Weights of convolutions not in channels_last; and those with one channel in (no order)."""
    repeated_layer: RepeatedLayer | None = None
    """Of the last graph that was walked, the one with the most bytes to add; on a CPU alone."""
    cpu_intel: bool | None = None
    """The process's CPU is one of Intel's, for which PyTorch draws random numbers by MKL."""
    cleared_parameters: int | None = None
    """Of one backward, those for which it makes gradients that are cleared before their optimizer
    steps: the most."""
    cleared_nodes: float | None = None
    cleared_weights: float | None = None
    """Part of the products of all backwards that lead to those alone, 0 to 1; and the part of which
    one gradient of two does."""
    cleared_for_input: bool | None = None
    """Such a backward makes an input's gradient, and no optimizer steps with what it makes."""
    fusible: bool | None = None
    """The optimizer takes `fused=True`; None from a probe that does not say."""
    same_products: SameProducts | None = None
    gathered_products: RowProducts | None = None
    """Of rows that were gathered from fewer ones, or repeated; these are needed."""
    unused_products: RowProducts | None = None
    """Of rows of which nothing is used. None of a graph without any, and until a device has given
    what was asked of it."""
    resting_parameters: int | None = None
    """Of those that nothing updates, the ones that an optimizer has with a learning rate of 0."""
    recomputed_products: RecomputedProducts | None = None
    repeated_backward: RepeatedBackward | None = None
    """None of a step whose backwards share no product."""
    penalty: Penalty | None = None
    attention_weights: AttentionWeights | None = None
    diagonal_solves: DiagonalSolves | None = None
    formats: FormatTimes | None = None
    step_operations: StepOperations | None = None
    groups: int | None = None
    alike_groups: int | None = None
    """Groups of parameters of the optimizer; and how many could be one with another, whose settings
    are the same (None of more than are compared)."""
    breakable_filters: int | None = None
    """On the CPU, weights of single pixels with so few channels that oneDNN may break them in
    channels_last."""
