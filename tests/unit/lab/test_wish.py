"""Who sees what `gpuwatch lab` wants to be changed: every process until it trains."""

import os
import sys
from threading import get_ident
from typing import Any

import pytest
import torch
from torch.utils.data import DataLoader

from gpuwatch.probe.lab import VARIABLE, attacher
from gpuwatch.probe.recorder import Recorder


def test_what_is_started_before_the_first_backward_sees_it(monkeypatch: pytest.MonkeyPatch) -> None:
    """A launcher has torch and trains nothing; a first rank may start the others."""
    engine: Any = sys.modules["torch.autograd.graph"]
    for owner in (engine, torch.autograd):
        monkeypatch.setattr(owner, "_engine_run_backward", engine._engine_run_backward)
    for name in ("_get_iterator", "__init__"):
        monkeypatch.setattr(DataLoader, name, getattr(DataLoader, name))
    monkeypatch.setenv(VARIABLE, '{"workers": 0}')
    failures: list[Exception] = []
    recorder = Recorder(lambda kind: True, failures.append)
    attacher(recorder, os.environ[VARIABLE])()
    assert VARIABLE in os.environ
    recorder.owner = get_ident()
    torch.ones(1, requires_grad=True).sum().backward()
    assert VARIABLE not in os.environ, "the program's own processes run as they are"
    assert failures == []
