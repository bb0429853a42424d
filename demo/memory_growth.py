"""Memory that grows: a list of losses, each of which keeps its whole graph alive.

After each step the script looks at one more picture and appends the *tensor* of its loss to a
list, for a plot. The training loss gives its graph back in `backward`; this loss never sees one,
so every activation behind it stays: about 3 MiB a step. The list stops growing at 500 losses,
about 1.5 GiB (1,500 on a GPU, some 4 GiB of its memory), so that no machine is brought down.
`--fix` appends the number.
"""

import probe

probe.install()

import itertools

import torch
from network import ConvNet
from photographs import PhotographsInMemory
from torch.utils.data import DataLoader
from training_run import CORES, DEVICE, ON_GPU, Options, Progress, run

BATCH = 1_024 if ON_GPU else 48
WIDTH = 64 if ON_GPU else 16
"""Channels of the first convolution."""
SIDE = 96
"""Pixels of a training picture."""
MOST_LOSSES = 1_500 if ON_GPU else 500


def train(options: Options) -> None:
    """Train until `options.steps` are done."""
    photographs = PhotographsInMemory(SIDE)
    loader = DataLoader(
        photographs,
        batch_size=BATCH,
        shuffle=True,
        num_workers=min(8, CORES) if ON_GPU else 1,
        pin_memory=ON_GPU,
        drop_last=True,
    )
    watched_image = photographs.images[:1].to(DEVICE)
    watched_label = torch.tensor([0], device=DEVICE)
    watched_losses: list[torch.Tensor | float] = []
    network = ConvNet(width=WIDTH).to(DEVICE)
    optimizer = torch.optim.SGD(network.parameters(), lr=0.02, momentum=0.9)
    progress = Progress(options.steps)

    for _epoch in itertools.count():
        for images, labels in loader:
            scores = network(images.to(DEVICE, non_blocking=True))
            loss = torch.nn.functional.cross_entropy(scores, labels.to(DEVICE))
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()

            watched = torch.nn.functional.cross_entropy(network(watched_image), watched_label)
            watched_losses.append(watched.item() if options.fix else watched)
            if len(watched_losses) > MOST_LOSSES:
                del watched_losses[0]
            if progress.finished(loss):
                return


if __name__ == "__main__":
    run(train, __doc__)
