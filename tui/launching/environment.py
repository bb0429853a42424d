"""The environment in which every Python finds the probe."""

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Final

from probe.wire import page

BOOT: Final = str(Path(page.__file__).parents[1] / "boot")
"""Its `sitecustomize` waits for torch."""


def with_probe(environ: Mapping[str, str], boot: str = BOOT) -> dict[str, str]:
    """The same, with `boot` first on PYTHONPATH, which is otherwise kept as it is."""
    before = environ.get("PYTHONPATH", "")
    entries = before.split(os.pathsep) if before else []
    if entries[:1] == [boot]:
        return dict(environ)
    return {**environ, "PYTHONPATH": os.pathsep.join([boot, *entries])}
