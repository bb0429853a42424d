"""Run a scenario's script with TraceML's `trace_step` in its loop, where its manual wants it.

    traceml run evaluation/traced_script.py --args SCRIPT ARGUMENTS...

A step is what a `for` over batches does before it asks `run.finished(...)`. The source is changed
as its author would: `with trace_step(net):` around it. Ends with 3 where there is no such loop.
"""

import ast
import sys
from collections.abc import Mapping
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Any, Final

NO_SUCH_LOOP: Final = 3
AROUND: Final = "_traced_step"


class Around(ast.NodeTransformer):
    """Puts the step of each training loop into a `with`."""

    def __init__(self) -> None:
        self.loops = 0

    def visit_For(self, node: ast.For) -> ast.For:
        """A loop over batches, or something else."""
        self.generic_visit(node)
        for index, statement in enumerate(node.body):
            if index and isinstance(statement, ast.If) and _asks_whether_finished(statement.test):
                with_step = ast.parse(f"with {AROUND}(locals()): pass").body[0]
                assert isinstance(with_step, ast.With)
                with_step.body = node.body[:index]
                node.body[:index] = [with_step]
                self.loops += 1
                break
        return node


def traced(source: str) -> ast.Module | None:
    """The script with its steps marked; None where no loop looks like one of ours."""
    around = Around()
    tree: ast.Module = around.visit(ast.parse(source))
    return ast.fix_missing_locations(tree) if around.loops else None


def main() -> int:
    """Run it."""
    import torch
    import traceml_ai

    script = Path(sys.argv[1])
    tree = traced(script.read_text())
    if tree is None:
        return NO_SUCH_LOOP
    traceml_ai.init(mode="auto")

    def around(names: Mapping[str, Any]) -> AbstractContextManager[None]:
        nets = (each for each in names.values() if isinstance(each, torch.nn.Module))
        step: AbstractContextManager[None] = traceml_ai.trace_step(next(nets))
        return step

    sys.argv[:] = sys.argv[1:]
    sys.path.insert(0, str(script.parent))
    exec(compile(tree, str(script), "exec"), {"__name__": "__main__", AROUND: around})
    return 0


def _asks_whether_finished(test: ast.expr) -> bool:
    return (
        isinstance(test, ast.Call)
        and isinstance(test.func, ast.Attribute)
        and test.func.attr == "finished"
    )


if __name__ == "__main__":
    sys.exit(main())
