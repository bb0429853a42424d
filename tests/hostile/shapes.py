"""Anything that the types of a message allow, and nothing that they do not: hostile, well-formed.

The codec refuses whatever breaks a type, so what is left for the monitor to survive is this.
"""

import types
from functools import cache
from typing import Any, Literal, Union, get_args, get_origin

import msgspec
from hypothesis import strategies as some

EDGES = (0, 1, -1, 2**31, 2**53 + 1, 2**62, 2**63 - 1, -(2**63), 2**64 - 1)
TEXTS = (
    "",
    "main",
    "train.py",
    "\x1b]0;owned\x07",
    "\x9b2J",
    "a\nb",
    "\u202e",
    "x" * 300,
    "ü",
    "日",
)


@cache
def anything(kind: Any) -> "some.SearchStrategy[Any]":
    """Values of a type annotation as messages use them; one strategy of a type, for each is looked
    through before it is drawn from."""
    if isinstance(kind, type) and issubclass(kind, msgspec.Struct):
        return some.deferred(lambda: _struct(kind))
    origin, inner = get_origin(kind), get_args(kind)
    if origin in (Union, types.UnionType):
        return some.one_of([anything(one) for one in inner])
    if origin is Literal:
        return some.sampled_from(inner)
    if origin is list:
        return some.lists(anything(inner[0]), max_size=3)
    if origin is dict:
        return some.dictionaries(anything(inner[0]), anything(inner[1]), max_size=3)
    if origin is tuple:
        if inner[1:] == (...,):
            return some.lists(anything(inner[0]), max_size=3).map(tuple)
        return some.tuples(*(anything(one) for one in inner))
    return {
        int: some.one_of(some.sampled_from(EDGES), some.integers(0, 10**12), some.integers(0, 40)),
        float: some.one_of(some.floats(allow_nan=False, allow_infinity=False), some.floats(0, 1e3)),
        str: some.one_of(some.sampled_from(TEXTS), some.text(max_size=5)),
        bool: some.booleans(),
        bytes: some.just(b""),
        type(None): some.none(),
        None: some.none(),
    }[kind]


def _struct(kind: "type[msgspec.Struct]") -> "some.SearchStrategy[Any]":
    fields = {one.name: anything(one.type) for one in msgspec.structs.fields(kind)}
    return some.builds(kind, **fields)


def counted(value: Any, most: int) -> Any:
    """The same with figures of 0 to `most`, as the door lets them in."""
    if isinstance(value, msgspec.Struct):
        return type(value)(*(counted(one, most) for one in msgspec.structs.astuple(value)))
    if isinstance(value, tuple):
        return tuple(counted(one, most) for one in value)
    if isinstance(value, bool) or not isinstance(value, int | float):
        return value
    return abs(value) % most
