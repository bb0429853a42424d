"""Inference: no optimizer and no gradients, so a step is what lies between two batches.

The pictures lie ready and the net takes nearly all of each step. `--fix` has nothing to fix.
"""

import probe

probe.install()

import itertools

import torch
from network import CLASSES, ConvNet
from photographs import PhotographsInMemory
from torch.utils.data import DataLoader
from training_run import CORES, DEVICE, ON_GPU, Options, Progress, run

BATCH = 256 if ON_GPU else 64
WIDTH = 192 if ON_GPU else 16
"""Channels of the first convolution."""
SIDE = 128
"""Pixels of a picture."""
WORKERS = min(8, CORES) if ON_GPU else 1


def infer(options: Options) -> None:
    """Classify pictures until `options.steps` batches are done."""
    loader = DataLoader(PhotographsInMemory(SIDE), batch_size=BATCH, num_workers=WORKERS)
    network = ConvNet(width=WIDTH).to(DEVICE).eval()
    found = torch.zeros(CLASSES, dtype=torch.int64, device=DEVICE)
    progress = Progress(options.steps)

    with torch.no_grad():
        for _pass in itertools.count():
            for images, _labels in loader:
                scores = network(images.to(DEVICE, non_blocking=True))
                found += scores.argmax(dim=1).bincount(minlength=CLASSES)
                if progress.finished():
                    return


if __name__ == "__main__":
    run(infer, __doc__)
