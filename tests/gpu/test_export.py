"""`gpuwatch export` of a training on a GPU: what needs the device's clock and NVML is there."""

from pathlib import Path

import pytest
import torch

from tests.integration.test_cli_export import exporting
from tests.processes.monitored import started

pytestmark = [
    pytest.mark.gpu,
    pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a CUDA device"),
]

TRAINS = """
import probe

probe.install()

import time
import torch
from torch.utils.data import DataLoader, Dataset


class Slow(Dataset):
    def __len__(self):
        return 10_000_000

    def __getitem__(self, index):
        time.sleep(0.002)
        return torch.ones(1024)


model = torch.nn.Sequential(*[torch.nn.Linear(1024, 1024) for _ in range(8)]).cuda()
optimizer = torch.optim.Adam(model.parameters(), lr=1e-6)
print("begins", flush=True)
for batch in DataLoader(Slow(), batch_size=16):
    model(batch.cuda()).sum().backward()
    optimizer.step()
    optimizer.zero_grad()
"""


def test_the_metrics_of_a_gpu(tmp_path: Path) -> None:
    with started(TRAINS, tmp_path) as run:
        assert run.line() == "begins"
        with exporting(str(run.pid)) as exporter:
            page = exporter.until(
                r'gpuwatch_gpu_info{.*UUID="GPU-[0-9a-f-]+",gpu="\d+",model="[^"]+"} 1',
                r'gpuwatch_gpu_time_ratio{.*part="input"} 0\.[5-9]',
                r"gpuwatch_exposed_wait_ratio{.*} 0\.[5-9]",
                r'gpuwatch_phase_ratio{.*phase="data",clock="gpu"} 0\.[5-9]',
                r"gpuwatch_gpu_lag_seconds{",
                r"gpuwatch_gpu_memory_used_bytes{.*} [1-9]",
                r'gpuwatch_allocator_bytes{.*what="allocated"} [1-9]',
                r'gpuwatch_verdict_info{.*kind="input"',
            )
    assert len(page) < 130, "series of one rank with a GPU, and of the exporter"
