"""Texts of the user's that go onto the wire: UTF-8 has to hold them."""


def encodable(text: str) -> str:
    """The text with a question mark for what is none: a file's name may hold any bytes."""
    return text.encode("utf-8", "replace").decode()
