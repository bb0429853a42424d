"""Memory that grows and is no leak: each batch is kept, decoded, until all of them are.

After the first 400 steps there is nothing more to keep. `--without-cause` changes nothing, since
there is no cause: such a cache is what it is for.
"""

import probe

probe.install()

import itertools
from collections.abc import Sequence

import torch
from nets import ResNet
from samples import ReadyBatches, pictures
from scenario import DEVICE, ON_GPU, Options, Report, Run, play
from torch.utils.data import DataLoader

BATCHES = 400
"""Of an epoch: some 5 GB of the GPU's memory, or 0.3 GB of the host's."""


def train(options: Options, run: Run) -> None:
    """Train until the run is over."""
    batch, side, width = options.sizes(tiny=(2, 16, 4), cpu=(16, 64, 8), gpu=(256, 64, 96))
    ready = [((images * 255).byte(), classes) for images, classes in pictures(batch, side)]
    loader = DataLoader(ReadyBatches(ready, length=BATCHES), batch_size=None, pin_memory=ON_GPU)
    net = ResNet(width).to(DEVICE)
    optimizer = torch.optim.SGD(net.parameters(), lr=0.01, momentum=0.9)
    kept: dict[int, tuple[torch.Tensor, torch.Tensor]] = {}
    for _epoch in itertools.count():
        for number, (pixels, classes) in enumerate(loader):
            if number not in kept:
                pixels = pixels.to(DEVICE, non_blocking=True)
                wanted = classes.to(DEVICE, non_blocking=True)
                kept[number] = pixels.float().div(255), wanted
            images, wanted = kept[number]
            with torch.autocast(DEVICE.type, torch.bfloat16, enabled=ON_GPU):
                scores = net(images)
            loss = torch.nn.functional.cross_entropy(scores.float(), wanted)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            if run.finished(batch):
                return


def main(argv: Sequence[str] | None = None) -> Report:
    """One run with these options."""
    return play(train, __doc__, argv)


if __name__ == "__main__":
    main()
