"""Fourier transforms of lengths for which there is no quick way."""

from collections import Counter
from collections.abc import Iterator
from typing import Final, NamedTuple

from .needless import sum_of
from .operation import Operation, Step

TRANSFORM: Final = "_fft_"
"""Names of Fourier transforms begin with it, of a backward too."""
MOST_PRIME: Final = 127
"""cuFFT has a way for each prime factor up to that; a length with a larger one is computed as a
convolution of more than twice the length (Bluestein), as MKL and pocketfft do from some prime on.
https://docs.nvidia.com/cuda/cufft/#accuracy-and-performance"""


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
