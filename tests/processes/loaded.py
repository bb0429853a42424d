"""Everything of ours loaded at once, for a process that then becomes another user: one who may
read neither this tree nor the interpreter and its packages."""

import ast
import pkgutil
import sys
from importlib import import_module
from pathlib import Path

import gpuwatch

APART = ("gpuwatch.tui.screens", "gpuwatch.tui.widgets", "gpuwatch.tui.app", "gpuwatch.probe.boot")


def load_everything() -> None:
    """Import all our modules but those of the screen, and what their functions import late."""
    for found in pkgutil.walk_packages(gpuwatch.__path__, "gpuwatch."):
        if not found.name.startswith(APART):
            module = import_module(found.name)
            if module.__file__ is not None:
                for name in _late_imports(Path(module.__file__).read_text("utf-8")):
                    import_module(name)


def _late_imports(source: str) -> set[str]:
    """The modules of the standard library that are imported anywhere in it."""
    imports = (node for node in ast.walk(ast.parse(source)) if isinstance(node, ast.Import))
    names = {one.name for node in imports for one in node.names}
    return {name for name in names if name.partition(".")[0] in sys.stdlib_module_names}
