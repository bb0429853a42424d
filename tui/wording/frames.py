"""Frames, "function (file:line)", in fewer cells."""


def short_frame(frame: str, with_class: bool = True) -> str:
    """ "Image.load (PIL/Image.py:3)" as "Image.load (Image.py:3)", or "load (Image.py:3)"."""
    function, bracket, place = frame.rpartition(" (")
    if not bracket:
        return frame
    if not with_class:
        function = function.rpartition(".")[2] or function
    return f"{function} ({place.rpartition('/')[2]}"


def function_of(frame: str) -> str:
    """ "load" of "ImageFile.load (PIL/ImageFile.py:3)"."""
    return frame.partition(" (")[0].rpartition(".")[2]
