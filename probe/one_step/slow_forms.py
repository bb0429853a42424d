"""Operations of a type, or of a size, that a device is slow at: products in fp32 within a net in
half precision, and Fourier transforms of lengths for which there is no quick way."""

from collections import Counter
from collections.abc import Iterator
from typing import Final, NamedTuple

from .needless import Needless, sum_of
from .operation import NOWHERE, Operation, Step, Value, is_all_on_host
from .operators import MATRIX_PRODUCTS

ATTENDS: Final = "_scaled_dot_product_"
"""Names of attention in one call begin with it, of its backward too."""
FULL: Final = "torch.float32"
HALF: Final = ("torch.bfloat16", "torch.float16")
TRANSFORM: Final = "_fft_"
"""Names of Fourier transforms begin with it, of a backward too."""
MOST_PRIME: Final = 127
"""cuFFT has a way for each prime factor up to that; a length with a larger one is computed as a
convolution of more than twice the length (Bluestein), as MKL and pocketfft do from some prime on.
https://docs.nvidia.com/cuda/cufft/#accuracy-and-performance"""


CASTABLE: Final = MATRIX_PRODUCTS | {
    *(
        "convolution",
        "_convolution",
        "addbmm",
        "addmv",
        "mv",
        "_cudnn_rnn",
        "_thnn_fused_lstm_cell",
    ),
}
"""Operators that autocast computes in half precision, beside attention in one call.
https://docs.pytorch.org/docs/stable/amp.html#autocast-op-reference"""


class Transforms(NamedTuple):
    """Those of a step."""

    ns: int
    host_ns: int
    operations: int
    place: int
    length: int
    """What most of them have."""


def slow_transforms(step: Step) -> Transforms | None:
    """Those of a length with a large prime factor."""
    found = [(one, length) for one in step.operations for length in _lengths(one)]
    slow = {id(one): (one, length) for one, length in found if _largest_prime(length) > MOST_PRIME}
    whole = sum_of(one for one, _ in slow.values())
    if whole is None:
        return None
    return Transforms(*whole, Counter(length for _, length in slow.values()).most_common(1)[0][0])


def _lengths(one: Operation) -> Iterator[int]:
    """A real one is half as long on one side of it."""
    if not one.name.startswith(TRANSFORM) or not one.reads or not one.makes:
        return
    before, after = one.reads[0], one.makes[0]
    if before.is_strided and after.is_strided:
        for _, at in one.arguments[2]:
            yield max(before.view[1][at], after.view[1][at])


def _largest_prime(number: int) -> int:
    """Its largest prime factor."""
    largest, factor = 1, 2
    while factor * factor <= number:
        while not number % factor:
            largest, number = factor, number // factor
        factor += 1
    return max(largest, number)


def full_products(step: Step) -> Needless | None:
    """On a device, products of two tensors in fp32 that the step itself has made, beside others in
    half precision. One with a weight in fp32 is meant so, with its backward: a head, a whole net, a
    frozen one."""
    if is_all_on_host(step.operations):
        return None
    made, halves, found = set[int](), 0, list[Operation]()
    meant = set[int]()
    for one in step.operations:
        if one.name in MATRIX_PRODUCTS or one.name.startswith(ATTENDS):
            half = any(_is_of(each, *HALF) for each in one.reads)
            full = [each.storage for each in one.reads if _is_of(each, FULL)]
            halves += half
            if not made.issuperset(full):
                meant.add(one.node)
            elif not half and len(full) > 1 and not (one.in_backward and one.of_node in meant):
                found.append(one)
        made |= {each.storage for each in one.makes} - {each.storage for each in one.reads}
    return sum_of(found) if halves else None


def castable_ns(step: Step) -> int:
    """What those take that autocast computes in half precision, with their own backward. Products
    in the backward of others, as of an inverse, stay as they are."""
    nodes, taken = set[int](), 0
    for one in step.operations:
        forward = not one.in_backward or one.node != NOWHERE
        if forward and (one.name in CASTABLE or one.name.startswith(ATTENDS)):
            nodes.add(one.node)
            taken += one.ns
        elif one.of_node != NOWHERE and one.of_node in nodes:
            taken += one.ns
    return taken


def _is_of(value: Value, *types: str) -> bool:
    return value.is_strided and str(value.view[-1]) in types
