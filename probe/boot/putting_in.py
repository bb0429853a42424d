"""The probe into a process that did not ask for it: `gpuwatch run` and `attach --inject`.

The interpreter is the program's own, and so are its packages: what is there already is used, and
what is called like ours without being it stays what the program meant.
"""

import os
import sys
from importlib import invalidate_caches
from importlib.util import find_spec, module_from_spec, spec_from_file_location

NEEDED = {"zmq": "pyzmq", "msgspec": "msgspec"}
"""Module and distribution of what the publisher imports."""


def put_in(package: str) -> str | None:
    """Install the probe that lies in the directory `package`; why not, where it could not be."""
    invalidate_caches()  # they may have been installed since the program began
    missing = [NEEDED[module] for module in NEEDED if find_spec(module) is None]
    if missing:
        return (
            f"this Python lacks {' and '.join(missing)}. "
            f"Try: {sys.executable} -m pip install {' '.join(missing)}"
        )
    why_not = _make_importable(package)
    if why_not is not None:
        return why_not
    if os.environ.get("GPUWATCH") == "0":
        return "it was started with GPUWATCH=0"
    import probe

    probe.install()
    return None


def take_out(_: str) -> None:
    """Uninstall the probe that `put_in` has installed."""
    import probe

    probe.uninstall()


def _make_importable(package: str) -> str | None:
    """See to it that `import probe` gives ours; why not, where the program has another one."""
    spec = None if "probe" in sys.modules else find_spec("probe")
    if spec is None and "probe" not in sys.modules:
        file = os.path.join(package, "__init__.py")
        spec = spec_from_file_location("probe", file, submodule_search_locations=[package])
        assert spec is not None
        assert spec.loader is not None
        module = sys.modules["probe"] = module_from_spec(spec)
        spec.loader.exec_module(module)
        return None
    there = sys.modules["probe"].__spec__ if spec is None else spec
    folders = (there and there.submodule_search_locations) or []
    if any(os.path.isfile(os.path.join(folder, "wire", "page.py")) for folder in folders):
        return None
    return "the program has a module of its own that is called probe"
