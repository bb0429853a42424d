"""What tests of several folders need."""

import os
import shutil

import pytest


@pytest.fixture(scope="session")
def newer() -> str:
    """A Python into which something can be put."""
    python = os.environ.get("GPUWATCH_PYTHON_314") or shutil.which("python3.14")
    if python is None:
        pytest.skip("no Python 3.14 here (GPUWATCH_PYTHON_314)")
    return python
