"""Our package in a process where the names `probe` and `gpuwatch` may be somebody else's.

The interpreter is the program's own, and so are its packages: a copy of ours that is there already
is used, and what is only called like ours stays the program's. Ours is never put in as `probe`: a
name that is free now may be that of a folder which the program looks into later on. This file is
loaded by its path, and so imports nothing of ours.
"""

import os
import sys
import threading
from importlib import import_module, invalidate_caches
from importlib.util import find_spec, module_from_spec, spec_from_file_location
from types import ModuleType

NAMES = ("gpuwatch", "_gpuwatch")
"""What the package may be called here: the second where the program has a gpuwatch of its own."""


def put_in(package: str) -> str | None:
    """Install the probe that lies in the directory `package` (`gpuwatch run`, `attach --inject`);
    why not, where it could not be."""
    invalidate_caches()  # they may have been installed since the program began
    if os.environ.get("GPUWATCH") == "0":
        return "it was started with GPUWATCH=0"
    import_ours("probe", os.path.dirname(package)).install()
    return None


def take_out(package: str) -> None:
    """Uninstall the probe that `put_in` has installed."""
    home = os.path.dirname(package)
    import_ours("probe.boot.putting_in", home).OUT.set()
    import_ours("probe", home).uninstall()


LOOK_S = 5.0
DESERTED_S = 60.0
"""Without its monitor and without any other: then nobody is left who would take it out."""
OUT = threading.Event()
"""It was taken out by who put it in."""


def stay(package: str, pid: int, ticks: int, look_s: float = LOOK_S) -> None:
    """Stay until the probe is taken out, or take it out: its monitor, a process with that pid and
    start time, was killed, and nobody has watched for `DESERTED_S`."""
    home = os.path.dirname(package)
    out, api = import_ours("probe.boot.putting_in", home).OUT, import_ours("probe.api", home)
    out.clear()
    deserted_s = 0.0
    while deserted_s < DESERTED_S:
        if out.wait(look_s) or (recorder := api._recorder()) is None:
            return
        watched = recorder.watched or _is_there(pid, ticks)
        deserted_s = 0.0 if watched else deserted_s + look_s
    api.uninstall()


def _is_there(pid: int, ticks: int) -> bool:
    try:
        with open(f"/proc/{pid}/stat", "rb") as stat:
            return int(stat.read().rpartition(b")")[2].split()[19]) == ticks
    except OSError:
        pass  # it has ended, or another user's processes are hidden
    try:
        os.kill(pid, 0)
    except PermissionError:
        return True
    except OSError:
        return False
    return True


def import_ours(module: str, home: str) -> ModuleType:
    """A module of our package: of the program's own copy, else of the one in the directory `home`.
    Ours import each other relatively, so that any name serves."""
    for name in NAMES:
        there = sys.modules.get(name)
        spec = getattr(there, "__spec__", None) if there is not None else find_spec(name)
        if there is None and spec is None:
            file = os.path.join(home, "__init__.py")
            spec = spec_from_file_location(name, file, submodule_search_locations=[home])
        elif not _is_ours(spec):
            continue
        if there is None:
            assert spec is not None
            assert spec.loader is not None
            package = sys.modules[name] = module_from_spec(spec)
            spec.loader.exec_module(package)
        return import_module(f"{name}.{module}")
    raise ImportError("there are other modules called " + " and ".join(map(_named, NAMES)))


def _named(name: str) -> str:
    spec = getattr(sys.modules.get(name), "__spec__", None) or find_spec(name)
    return f"{name} ({getattr(spec, 'origin', None) or 'a folder'})"


def _is_ours(spec: object) -> bool:
    folders = getattr(spec, "submodule_search_locations", None) or []
    return any(os.path.isfile(os.path.join(it, "probe", "wire", "page.py")) for it in folders)
