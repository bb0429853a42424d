"""Large tensors that a step makes anew on a CPU, by the functions that ask for them: glibc's
allocator gives their memory back to the kernel as they are freed."""

from collections import Counter
from typing import Final, NamedTuple

from .operation import NOWHERE, Step, is_all_on_host

LARGE: Final = 131_072
"""Bytes from which glibc first maps a block apart (M_MMAP_THRESHOLD); smaller ones stay in the
heap."""


class NewMemory(NamedTuple):
    """Of the function that makes most of it, with what goes back through its operations."""

    place: int
    """The line that makes most of that."""
    bytes: int
    of_bytes: int
    """Of all functions."""


def new_memory(step: Step) -> NewMemory | None:
    """None where a step has a device, or makes nothing so large."""
    if not is_all_on_host(step.operations):
        return None
    lines, functions = Counter[int](), Counter[tuple[str, str]]()
    whole = 0
    for one in step.operations:
        held = {each.storage for each in one.reads} | one.writes
        new = sum(
            {
                each.storage: each.bytes
                for each in one.makes
                if each.bytes >= LARGE and each.storage not in held
            }.values()
        )
        whole += new
        if new and one.place != NOWHERE:
            lines[one.place] += new
            functions[step.places[one.place][:2]] += new
    if not functions:
        return None
    function, held_bytes = functions.most_common(1)[0]
    place = next(place for place, _ in lines.most_common() if step.places[place][:2] == function)
    return NewMemory(place, held_bytes, whole)
