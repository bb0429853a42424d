"""Run inside a process by `attach --inject`, on its main thread: only starts another one there.

The monitor writes it out with a call of `begin` behind it, and erases it afterwards.
"""

import _thread


def begin(package: str, action: str, answer: str, monitor: "tuple[int, int]") -> None:
    """Do `action`, a function of `putting_in`, with the probe in the directory `package`.

    The file `answer` is made when that is done: empty, or why it was not. `monitor`: pid and start
    time of who put it in, in whose place the probe is taken out if that cannot do it any more.
    """
    _thread.start_new_thread(_act, (package, action, answer, monitor))


def _act(package: str, action: str, answer: str, monitor: "tuple[int, int]") -> None:
    import os
    from importlib.machinery import SourceFileLoader
    from types import ModuleType

    try:
        module = ModuleType("gpuwatch_putting_in")
        file = os.path.join(package, "boot", "putting_in.py")
        SourceFileLoader(module.__name__, file).exec_module(module)
        fault = getattr(module, action)(package) or ""
    except Exception as error:
        fault = f"{type(error).__name__}: {error}"
    with open(f"{answer}.part", "w", encoding="utf-8") as part:
        part.write(fault)
    os.rename(f"{answer}.part", answer)
    if action == "put_in" and not fault:
        module.stay(package, *monitor)
