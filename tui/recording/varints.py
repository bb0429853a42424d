"""Whole numbers and texts, one after the other, in some bytes."""

from typing import Final

from .format import MalformedError

_MOST_VARINT_BYTES: Final = 10


def put_varint(to: bytearray, number: int) -> None:
    """Append a whole number from 0: seven bits a byte, the low ones first."""
    while number > 0x7F:
        to.append(number & 0x7F | 0x80)
        number >>= 7
    to.append(number)


class Varints:
    """Whole numbers, one after the other, in some bytes."""

    def __init__(self, data: bytes) -> None:
        self._data = data
        self._at = 0
        self._end = len(data)

    @property
    def is_over(self) -> bool:
        """Nothing is left."""
        return self._at >= self._end

    def next(self) -> int:
        """The next one. Raises MalformedError where the bytes end or the number does not."""
        at = self._at
        if at < self._end and self._data[at] < 0x80:  # as most are
            self._at = at + 1
            return self._data[at]
        number = 0
        for place in range(_MOST_VARINT_BYTES):
            if self._at >= self._end:
                break
            byte = self._data[self._at]
            self._at += 1
            number |= (byte & 0x7F) << 7 * place
            if byte < 0x80:
                return number
        raise MalformedError("a number without an end")

    def bytes(self, length: int) -> bytes:
        """The next so many bytes as they are. Raises MalformedError where there are fewer."""
        if length > self._end - self._at:
            raise MalformedError("a text without an end")
        self._at += length
        return self._data[self._at - length : self._at]
