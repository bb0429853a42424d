"""What waits for a module runs once the module is there, whoever else waits for it."""

import importlib
import sys
from pathlib import Path

import pytest

from gpuwatch.probe.hooks.arrival import ArrivalFinder


def test_two_copies_of_the_probe_wait_for_the_same_module(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each shadows the loader's method: the second one's must not be missing to the first."""
    (tmp_path / "awaited_by_two.py").write_text("value = 3\n")
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.setattr(sys, "meta_path", list(sys.meta_path))
    seen: list[str] = []
    for name in ("one", "another"):
        ArrivalFinder().when_imported("awaited_by_two", lambda name=name: seen.append(name))  # type: ignore[misc]
    module = importlib.import_module("awaited_by_two")
    assert module.value == 3
    assert sorted(seen) == ["another", "one"]
    assert "exec_module" not in vars(module.__loader__), "the loader is as it would have been"
