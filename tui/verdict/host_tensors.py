"""Tensors without data in them that are made on the host, and copied to the GPU then."""

import re
from collections.abc import Sequence
from typing import Final

from .code_places import calls, copies_to_gpu, waits_for_gpu
from .place_names import file_of, own_frame
from .stack_samples import FrameShare

_MADE: Final = r"torch\.(zeros|ones|full|empty|eye|arange|linspace|rand|randn|randint|randperm)\("
FILLED_THEN_COPIED: Final = re.compile(_MADE + r".*\)\.(to|cuda)\(")
"""In one line: 123 MB a step in a public seq2seq."""
FILLED: Final = re.compile(
    _MADE + r"|torch\.(Bool|Byte|Char|Short|Int|Long|Half|Float|Double|BFloat16)Tensor"
    r"\((?=[^()]*\.(size\(|shape))"
)
"""`torch.BoolTensor(x.size())` is on the host whatever the default device; one of values is a
batch."""
_NAMED: Final = re.compile(r"(?P<name>[A-Za-z_]\w*) = (?P<call>torch\..*)")
_ELSEWHERE: Final = re.compile(r"\bdevice\b|\*\*|\bout=")
"""In such a call: it may be made on the GPU, or in a tensor that is there."""


def filled_then_copied(
    places: Sequence[FrameShare],
) -> tuple[tuple[FrameShare, ...], tuple[FrameShare, ...]]:
    """Lines that make such a tensor under a name which another line of the same function copies to
    the GPU, and the lines that copy it (DeepSpeech's masks: 7 % and 15 % of an H200's time)."""
    copied = [one for one in places if copies_to_gpu(one)]
    filled: list[FrameShare] = []
    moved: list[FrameShare] = []
    for one in places:
        name = _name_filled(one)
        if not name:
            continue
        moves = re.compile(rf"\b{name}\.(to|cuda)\(")
        along = [
            copy for copy in copied if _function(copy) == _function(one) and moves.search(copy.line)
        ]
        if along:
            filled.append(one)
            moved += [copy for copy in along if copy not in moved]
    return tuple(filled), tuple(moved)


def _name_filled(place: FrameShare) -> str:
    """ "mask" of `mask = torch.zeros(n, m)`, all on one line; "" of anything else."""
    if place.phase == "data" or copies_to_gpu(place) or waits_for_gpu(place):
        return ""
    named = _NAMED.match(place.line)
    if named is None or not FILLED.match(named["call"]) or not calls(place, FILLED):
        return ""
    whole = named["call"].count("(") == named["call"].count(")")
    return named["name"] if whole and not _ELSEWHERE.search(named["call"]) else ""


def _function(place: FrameShare) -> tuple[str, str]:
    """The user's, with its class, and its file."""
    frame = own_frame(place) or ""
    return frame.partition(" (")[0], file_of(frame)
