"""torch.compile must not trace into the probe: dynamo is made to skip the files of our wrappers.

After the graph break at a `backward()` inside a compiled step, dynamo would go on in our wrapper:
it would guard on the ring's length, which changes while it compiles, and the user's step would
fail. The optimizer's hooks and the public functions are left out: inlined, they ask first whether
they are traced, and cost no break.
"""

import sys
from typing import Any, Final

from ..recorder import Recorder
from . import Detach

MODULE = "torch._dynamo.trace_rules"
PACKAGE: Final = __name__.removesuffix(".hooks.tracing")
"""The name that the probe was imported by."""
SKIPPED: Final = (
    f"{PACKAGE}.hooks.backward",
    f"{PACKAGE}.hooks.dataloader",
    f"{PACKAGE}.hooks.checkpoint",
    f"{PACKAGE}.hooks.dispatched",
    f"{PACKAGE}.recorder",
    f"{PACKAGE}.call_costs",
    f"{PACKAGE}.loaders",
    f"{PACKAGE}.padding",
    f"{PACKAGE}.notes",
    f"{PACKAGE}.first_number",
    f"{PACKAGE}.numerics",
    f"{PACKAGE}.flop_count",
    f"{PACKAGE}.serve",
    f"{PACKAGE}.watched_looks",
    f"{PACKAGE}.dispatch_modes",
    f"{PACKAGE}.device",
    f"{PACKAGE}.one_step",
    f"{PACKAGE}.settings",
)


def attach(recorder: Recorder) -> Detach:
    """Have the public functions ask, and add the files to dynamo's list. Where this torch keeps
    none, dynamo traces them."""
    compiler: Any = sys.modules["torch.compiler"]
    recorder.is_traced = getattr(compiler, "is_dynamo_compiling", compiler.is_compiling)
    rules: Any = sys.modules[MODULE]
    skipped, add = getattr(rules, "SKIP_DIRS", None), getattr(rules, "add", None)
    again = getattr(rules, "_recompile_re", None)
    if not isinstance(skipped, list) or add is None or again is None:
        return lambda: ()
    before = len(skipped)
    for name in SKIPPED:
        add(name)
    ours = skipped[before:]

    def detach() -> tuple[str, ...]:
        for path in ours:
            if path in skipped:
                skipped.remove(path)
        again()
        return ()

    return detach
