"""Real bytes with some of them changed: what a fuzzer without coverage does, from a seed."""

import random
from collections.abc import Iterator
from typing import Final

NUMBERS: Final = (b"\x00", b"\x7f", b"\x80", b"\xff", b"\xff\xff\xff\xff", b"\xce\xff\xff\xff\xff")
"""The last is msgpack's for four billion."""


def mutants(seeds: list[bytes], count: int, seed: int) -> Iterator[bytes]:
    """So many variations of the seeds, each by one to eight changes."""
    chance = random.Random(seed)
    for _ in range(count):
        data = bytearray(chance.choice(seeds))
        for _ in range(1 << chance.randrange(4)):
            _change(data, seeds, chance)
        yield bytes(data)


def _change(data: bytearray, seeds: list[bytes], chance: random.Random) -> None:
    at = chance.randrange(len(data) + 1)
    length = chance.choice((1, 1, 2, 8, 64))
    how = chance.randrange(6)
    if how == 0 and at < len(data):
        data[at] ^= 1 << chance.randrange(8)
    elif how == 1:
        data[at : at + length] = chance.choice(NUMBERS)
    elif how == 2:
        del data[at : at + length]
    elif how == 3:
        data[at:at] = data[at : at + length] * chance.choice((1, 2, 16))
    elif how == 4:
        other = chance.choice(seeds)
        begin = chance.randrange(len(other))
        data[at : at + length] = other[begin : begin + length]
    else:
        data[at : at + length] = chance.randbytes(length)
