"""A graph network over one whole graph: train, then test on all three splits, in each epoch.

As in examples of graph libraries: messages are gathered along the edges and summed at the nodes.
"""

import argparse

import torch
from meter import DEVICE, ON_GPU, Meter, add_budget
from torch import nn
from torch.nn import functional as F

nodes, degree, features = (60_000, 16, 256) if ON_GPU else (3_000, 5, 32)
hidden, classes = (256, 40) if ON_GPU else (32, 7)


class GCNConv(nn.Module):
    def __init__(self, inputs: int, outputs: int) -> None:
        super().__init__()
        self.lin = nn.Linear(inputs, outputs)

    def forward(
        self, x: torch.Tensor, edge_index: torch.Tensor, weight: torch.Tensor
    ) -> torch.Tensor:
        x = self.lin(x)
        row, col = edge_index
        messages = x[row] * weight[:, None]
        return torch.zeros_like(x).index_add_(0, col, messages)


class SparseConv(GCNConv):
    """The same as one product with a sparse matrix."""

    def forward(
        self, x: torch.Tensor, edge_index: torch.Tensor, weight: torch.Tensor
    ) -> torch.Tensor:
        return torch.sparse.mm(weight, self.lin(x))


class Net(nn.Module):
    def __init__(self, sparse: bool) -> None:
        super().__init__()
        conv = SparseConv if sparse else GCNConv
        self.conv1, self.conv2 = conv(features, hidden), conv(hidden, hidden)
        self.conv3 = conv(hidden, classes)

    def forward(
        self, x: torch.Tensor, edge_index: torch.Tensor, weight: torch.Tensor
    ) -> torch.Tensor:
        x = F.dropout(F.relu(self.conv1(x, edge_index, weight)), training=self.training)
        x = F.dropout(F.relu(self.conv2(x, edge_index, weight)), training=self.training)
        return self.conv3(x, edge_index, weight)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    add_budget(parser)
    parser.add_argument("--test-every", type=int, default=1, help="epochs")
    parser.add_argument("--sparse", action="store_true", help="messages as a sparse product")
    parser.add_argument("--fused", action="store_true", help="Adam, fused")
    args = parser.parse_args()
    torch.manual_seed(0)
    x = torch.randn(nodes, features, device=DEVICE)
    y = torch.randint(classes, (nodes,), device=DEVICE)
    edge_index = torch.randint(nodes, (2, nodes * degree), device=DEVICE)
    weight = torch.full((nodes * degree,), 1 / degree, device=DEVICE)
    if args.sparse:
        there = torch.stack([edge_index[1], edge_index[0]])
        weight = torch.sparse_coo_tensor(there, weight, (nodes, nodes)).coalesce()
        weight = weight.to_sparse_csr()
    split = torch.randint(10, (nodes,), device=DEVICE)
    masks = [split < 6, (split >= 6) & (split < 8), split >= 8]
    model = Net(args.sparse).to(DEVICE)
    optimizer = torch.optim.Adam(
        model.parameters(), lr=0.01, weight_decay=5e-4, fused=args.fused or None
    )
    meter = Meter(args.seconds)

    def train() -> float:
        model.train()
        optimizer.zero_grad()
        out = model(x, edge_index, weight)
        loss = F.cross_entropy(out[masks[0]], y[masks[0]])
        loss.backward()
        optimizer.step()
        return float(loss.item())

    @torch.no_grad()
    def test() -> list[float]:
        model.eval()
        pred = model(x, edge_index, weight).argmax(dim=-1)
        return [float(int((pred[mask] == y[mask]).sum()) / int(mask.sum())) for mask in masks]

    best_val = 0.0
    for epoch in range(1_000_000):
        loss = train()
        if epoch % args.test_every == 0:
            _train_acc, val_acc, test_acc = test()
            best_val = max(best_val, val_acc)
            print(f"epoch {epoch}: loss {loss:.4f}, val {best_val:.4f}, test {test_acc:.4f}")
        if meter.update(nodes):
            return


if __name__ == "__main__":
    main()
