"""Whole numbers as bits: short codes for the sizes that came lately (Rice's, adapting).

Figures of a run are noise around something steady. Bytes waste half of a number that needs eleven
bits, and what is noise no compressor makes shorter. Past its end a stream reads as zeros without
end, so that zeros at the end cost nothing.
"""

from typing import Final

_MEMORY: Final = 3
"""The usual size is a mean over about 2**3 numbers."""
_MOST_ONES: Final = 24
"""As many ones announce a number that is written out: it is far larger than usual."""
_WRITTEN_BITS: Final = 72
_WINDOW_BYTES: Final = 16
"""Holds the longest code, wherever in a byte it begins."""
_MOST_LOW_BITS: Final = 64
_PIECE_BYTES: Final = 64
"""Numbers that begin in so many bytes are read together."""


class _Size:
    """How many low bits of a number are written as they are."""

    def __init__(self) -> None:
        self._sum = 0

    @property
    def low_bits(self) -> int:
        """From the mean of the numbers lately."""
        return min(_MOST_LOW_BITS, max(0, (self._sum >> _MEMORY).bit_length() - 1))

    def learn(self, number: int) -> None:
        """A number went by."""
        self._sum += number - (self._sum >> _MEMORY)


class BitWriter:
    """Collects numbers from 0 for the next chunk."""

    def __init__(self) -> None:
        self._size = _Size()
        self._parts = bytearray()
        self._open = 0
        self._open_bits = 0

    def put(self, number: int) -> None:
        """Append a number."""
        low = self._size.low_bits
        ones = number >> low
        if ones < _MOST_ONES:
            self._append((1 << ones) - 1, ones + 1)
            self._append(number & (1 << low) - 1, low)
        else:
            self._append((1 << _MOST_ONES) - 1, _MOST_ONES)
            self._append(number, _WRITTEN_BITS)
        self._size.learn(number)

    def take(self) -> bytes:
        """The bits since the last time, without the zeros at their end."""
        self._parts += self._open.to_bytes((self._open_bits + 7) // 8, "little")
        taken = bytes(self._parts.rstrip(b"\x00"))
        self._parts.clear()
        self._open = self._open_bits = 0
        return taken

    def _append(self, bits: int, count: int) -> None:
        self._open |= bits << self._open_bits
        self._open_bits += count
        if self._open_bits >= 512:
            whole = self._open_bits // 8
            self._parts += (self._open & (1 << 8 * whole) - 1).to_bytes(whole, "little")
            self._open >>= 8 * whole
            self._open_bits -= 8 * whole


class BitReader:
    """Reads what a BitWriter wrote, chunk after chunk."""

    def __init__(self) -> None:
        self._sum = 0
        """As in `_Size`, whose arithmetic is written out below: a recording of an hour has six
        million numbers."""
        self._data = b""
        self._at = 0
        self._end = 0
        """Both in bits."""
        self.ready: list[int] = []
        """Numbers that may be taken from its end before `next` is asked for more. Of the zeros at
        the end of a chunk there may be too many."""
        self.is_over = True
        """Whoever knows it may count on in `zeros` and not ask."""
        self.zeros = 0
        """That were read past the end."""
        self._sums: list[int] = []
        """What `_sum` was before the first of them, and after each."""

    def feed(self, data: bytes) -> None:
        """The bytes of the next chunk."""
        if self.ready:
            self._sum = self._sums[-1 - len(self.ready)]
            self.ready.clear()
        while self.zeros and self._sum >> _MEMORY:
            self._sum -= self._sum >> _MEMORY
            self.zeros -= 1
        self.zeros = 0
        self._data = data
        self._at, self._end = 0, 8 * len(data)
        self.is_over = not data

    def next(self) -> int:
        """The next number; 0 past the end."""
        if not self.ready:
            if self.is_over:
                self.zeros += 1
                return 0
            self._read_on()
        return self.ready.pop()

    def _read_on(self) -> None:
        byte, skipped = self._at >> 3, self._at & 7
        piece = self._data[byte : byte + _PIECE_BYTES + _WINDOW_BYTES]
        window = int.from_bytes(piece, "little") >> skipped
        left = min(8 * _PIECE_BYTES, self._end - 8 * byte) - skipped
        lately, numbers = self._sum, self.ready
        self._sums = sums = [lately]
        while left > 0:
            low = (lately >> _MEMORY).bit_length() - 1
            if low < 0:
                low = 0
            elif low > _MOST_LOW_BITS:
                low = _MOST_LOW_BITS
            ones = (~window & window + 1).bit_length() - 1
            if ones < _MOST_ONES:
                number = ones << low | window >> ones + 1 & (1 << low) - 1
                bits = ones + 1 + low
            else:
                number = window >> _MOST_ONES & (1 << _WRITTEN_BITS) - 1
                bits = _MOST_ONES + _WRITTEN_BITS
            numbers.append(number)
            lately += number - (lately >> _MEMORY)
            sums.append(lately)
            window >>= bits
            left -= bits
        self._at = 8 * byte + min(8 * _PIECE_BYTES, self._end - 8 * byte) - left
        self._sum = lately
        self.is_over = self._at >= self._end
        numbers.reverse()
