"""The syntax of the user's own files: of those that stacks named last, as many as room is left for.

What was learned of a run outlives it: nodes are remembered by where they stand, `Mark`.
"""

import ast
from collections.abc import Callable
from typing import Final, NamedTuple, TypeVar
from weakref import WeakKeyDictionary

from ...verdict.syntax import parsed
from .files import SourceLines

MOST_CHARACTERS: Final = 150_000
"""Of a file that is parsed: one of 277,000 takes 0.35 s and 6 MB."""
MOST_KEPT: Final = 1_200_000
"""Characters of all files whose syntax is kept: 25 to 45 MB. A count of files would be too few for
a project of small ones: each chunk of samples would parse them all anew."""

Node = TypeVar("Node", bound=ast.AST)
Found = TypeVar("Found")


class Mark(NamedTuple):
    """Where a loop, a function or a statement stands: the same when its file is parsed again."""

    path: str
    kind: str
    line: int
    column: int


def mark_of(path: str, node: ast.AST) -> Mark:
    """A whole file stands at its line 0."""
    kind = type(node).__name__
    return Mark(path, kind, getattr(node, "lineno", 0), getattr(node, "col_offset", 0))


class SyntaxTrees:
    """Parses the files of one process."""

    def __init__(self, lines: SourceLines) -> None:
        self._lines = lines
        self._trees: dict[str, tuple[ast.Module | None, int]] = {}
        """With its characters; the one that was asked for last is the last."""
        self._characters = 0

    def of(self, path: str) -> ast.Module | None:
        """None where the file cannot be read, is no Python, or is too long."""
        known = self._trees.pop(path, None)
        if known is None:
            known = self._parsed(path)
            self._characters += known[1]
        self._trees[path] = known
        while self._characters > MOST_KEPT:
            _, length = self._trees.pop(next(iter(self._trees)))
            self._characters -= length
        return known[0]

    def _parsed(self, path: str) -> tuple[ast.Module | None, int]:
        text = "\n".join(self._lines.all_of(path))
        tree = parsed_file(text)
        return tree, 0 if tree is None else len(text)


def parsed_file(text: str) -> ast.Module | None:
    """None of a text that is no Python, or too long."""
    return parsed(text) if 0 < len(text) <= MOST_CHARACTERS else None


def once_of_each(find: Callable[[Node], Found]) -> Callable[[Node], Found]:
    """What it finds in a file, or in a function of it, is kept for as long as the file's syntax."""
    found: WeakKeyDictionary[Node, Found] = WeakKeyDictionary()

    def kept(node: Node) -> Found:
        if node not in found:
            found[node] = find(node)
        return found[node]

    return kept
