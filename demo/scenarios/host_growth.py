"""Host memory that grows: each batch is copied and kept, "to look at the hard ones later".

The oldest go when 12 GiB are kept (3 GiB without a GPU), so that the scenario never fills the
machine. `--without-cause` keeps none.
"""

import probe

probe.install()

import itertools
from collections import deque
from collections.abc import Sequence

import torch
from nets import ViT
from samples import ReadyBatches, pictures
from scenario import DEVICE, ON_GPU, Options, Report, Run, play
from torch.utils.data import DataLoader


def train(options: Options, run: Run) -> None:
    """Train until the run is over."""
    batch, side, width, layers = options.sizes(
        tiny=(2, 16, 16, 1), cpu=(16, 64, 64, 2), gpu=(64, 128, 512, 12)
    )
    most_bytes = options.sizes(tiny=1, cpu=3, gpu=12) << 30
    loader = DataLoader(ReadyBatches(pictures(batch, side)), batch_size=None, pin_memory=ON_GPU)
    net = ViT(side, patch=8, width=width, layers=layers, heads=8).to(DEVICE)
    optimizer = torch.optim.AdamW(net.parameters(), lr=3e-4, fused=True)
    kept: deque[torch.Tensor] = deque(maxlen=most_bytes // (batch * 3 * side * side * 4))
    for _epoch in itertools.count():
        for images, classes in loader:
            with torch.autocast(DEVICE.type, torch.bfloat16, enabled=ON_GPU):
                scores = net(images.to(DEVICE, non_blocking=True))
            loss = torch.nn.functional.cross_entropy(
                scores.float(), classes.to(DEVICE, non_blocking=True)
            )
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            if options.cause:
                kept.append(images.clone())
            if run.finished(batch):
                return


def main(argv: Sequence[str] | None = None) -> Report:
    """One run with these options."""
    return play(train, __doc__, argv)


if __name__ == "__main__":
    main()
