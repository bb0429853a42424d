"""Imported by `site` in every Python below `gpuwatch run`: has somebody wait for torch there, and
imports the one that it hides. No syntax that a Python 2 does not know: that is left alone.
"""

import os
import sys

_HERE = os.path.dirname(__file__)

if sys.version_info >= (3, 10) and os.environ.get("GPUWATCH") != "0":
    import gpuwatch_arming  # type: ignore[import-not-found]

    sys.meta_path.insert(0, gpuwatch_arming.TorchFinder())
    del sys.modules["gpuwatch_arming"]
sys.path[:] = [entry for entry in sys.path if entry != _HERE]
sys.path_importer_cache.pop(_HERE, None)
# The one that ours has hidden; where there is none, the ImportError that `site` would have met.
del sys.modules["sitecustomize"]
import sitecustomize  # type: ignore[import-not-found]  # noqa: E402, F401
