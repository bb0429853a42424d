"""The Pythons and torches that the probe is tried on, oldest to newest."""

from dataclasses import dataclass


@dataclass(frozen=True)
class Pair:
    """One environment."""

    python: str
    torch: str

    @property
    def name(self) -> str:
        """As its folder is called."""
        return f"python{self.python}-torch{self.torch}"


PAIRS = (
    Pair("3.10", "2.4.1"),
    Pair("3.12", "2.6.0"),
    Pair("3.13", "2.9.1"),
    Pair("3.12", "2.11.0"),
    Pair("3.11", "2.13.0"),
    Pair("3.14", "2.13.0"),
)
PACKAGES = ("hypothesis", "msgspec", "numpy", "psutil", "pytest", "pytest-timeout", "pyzmq")
"""What the tests need beside torch."""
TESTS = (
    "tests/unit/probe",
    "tests/integration/test_probe_process.py",
    "tests/integration/test_compiled.py",
)
"""The probe's own tests, and real trainings that are watched, compiled ones too."""
