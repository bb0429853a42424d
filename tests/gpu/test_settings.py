"""The settings of loops on a real device: autocast's casts, the scaler, the device itself."""

from typing import Any

import pytest
import torch

from gpuwatch.probe.hooks import backward, optimizer
from gpuwatch.probe.recorder import Recorder
from gpuwatch.probe.settings.sampler import SettingsSampler
from gpuwatch.tui.settings import Settings

pytestmark = [
    pytest.mark.gpu,
    pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a CUDA device"),
]


def seen(
    autocast: torch.dtype | None, scaled: bool, keeps: bool = False, **options: Any
) -> Settings:
    """What is read of a few steps of a small convolutional net."""
    failures: list[Exception] = []
    recorder = Recorder(arm=lambda _: True, trip=failures.append)
    sampler = SettingsSampler(recorder)
    detach = [hook.attach(recorder) for hook in (backward, optimizer)]
    net = torch.nn.Sequential(
        torch.nn.Conv2d(3, 16, 3), torch.nn.ReLU(), torch.nn.Flatten(), torch.nn.LazyLinear(4)
    ).cuda()
    x = torch.randn(4, 3, 16, 16, device="cuda")
    net(x)
    updates = torch.optim.AdamW(net.parameters(), **options)
    scaler = torch.amp.GradScaler("cuda", enabled=scaled)
    try:
        sampler.ask()
        for _ in range(4):
            updates.zero_grad(set_to_none=not keeps)
            with torch.autocast("cuda", autocast or torch.float16, enabled=autocast is not None):
                loss = torch.nn.functional.cross_entropy(net(x), torch.arange(4, device="cuda"))
            scaler.scale(loss).backward()
            scaler.step(updates)
            scaler.update()
    finally:
        for undo in detach:
            undo()
    assert not failures
    assert not recorder.samples_settings, "the turn came to an end"
    return Settings(**sampler.reading)


@pytest.mark.parametrize("fused", [False, True])
@pytest.mark.parametrize("scaled", [False, True])
@pytest.mark.parametrize("autocast", [None, torch.bfloat16, torch.float16])
def test_autocast_and_scaler(autocast: torch.dtype | None, scaled: bool, fused: bool) -> None:
    read = seen(autocast, scaled, fused=fused)
    name = "" if autocast is None else str(autocast).removeprefix("torch.")
    assert (read.autocast, read.scaler, read.fused) == (name, scaled, fused)
    assert (read.parameter_dtype, read.parameter_device) == ("float32", "cuda")
    major, minor = torch.cuda.get_device_capability()
    assert read.capability == 10 * major + minor


@pytest.mark.parametrize("keeps", [False, True])
def test_gradients_that_live_on(keeps: bool) -> None:
    assert seen(torch.bfloat16, False, keeps).set_to_none is not keeps
