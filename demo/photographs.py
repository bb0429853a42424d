"""A set of JPEG files as heavy to decode as photographs, and the datasets that read them.

The pictures are noise with the spectrum of a photograph (each octave half as strong as the one
below it), tinted by their class so that there is something to learn. They are made once, in a
few seconds, in a folder of the temp directory that belongs to this user.
"""

import io
import os
import random
import shutil
import tempfile
from collections.abc import Callable
from pathlib import Path

import numpy as np
import torch
from network import CLASSES
from PIL import Image
from torch.utils.data import Dataset

COUNT = 16
WIDTH, HEIGHT = 1280, 960
OCTAVES = 7
EPOCH = 20_000
"""Pictures in an epoch: every file many times over, each time cropped and flipped anew."""

Example = tuple[torch.Tensor, int]
"""A uint8 picture, [3, side, side], and its class."""


def photographs() -> list[Path]:
    """The JPEG files; made now if this machine does not have them yet."""
    folder = Path(tempfile.gettempdir()) / f"gpuwatch-demo-{os.getuid()}"
    if folder.exists() and folder.stat().st_uid != os.getuid():
        # Somebody else took the name: theirs are not opened.
        folder = Path(tempfile.mkdtemp(prefix="gpuwatch-demo-"))
        folder.rmdir()
    if not folder.exists():
        print(f"making {COUNT} photographs in {folder}", flush=True)
        making = Path(tempfile.mkdtemp(prefix="gpuwatch-demo-making-"))
        for number in range(COUNT):
            picture(number).save(making / f"{number:03d}.jpg", quality=90)
        try:
            making.rename(folder)
        except OSError:  # another run was quicker: its files are as good
            shutil.rmtree(making)
    return sorted(folder.glob("*.jpg"))


def picture(number: int) -> Image.Image:
    """One picture of noise, with the tint of its class."""
    generator = np.random.default_rng(number)
    tint = np.random.default_rng(number % CLASSES + 1_000).uniform(60, 190, size=3)
    pixels = np.broadcast_to(tint, (HEIGHT, WIDTH, 3)).astype(np.float32)
    for octave in range(OCTAVES):
        rows, columns = 6 << octave, 8 << octave
        noise = generator.integers(0, 256, size=(rows, columns, 3), dtype=np.uint8)
        layer = Image.fromarray(noise).resize((WIDTH, HEIGHT), Image.Resampling.BILINEAR)
        pixels += (np.asarray(layer, dtype=np.float32) - 127) * 0.5 ** (octave / 2 + 1)
    return Image.fromarray(pixels.clip(0, 255).astype(np.uint8))


def decode(data: bytes, least: int | None = None) -> Image.Image:
    """Decode a JPEG file; with `least`, at the smallest eighth that is at least so many pixels."""
    image = Image.open(io.BytesIO(data))
    if least is not None:
        image.draft("RGB", (least, least))
    return image.convert("RGB")


def augment(image: Image.Image, side: int) -> torch.Tensor:
    """A random square of the picture, shrunk to `side` pixels and flipped half of the time."""
    square = random.uniform(0.6, 1.0) * image.height
    left = random.uniform(0, image.width - square)
    top = random.uniform(0, image.height - square)
    box = (left, top, left + square, top + square)
    small = image.resize((side, side), Image.Resampling.BILINEAR, box=box)
    if random.random() < 0.5:
        small = small.transpose(Image.Transpose.FLIP_LEFT_RIGHT)
    return torch.from_numpy(np.array(small)).permute(2, 0, 1)


class PhotographFiles(Dataset[Example]):
    """Pictures read from their files, decoded and augmented, each time they are asked for."""

    def __init__(
        self, side: int, *, draft: bool = False, read: Callable[[Path], bytes] = Path.read_bytes
    ) -> None:
        """`draft` decodes no more than is needed; `read` fetches a file's bytes."""
        self.paths = photographs()
        self.side = side
        self.least = side if draft else None
        self.read = read

    def __len__(self) -> int:
        """Pictures in an epoch."""
        return EPOCH

    def __getitem__(self, index: int) -> Example:
        """Picture `index` of the epoch."""
        number = index % len(self.paths)
        image = decode(self.read(self.paths[number]), self.least)
        return augment(image, self.side), number % CLASSES


class PhotographsInMemory(Dataset[Example]):
    """The same pictures, decoded once and kept: a dataset that costs next to nothing."""

    def __init__(self, side: int, length: int = EPOCH) -> None:
        images = [augment(decode(path.read_bytes(), side), side) for path in photographs()]
        self.images = torch.stack(images)
        self.length = length

    def __len__(self) -> int:
        """Pictures in an epoch."""
        return self.length

    def __getitem__(self, index: int) -> Example:
        """Picture `index` of the epoch."""
        number = index % len(self.images)
        image = self.images[number]
        return (image.flip(2) if random.random() < 0.5 else image), number % CLASSES
