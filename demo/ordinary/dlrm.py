"""A recommender: bags of rows from many tables, interactions of them, and two small nets.

As in recommendation repositories: batches of random clicks are made by the dataset as they are
asked for.
"""

import argparse

import numpy as np
import torch
from meter import DEVICE, ON_GPU, Meter, add_budget
from torch import nn
from torch.utils.data import DataLoader, Dataset

tables, rows, dim, dense_features = (26, 200_000, 64, 13) if ON_GPU else (6, 20_000, 16, 13)
batch_size, pooling = (4_096, 4) if ON_GPU else (128, 3)
Click = tuple[torch.Tensor, torch.Tensor, torch.Tensor]


class RandomClicks(Dataset[Click]):
    def __init__(self, fixed: bool) -> None:
        self.fixed = fixed
        self.rng = np.random.default_rng(0)
        self.kept = [self.make() for _ in range(8)] if fixed else []

    def __len__(self) -> int:
        return 1_000_000

    def make(self) -> Click:
        dense = self.rng.random((batch_size, dense_features)).astype(np.float32)
        sparse = np.stack(
            [
                np.unique(self.rng.integers(rows, size=batch_size * pooling * 2))[
                    : batch_size * pooling
                ].reshape(batch_size, -1)[:, :pooling]
                if batch_size * pooling * 2 < rows
                else self.rng.integers(rows, size=(batch_size, pooling))
                for _ in range(tables)
            ]
        )
        labels = (self.rng.random(batch_size) < 0.25).astype(np.float32)
        return torch.from_numpy(dense), torch.from_numpy(sparse), torch.from_numpy(labels)

    def __getitem__(self, index: int) -> Click:
        return self.kept[index % 8] if self.fixed else self.make()


class DLRM(nn.Module):
    def __init__(self, sparse: bool) -> None:
        super().__init__()
        self.emb_l = nn.ModuleList(
            nn.EmbeddingBag(rows, dim, mode="sum", sparse=sparse) for _ in range(tables)
        )
        self.bot_l = nn.Sequential(
            nn.Linear(dense_features, 512), nn.ReLU(), nn.Linear(512, dim), nn.ReLU()
        )
        pairs = (tables + 1) * tables // 2
        self.top_l = nn.Sequential(
            nn.Linear(dim + pairs, 512),
            nn.ReLU(),
            nn.Linear(512, 256),
            nn.ReLU(),
            nn.Linear(256, 1),
        )
        self.register_buffer("pairs", torch.tril_indices(tables + 1, tables + 1, -1))

    def forward(self, dense: torch.Tensor, sparse: torch.Tensor) -> torch.Tensor:
        x = self.bot_l(dense)
        ly = [table(sparse[at]) for at, table in enumerate(self.emb_l)]
        stacked = torch.stack([x, *ly], dim=1)
        z = torch.bmm(stacked, stacked.transpose(1, 2))
        left, right = self.get_buffer("pairs")
        return self.top_l(torch.cat([x, z[:, left, right]], dim=1))[:, 0]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    add_budget(parser)
    parser.add_argument("--sparse", action="store_true", help="sparse gradients of the tables")
    parser.add_argument("--fixed-data", action="store_true", help="batches made once")
    parser.add_argument("--workers", type=int, default=0)
    parser.add_argument("--print-freq", type=int, default=10)
    args = parser.parse_args()
    torch.manual_seed(0)
    loader = DataLoader(
        RandomClicks(args.fixed_data), batch_size=None, num_workers=args.workers, pin_memory=ON_GPU
    )
    model = DLRM(args.sparse).to(DEVICE)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    loss_fn = nn.BCEWithLogitsLoss()
    meter = Meter(args.seconds)
    for j, (dense, sparse, labels) in enumerate(loader):
        dense, sparse, labels = dense.to(DEVICE), sparse.to(DEVICE), labels.to(DEVICE)
        z = model(dense, sparse)
        loss = loss_fn(z, labels)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        if j % args.print_freq == 0:
            accuracy = ((z > 0) == (labels > 0.5)).float().mean().item()
            print(f"it {j}, loss {loss.item():.6f}, accuracy {100 * accuracy:.2f} %")
        if meter.update(len(labels)):
            return


if __name__ == "__main__":
    main()
