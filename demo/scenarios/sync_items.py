"""Statistics read one by one: each layer's activation and each gradient's norm with `.item()`.

Every read waits for the GPU, which then stands still until the host has issued the next layer.
`--without-cause` computes the same statistics and leaves them on the GPU.
"""

import probe

probe.install()

import itertools
from collections.abc import Sequence

import torch
from nets import multilayer
from samples import ReadyBatches, vectors
from scenario import DEVICE, Options, Report, Run, play
from torch.utils.data import DataLoader


def train(options: Options, run: Run) -> None:
    """Train until the run is over."""
    batch, width, layers = (4, 16, 3) if options.tiny else (8_192, 1_024, 48)
    layers = options.scaled(layers)
    loader = DataLoader(ReadyBatches(vectors(batch, width, device=DEVICE)), batch_size=None)
    net = multilayer(width, width, layers).to(DEVICE)
    optimizer = torch.optim.SGD(net.parameters(), lr=0.01, fused=True)
    for _epoch in itertools.count():
        for pictures, classes in loader:
            statistics: list[torch.Tensor | float] = []
            features = pictures
            for layer in net:
                features = layer(features)
                size = features.detach().abs().mean()
                statistics.append(size.item() if options.cause else size)
            loss = torch.nn.functional.cross_entropy(features, classes)
            optimizer.zero_grad()
            loss.backward()
            for parameter in net.parameters():
                if parameter.grad is not None:
                    norm = parameter.grad.norm()
                    statistics.append(norm.item() if options.cause else norm)
            optimizer.step()
            if run.finished(batch):
                return


def main(argv: Sequence[str] | None = None) -> Report:
    """One run with these options."""
    return play(train, __doc__, argv)


if __name__ == "__main__":
    main()
