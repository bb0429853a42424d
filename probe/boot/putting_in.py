"""The probe into a process that did not ask for it: `gpuwatch run` and `attach --inject`.

The interpreter is the program's own, and so are its packages: what is there already is used, and
what is called like ours without being it stays what the program meant.
"""

import os
import sys
from importlib import import_module, invalidate_caches
from importlib.util import find_spec, module_from_spec, spec_from_file_location
from types import ModuleType

NAMES = ("gpuwatch", "_gpuwatch")
"""What the package may be called here: the second where the program has a gpuwatch of its own."""


def put_in(package: str) -> str | None:
    """Install the probe that lies in the directory `package`; why not, where it could not be."""
    invalidate_caches()  # they may have been installed since the program began
    if os.environ.get("GPUWATCH") == "0":
        return "it was started with GPUWATCH=0"
    probe = _probe(os.path.dirname(package))
    if "probe" not in sys.modules and find_spec("probe") is None:
        sys.modules["probe"] = probe
    probe.install()
    return None


def take_out(package: str) -> None:
    """Uninstall the probe that `put_in` has installed."""
    _probe(os.path.dirname(package)).uninstall()


def _probe(home: str) -> ModuleType:
    """Our probe: the program's own copy, else the one below `home`. Its modules import each other
    relatively, so that any name serves."""
    name = next(name for name in NAMES if _is_free_or_ours(name))
    if name not in sys.modules and find_spec(name) is None:
        file = os.path.join(home, "__init__.py")
        spec = spec_from_file_location(name, file, submodule_search_locations=[home])
        assert spec is not None
        assert spec.loader is not None
        module = sys.modules[name] = module_from_spec(spec)
        spec.loader.exec_module(module)
    return import_module(f"{name}.probe")


def _is_free_or_ours(name: str) -> bool:
    spec = sys.modules[name].__spec__ if name in sys.modules else find_spec(name)
    if spec is None:
        return name not in sys.modules
    folders = spec.submodule_search_locations or []
    return any(os.path.isfile(os.path.join(it, "probe", "wire", "page.py")) for it in folders)
