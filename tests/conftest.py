"""What tests of several folders need."""

import gc
import os
import shutil
import signal

import hypothesis
import pytest

# Set before torch is loaded, here and in all that tests start. Its threads wait by spinning: a
# training of small products took 10 times the CPU where several tests had to share two cores.
os.environ.setdefault("OMP_NUM_THREADS", "1")
# The same examples at each run, and none too slow on a busy machine. Whoever looks for new ones:
# `pytest --hypothesis-profile=hunt`, and `make faults`.
hypothesis.settings.register_profile("same", derandomize=True, deadline=None)
hypothesis.settings.register_profile("hunt", deadline=None, max_examples=2_000)
hypothesis.settings.load_profile("same")

if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    # A job in the background of a shell ignores Ctrl-C, and so would all that tests start.
    signal.signal(signal.SIGINT, signal.default_int_handler)
if signal.getsignal(signal.SIGHUP) is signal.SIG_IGN:
    signal.signal(signal.SIGHUP, signal.SIG_DFL)  # the same below nohup


# Torch and six thousand tests are a million objects, which stay: Python's collector does not go
# through them again and again, neither while they are made nor afterwards.
gc.disable()


@pytest.hookimpl(tryfirst=True)
def pytest_runtestloop() -> None:
    """All are made; also in the process that hands them out."""
    gc.freeze()
    gc.enable()


@pytest.fixture(scope="session")
def newer() -> str:
    """A Python into which something can be put."""
    python = os.environ.get("GPUWATCH_PYTHON_314") or shutil.which("python3.14")
    if python is None:
        pytest.skip("no Python 3.14 here (GPUWATCH_PYTHON_314)")
    return python
