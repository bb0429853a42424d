"""A ViT in full fp32, with TF32 off: the tensor cores have nothing to do.

`--without-cause` computes in bf16 (autocast).
"""

import probe

probe.install()

import itertools
from collections.abc import Sequence

import torch
from nets import ViT
from samples import ReadyBatches, pictures
from scenario import DEVICE, Options, Report, Run, play
from torch.utils.data import DataLoader


def train(options: Options, run: Run) -> None:
    """Train until the run is over."""
    torch.set_float32_matmul_precision("highest")
    torch.backends.cudnn.allow_tf32 = False
    batch, side, width, layers = (2, 16, 16, 1) if options.tiny else (32, 256, 1_024, 8)
    batch = options.scaled(batch)
    loader = DataLoader(ReadyBatches(pictures(batch, side, device=DEVICE)), batch_size=None)
    net = ViT(side, patch=16 if side > 16 else 8, width=width, layers=layers, heads=8).to(DEVICE)
    optimizer = torch.optim.AdamW(net.parameters(), lr=3e-4, fused=True)
    for _epoch in itertools.count():
        for images, classes in loader:
            with torch.autocast(DEVICE.type, torch.bfloat16, enabled=not options.cause):
                scores = net(images)
            loss = torch.nn.functional.cross_entropy(scores.float(), classes)
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
