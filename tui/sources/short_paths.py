"""File names as py-spy shortens them elsewhere: "torch/nn/functional.py", "train.py"."""

from pathlib import Path
from typing import Final

MOST: Final = 4_096
"""Files; a run has some hundred."""


class ShortPaths:
    """Cuts off the folders that hold no package. Looks at the target's own files."""

    def __init__(self, pid: int) -> None:
        self._root = Path(f"/proc/{pid}/root")
        self._short: dict[str, str] = {}

    def of(self, path: str) -> str:
        """The path from its outermost package on; "<string>" and the like stay."""
        short = self._short.get(path)
        if short is None:
            if len(self._short) >= MOST:
                self._short.clear()
            short = self._short[path] = self._shortened(path)
        return short

    def _shortened(self, path: str) -> str:
        file = Path(path)
        if not file.is_absolute():
            return path
        folder = file.parent
        while folder != folder.parent and self._is_package(folder):
            folder = folder.parent
        return str(file.relative_to(folder))

    def _is_package(self, folder: Path) -> bool:
        try:
            return (self._root / folder.relative_to("/") / "__init__.py").exists()
        except OSError:
            return False
