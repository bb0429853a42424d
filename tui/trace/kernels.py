"""What a kernel is, by its name and by the operator that asked for it."""

import re
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final, Literal

from .events import Activity, HostCall, Operator, Trace

Sort = Literal[
    "matrix product", "attention", "convolution", "normalisation", "elementwise", "reduction",
    "optimizer", "embedding", "collective", "copy", "fill", "fused", "other",
]  # fmt: skip


def _compiled(rows: tuple[tuple[Sort, str], ...]) -> tuple[tuple[Sort, re.Pattern[str]], ...]:
    return tuple((sort, re.compile(pattern, re.IGNORECASE)) for sort, pattern in rows)


_PATTERNS: Final = _compiled(
    (
        ("copy", r"nchwToNhwc|nhwcToNchw|transpose"),
        ("attention", r"flash_(fwd|bwd)|flash_attn|fmha|attention|_sdpa"),
        ("optimizer", r"multi_tensor_apply|adam|sgd_|lion_kernel|foreach"),
        ("convolution", r"conv(?!ert)|wgrad|dgrad|implicit_gemm|winograd|fprop"),
        ("matrix product", r"gemm|gemv|cutlass|matmul|nvjet|xmma|splitK|_mm_|dot_kernel"),
        ("normalisation", r"layer_?norm|batch_?norm|bn_(fw|bw)|group_?norm|rms_?norm|softmax"),
        (
            "embedding",
            r"embedding|indexing_backward|gather|scatter|index_(select|put|add)|indexSel",
        ),
        ("fused", r"^triton_"),
        ("reduction", r"reduce|\bsum\b|nll_loss|cub::|argmax|\bscan\b"),
        ("elementwise", r"elementwise|vectorized|unrolled|pointwise|CatArray|fill|copy|dropout"),
    )
)
"""The first that fits: names of cuBLAS (nvjet, xmma), cuDNN, CUTLASS, ATen and Triton."""
_OPERATORS: Final = _compiled(
    (
        ("attention", r"scaled_dot_product|flash_attention|efficient_attention"),
        ("optimizer", r"^optimizer|_fused_adam|_foreach|_fused_sgd"),
        ("convolution", r"convolution"),
        ("matrix product", r"::(mm|bmm|addmm|baddbmm|matmul|linear|_scaled_mm|addmv|mv|dot)$"),
        ("normalisation", r"(layer|batch|group|rms)_norm|softmax"),
        ("embedding", r"embedding|index"),
    )
)
_DTYPES: Final = (
    ("fp8", re.compile(r"e4m3|e5m2|fp8", re.IGNORECASE)),
    ("tf32", re.compile(r"tf32|s1688gemm|tf32f32", re.IGNORECASE)),
    ("bf16", re.compile(r"bf16|bfloat16|BFloat16|nvjet_(sm\d+_)?tst|nvjet_tst", re.IGNORECASE)),
    ("fp16", re.compile(r"f16|half|h1688|hgemm|nvjet_(sm\d+_)?hsh", re.IGNORECASE)),
    ("fp64", re.compile(r"dgemm|f64|double", re.IGNORECASE)),
    ("fp32", re.compile(r"sgemm|simt|f32|float|nvjet_(sm\d+_)?sss", re.IGNORECASE)),
)
"""A tensor core that multiplies fp32 rounded to tf32 has "tf32" or "s1688" in its name."""
TYPES: Final = {
    "float": "fp32", "double": "fp64", "c10::BFloat16": "bf16", "c10::Half": "fp16",
    "c10::Float8_e4m3fn": "fp8", "c10::Float8_e5m2": "fp8",
}  # fmt: skip


@dataclass(frozen=True, slots=True)
class Asked:
    """By which operator a kernel was asked for, as the recording with operators showed."""

    operator: str
    dims: tuple[tuple[int, ...], ...]
    types: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class KernelSum:
    """Kernels that are alike, over the steps."""

    sort: Sort
    name: str
    operator: str
    """Of PyTorch that asked for it; "" where that is not known."""
    dtype: str
    """ "bf16", "fp32", "tf32"; "" where neither name nor operator shows it."""
    shape: str
    """ "4096x1024 · 1024x4096"; "" where it is not known."""
    a_step: float
    ns_a_step: float


def sort_of(activity: Activity, operator: str = "") -> Sort:
    """What it is."""
    if activity.what == "collective":
        return "collective"
    if activity.what == "fill":
        return "fill"
    if activity.what != "kernel":
        return "copy"
    if "splitKreduce" in activity.name:
        return "reduction"  # what a product in parts ends with
    named = _first(_PATTERNS, activity.name)
    if named in ("copy", "optimizer", "attention", "convolution", "matrix product", "fused"):
        return named
    return _first(_OPERATORS, operator) or named or "other"


def _first(patterns: Sequence[tuple[Sort, re.Pattern[str]]], text: str) -> Sort | None:
    return next((sort for sort, pattern in patterns if text and pattern.search(text)), None)


