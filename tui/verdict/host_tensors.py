"""Tensors without data in them that are made on the host, and copied to the GPU then."""

import re
from collections.abc import Iterable, Sequence
from typing import Final

from .code_places import calls, copies_to_gpu
from .place_names import file_of, function_of, own_frame
from .stack_samples import FrameShare

_MADE: Final = r"torch\.(zeros|ones|full|empty|eye|arange|linspace|rand|randn|randint|randperm)\("
FILLED_THEN_COPIED: Final = re.compile(_MADE + r".*\)\.(to|cuda)\(")
"""In one line: 123 MB a step in a public seq2seq."""
FILLED: Final = re.compile(
    _MADE + r"(?!.*\bdevice\b)|"
    r"torch\.(Bool|Byte|Char|Short|Int|Long|Half|Float|Double|BFloat16)Tensor\((?=[^()]*\.(size\(|shape))"
)
"""On the host: without a device, or of a type that is always there, by a size. One of values is a
batch."""


def filled_for_copy(places: Sequence[FrameShare]) -> tuple[FrameShare, ...]:
    """Where they are made, in functions of the user's that copy to the GPU on another line
    (DeepSpeech's mask: 7 % of an H200's time beside 15 % of copying it)."""
    copying = _functions(one for one in places if copies_to_gpu(one))
    filled = (one for one in places if one.phase != "data" and calls(one, FILLED))
    return tuple(one for one in filled if not copies_to_gpu(one) and _function(one) in copying)


def copies_of_filled(places: Sequence[FrameShare]) -> tuple[FrameShare, ...]:
    """What such tensors take, the lines that make them first: made and copied by one line, or by
    two of a function."""
    filled = filled_for_copy(places)
    inside = _functions(filled)
    copied = [one for one in places if copies_to_gpu(one)]
    both = [
        one for one in copied if FILLED_THEN_COPIED.search(one.line) or _function(one) in inside
    ]
    return (*filled, *both)


def _functions(places: Iterable[FrameShare]) -> set[tuple[str, str]]:
    return {_function(one) for one in places} - {("", "")}


def _function(place: FrameShare) -> tuple[str, str]:
    frame = own_frame(place) or ""
    return function_of(frame), file_of(frame)
