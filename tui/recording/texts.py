"""Texts and lists of texts, told once and then called by their number."""

from typing import Final

from .format import MalformedError
from .varints import Varints, put_varint

MOST_TEXTS: Final = 50_000
MOST_TEXT_BYTES: Final = 8 * 1024 * 1024
"""Of a whole table. A writer begins a new one when half of it is used."""

_TEXT: Final = 0
_LIST: Final = 1

Text = str | tuple[str, ...]


class TextWriter:
    """Numbers for texts; what is new goes into the next chunk."""

    def __init__(self) -> None:
        self._numbers: dict[Text, int] = {}
        self._new = bytearray()
        self._new_count = 0
        self._bytes = 0

    @property
    def is_half_full(self) -> bool:
        """Time for a new table."""
        return len(self._numbers) > MOST_TEXTS // 2 or self._bytes > MOST_TEXT_BYTES // 2

    @property
    def is_too_full(self) -> bool:
        """A reader would refuse it."""
        return len(self._numbers) > MOST_TEXTS or self._bytes > MOST_TEXT_BYTES

    def number(self, text: Text) -> int:
        """The text's number."""
        number = self._numbers.get(text)
        return self._tell(text) if number is None else number

    def take(self) -> bytes:
        """What is new since the last time."""
        taken = bytearray()
        put_varint(taken, self._new_count)
        taken += self._new
        self._new.clear()
        self._new_count = 0
        return bytes(taken)

    def _tell(self, text: Text) -> int:
        told = bytearray()
        if isinstance(text, str):
            data = text.encode("utf-8", "surrogatepass")
            told.append(_TEXT)
            put_varint(told, len(data))
            told += data
        else:
            items = [self.number(item) for item in text]
            told.append(_LIST)
            put_varint(told, len(items))
            for item in items:
                put_varint(told, item)
        self._new += told
        self._new_count += 1
        self._bytes += len(told)
        number = self._numbers[text] = len(self._numbers)
        return number


class TextReader:
    """The texts that were told so far, by number."""

    def __init__(self) -> None:
        self._texts: list[Text] = []
        self._size = 0

    def read(self, data: Varints) -> None:
        """Take what a TextWriter told. Raises MalformedError where it could not have."""
        for _ in range(data.next()):
            is_text, length = data.next() == _TEXT, data.next()
            self._size += length + 1
            if len(self._texts) >= MOST_TEXTS or self._size > MOST_TEXT_BYTES:
                raise MalformedError("too many texts")
            if is_text:
                self._texts.append(_decoded(data.bytes(length)))
            else:
                self._texts.append(tuple(self.text(data.next()) for _ in range(length)))

    def text(self, number: int) -> str:
        """Raises MalformedError where there is none of this number."""
        text = self._numbered(number)
        if not isinstance(text, str):
            raise MalformedError("a list where a text belongs")
        return text

    def texts(self, number: int) -> tuple[str, ...]:
        """Raises MalformedError as `text` does."""
        texts = self._numbered(number)
        if isinstance(texts, str):
            raise MalformedError("a text where a list belongs")
        return texts

    def _numbered(self, number: int) -> Text:
        if not 0 <= number < len(self._texts):
            raise MalformedError("a text that was not told")
        return self._texts[number]


def _decoded(data: bytes) -> str:
    try:
        return data.decode("utf-8", "surrogatepass")
    except UnicodeDecodeError:
        raise MalformedError("no text") from None
