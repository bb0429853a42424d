"""What the leaking scripts share: data, a net, and a pace that leaves a small machine alone."""

import os
import time
from collections.abc import Iterator

import torch
from torch.utils.data import DataLoader, Dataset

DEVICE = torch.device("cuda" if torch.cuda.is_available() else "cpu")
WIDTH = 512 if DEVICE.type == "cuda" else 64
BATCH = 64
PAUSE_S = float(os.environ.get("LEAK_PAUSE_S", "0.01"))


class Samples(Dataset[torch.Tensor]):
    """Random vectors, without end as far as a test goes."""

    def __len__(self) -> int:
        return 1_000_000

    def __getitem__(self, index: int) -> torch.Tensor:
        return torch.full((WIDTH,), index % 7 / 7)


def batches(
    workers: int = 0, dataset: Dataset[torch.Tensor] | None = None
) -> Iterator[torch.Tensor]:
    """Batches on the device."""
    torch.set_num_threads(1)
    loader = DataLoader(dataset or Samples(), batch_size=BATCH, num_workers=workers)
    for batch in loader:
        time.sleep(PAUSE_S)
        yield batch.to(DEVICE)


def network() -> torch.nn.Module:
    """Two layers."""
    return torch.nn.Sequential(
        torch.nn.Linear(WIDTH, 2 * WIDTH), torch.nn.ReLU(), torch.nn.Linear(2 * WIDTH, 1)
    ).to(DEVICE)
