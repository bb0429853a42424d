"""Text that every machine with Python has: the source of its standard library."""

import os
import re
import zlib
from pathlib import Path

import torch
from torch.utils.data import Dataset

FILES = 60
CONTEXT = 8
"""Words before the word to guess."""


class PythonWords(Dataset[tuple[torch.Tensor, int]]):
    """Each word of some files of the standard library, with the words before it, as hashes."""

    def __init__(self, rows: int, guesses: int) -> None:
        """The words before are hashed into `rows`, the word to guess into `guesses`."""
        library = Path(os.__file__).parent
        text = " ".join(
            path.read_text(encoding="utf-8", errors="replace")
            for path in sorted(library.glob("*.py"))[:FILES]
        )
        # crc32, since Python's own hash of a string differs between two processes.
        hashes = [zlib.crc32(word.encode()) for word in re.findall(r"\w+", text)]
        self.rows = torch.tensor([word % rows for word in hashes])
        self.guesses = [word % guesses for word in hashes]

    def __len__(self) -> int:
        """Words with a full context."""
        return len(self.guesses) - CONTEXT

    def __getitem__(self, index: int) -> tuple[torch.Tensor, int]:
        """The rows of CONTEXT words, and the class of the word after them."""
        after = index + CONTEXT
        return self.rows[index:after], self.guesses[after]
