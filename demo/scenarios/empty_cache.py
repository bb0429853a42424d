"""The allocator's cache is emptied at each step, "to save memory": every step asks the driver anew.

`--without-cause` leaves the cache alone.
"""

import probe

probe.install()

import itertools
from collections.abc import Sequence

import torch
from nets import UNet
from samples import ReadyBatches, pictures
from scenario import DEVICE, ON_GPU, Options, Report, Run, play
from torch.utils.data import DataLoader


def train(options: Options, run: Run) -> None:
    """Train until the run is over."""
    batch, side, width, depth = (2, 16, 4, 1) if options.tiny else (16, 256, 32, 4)
    loader = DataLoader(ReadyBatches(pictures(batch, side, device=DEVICE)), batch_size=None)
    net = UNet(width, depth).to(DEVICE)
    optimizer = torch.optim.AdamW(net.parameters(), lr=1e-3)
    for _epoch in itertools.count():
        for images, _classes in loader:
            masks = (images.mean(dim=1, keepdim=True) > 0).float()
            loss = torch.nn.functional.binary_cross_entropy_with_logits(net(images), masks)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            if ON_GPU and options.cause:
                torch.cuda.empty_cache()
            if run.finished(batch):
                return


def main(argv: Sequence[str] | None = None) -> Report:
    """One run with these options."""
    return play(train, __doc__, argv)


if __name__ == "__main__":
    main()
