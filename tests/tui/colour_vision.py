"""How far apart colours are, to eyes of different kinds.

Simulation: Machado, Oliveira and Fernandes 2009, severity 1.0, on linear RGB. Distance: CIE76, the
plain distance in L*a*b* (D65); 2.3 is about what can just be distinguished side by side.
"""

from collections.abc import Sequence
from math import dist

MACHADO = {
    "normal": ((1.0, 0.0, 0.0), (0.0, 1.0, 0.0), (0.0, 0.0, 1.0)),
    "deutan": (
        (0.367322, 0.860646, -0.227968),
        (0.280085, 0.672501, 0.047413),
        (-0.011820, 0.042940, 0.968881),
    ),
    "protan": (
        (0.152286, 1.052583, -0.204868),
        (0.114503, 0.786281, 0.099216),
        (-0.003882, -0.048116, 1.051998),
    ),
    "tritan": (
        (1.255528, -0.076749, -0.178779),
        (-0.078411, 0.930809, 0.147602),
        (0.004733, 0.691367, 0.303900),
    ),
}
TO_XYZ = (
    (0.4124564, 0.3575761, 0.1804375),
    (0.2126729, 0.7151522, 0.0721750),
    (0.0193339, 0.1191920, 0.9503041),
)
WHITE = (0.95047, 1.0, 1.08883)
Vector = Sequence[float]


def linear(colour: str) -> tuple[float, ...]:
    """ "#d55e00" in linear RGB, 0 to 1."""
    parts = [int(colour[at : at + 2], 16) / 255 for at in (1, 3, 5)]
    return tuple(c / 12.92 if c <= 0.04045 else ((c + 0.055) / 1.055) ** 2.4 for c in parts)


def mixed(front: str, back: str, part: float) -> str:
    """What the eye makes of a cell that is covered in part (as terminals blend: in sRGB)."""
    pairs = [(int(front[at : at + 2], 16), int(back[at : at + 2], 16)) for at in (1, 3, 5)]
    return "#" + "".join(f"{round(a * part + b * (1 - part)):02x}" for a, b in pairs)


def seen_as(colour: str, eye: str) -> tuple[float, float, float]:
    """L*a*b* of a colour as that kind of eye has it; "grey": by its luminance alone."""
    rgb = linear(colour)
    if eye == "grey":
        rgb = (_times(TO_XYZ, rgb)[1],) * 3
    else:
        rgb = tuple(min(1.0, max(0.0, value)) for value in _times(MACHADO[eye], rgb))
    x, y, z = (
        _cube(value / white) for value, white in zip(_times(TO_XYZ, rgb), WHITE, strict=True)
    )
    return 116 * y - 16, 500 * (x - y), 200 * (y - z)


def apart(one: str, other: str, eye: str = "normal") -> float:
    """CIE76."""
    return dist(seen_as(one, eye), seen_as(other, eye))


def contrast(one: str, other: str) -> float:
    """WCAG's ratio of two colours, 1 to 21."""
    lights = sorted(_times(TO_XYZ, linear(colour))[1] for colour in (one, other))
    return (lights[1] + 0.05) / (lights[0] + 0.05)


def _times(matrix: Sequence[Vector], vector: Vector) -> tuple[float, ...]:
    return tuple(sum(a * b for a, b in zip(row, vector, strict=True)) for row in matrix)


def _cube(value: float) -> float:
    return value ** (1 / 3) if value > 0.008856 else 7.787 * value + 16 / 116