def dtype_of(name: str, sort: Sort, asked: Asked | None) -> str:
    """In what it computes: by its operator's inputs, else by its name. That fp32 is multiplied as
    tf32 shows in the name alone; a kernel of an optimizer has types of all kinds in its name."""
    given = ""
    if asked is not None:
        given = next((TYPES[one] for one in asked.types if one in TYPES), "")
    products = sort in ("matrix product", "convolution", "attention")
    if given and not (products and given == "fp32"):
        return given
    if not products:
        return given
    return next((dtype for dtype, pattern in _DTYPES if pattern.search(name)), given)


def short_name(name: str) -> str:
    """Without template arguments and namespaces: "vectorized_elementwise_kernel"."""
    text = name.removeprefix("void ")
    if text.startswith("cutlass::Kernel"):
        text = text.partition("<")[2].partition(">")[0]  # cutlass::Kernel2<cutlass_80_simt_sgemm_…>
    depth, out = 0, []
    for character in text:
        if character in "<(":
            depth += 1
        elif character in ">)":
            depth -= 1
        elif depth == 0:
            out.append(character)
    return "".join(out).strip().rpartition("::")[2][:80] or name[:80]


def asked_by(trace: Trace) -> Mapping[tuple[str, int], Asked]:
    """Of a recording with operators: what asked for the n-th kernel of each name in its last step's
    order, by which another recording's kernels are named."""
    innermost = _innermost(trace)
    calls = {call.correlation: call for call in trace.calls if call.correlation}
    found: dict[tuple[str, int], Asked] = {}
    seen: defaultdict[str, int] = defaultdict(int)
    for activity in trace.activities:
        index = seen[activity.name]
        seen[activity.name] += 1
        call = calls.get(activity.correlation)
        operator = innermost.get(call.correlation) if call else None
        if operator is not None:
            found[activity.name, index] = Asked(operator.name, operator.dims, operator.types)
    return found


def _innermost(trace: Trace) -> dict[int, Operator]:
    """Operators by the correlation of the calls that were made in them."""
    found: dict[int, Operator] = {}
    operators: defaultdict[int | str, list[Operator]] = defaultdict(list)
    calls: defaultdict[int | str, list[HostCall]] = defaultdict(list)
    for operator in trace.operators:
        if operator.name.startswith(("aten::", "Optimizer", "_", "c10d::", "triton")):
            operators[operator.thread].append(operator)
    for call in trace.calls:
        calls[call.thread].append(call)
    for thread, own in calls.items():
        stack: list[Operator] = []
        at, mine = 0, operators[thread]
        for call in own:
            while at < len(mine) and mine[at].start_ns <= call.start_ns:
                stack.append(mine[at])
                at += 1
            while stack and stack[-1].end_ns < call.start_ns:
                stack.pop()
            inside = [one for one in stack if one.end_ns >= call.start_ns]
            if inside and call.correlation:
                found[call.correlation] = _with_shapes(inside)
    return found


def _with_shapes(stack: Sequence[Operator]) -> Operator:
    """The innermost with shapes: `aten::addmm` rather than what it calls."""
    return next((one for one in reversed(stack) if any(one.dims)), stack[-1])


def shape_of(asked: Asked | None, sort: Sort) -> str:
    """The two factors of a product, the first input of anything else."""
    if asked is None:
        return ""
    shapes = [one for one in asked.dims if len(one) > 1]
    wanted = shapes[-2:] if sort == "matrix product" else shapes[:1]
    return " · ".join("x".join(map(str, one)) for one in wanted)


def summed(
    activities: Iterable[Activity], asked: Mapping[tuple[str, int], Asked], steps: int
) -> tuple[KernelSum, ...]:
    """Those of some steps, largest first. The n-th of a name in a step is the n-th of the recording
    with operators; where steps differ only the name counts."""
    per_step: defaultdict[str, int] = defaultdict(int)
    for name, _ in asked:
        per_step[name] += 1
    seen: defaultdict[str, int] = defaultdict(int)
    sums: defaultdict[tuple[Sort, str, str, str, str], list[int]] = defaultdict(lambda: [0, 0])
    for activity in activities:
        count = per_step[activity.name]
        by = asked.get((activity.name, seen[activity.name] % count)) if count else None
        seen[activity.name] += 1
        operator = by.operator if by else ""
        sort = sort_of(activity, operator)
        dtype = dtype_of(activity.name, sort, by) if activity.what == "kernel" else ""
        name = activity.name if activity.what != "kernel" else short_name(activity.name)
        row = sums[sort, name, operator, dtype, shape_of(by, sort)]
        row[0] += 1
        row[1] += activity.end_ns - activity.start_ns
    found = (KernelSum(*key, row[0] / steps, row[1] / steps) for key, row in sums.items())
    return tuple(sorted(found, key=lambda one: -one.ns_a_step))
