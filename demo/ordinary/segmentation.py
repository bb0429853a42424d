"""A U-Net that labels pixels: masks are drawn in Python, and overlap is counted after each batch.

As in segmentation repositories: a loader with few workers, and a confusion matrix in NumPy.
"""

import argparse

import numpy as np
import torch
from meter import DEVICE, ON_GPU, Meter, add_budget
from torch import nn
from torch.nn import functional as F
from torch.utils.data import DataLoader, Dataset

side, batch_size, width, classes = (256, 16, 48, 8) if ON_GPU else (48, 4, 8, 4)


class Scenes(Dataset[tuple[torch.Tensor, torch.Tensor]]):
    def __init__(self, shapes: int) -> None:
        self.shapes = shapes
        self.y, self.x = np.mgrid[:side, :side]

    def __len__(self) -> int:
        return 20_000

    def __getitem__(self, index: int) -> tuple[torch.Tensor, torch.Tensor]:
        rng = np.random.default_rng(index)
        image = rng.normal(size=(3, side, side)).astype(np.float32)
        mask = np.zeros((side, side), dtype=np.int64)
        for _ in range(self.shapes):
            cy, cx, r = rng.integers(side), rng.integers(side), rng.integers(4, side // 4)
            inside = (self.y - cy) ** 2 + (self.x - cx) ** 2 < r * r
            label = int(rng.integers(1, classes))
            mask[inside] = label
            image[:, inside] += label
        return torch.from_numpy(image), torch.from_numpy(mask)


class DoubleConv(nn.Sequential):
    def __init__(self, cin: int, cout: int) -> None:
        super().__init__(
            nn.Conv2d(cin, cout, 3, padding=1, bias=False),
            nn.BatchNorm2d(cout),
            nn.ReLU(True),
            nn.Conv2d(cout, cout, 3, padding=1, bias=False),
            nn.BatchNorm2d(cout),
            nn.ReLU(True),
        )


class UNet(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.inc = DoubleConv(3, width)
        self.down = nn.ModuleList(DoubleConv(width << i, width << (i + 1)) for i in range(3))
        self.up = nn.ModuleList(
            DoubleConv((width << (i + 1)) + (width << i), width << i) for i in (2, 1, 0)
        )
        self.outc = nn.Conv2d(width, classes, 1)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        skips = [self.inc(x)]
        for down in self.down:
            skips.append(down(F.max_pool2d(skips[-1], 2)))
        x = skips.pop()
        for up in self.up:
            x = F.interpolate(x, scale_factor=2, mode="bilinear")
            x = up(torch.cat([skips.pop(), x], dim=1))
        return self.outc(x)


def dice_loss(scores: torch.Tensor, masks: torch.Tensor) -> torch.Tensor:
    guessed = scores.float().softmax(1)
    wanted = F.one_hot(masks, classes).permute(0, 3, 1, 2).float()
    overlap = 2 * (guessed * wanted).sum(dim=(0, 2, 3))
    both = guessed.sum(dim=(0, 2, 3)) + wanted.sum(dim=(0, 2, 3))
    return 1 - ((overlap + 1e-6) / (both + 1e-6)).mean()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    add_budget(parser)
    parser.add_argument("--workers", type=int, default=4 if ON_GPU else 1)
    parser.add_argument("--shapes", type=int, default=12, help="drawn in a scene")
    parser.add_argument("--metric-every", type=int, default=1)
    parser.add_argument("--bf16", action="store_true")
    parser.add_argument("--channels-last", action="store_true")
    args = parser.parse_args()
    torch.manual_seed(0)
    loader = DataLoader(
        Scenes(args.shapes), batch_size, num_workers=args.workers, pin_memory=ON_GPU, drop_last=True
    )
    layout = torch.channels_last if args.channels_last else torch.contiguous_format
    model = UNet().to(DEVICE)
    for parameter in model.parameters():
        if args.channels_last and parameter.dim() == 4:
            parameter.data = parameter.data.to(memory_format=layout)
    optimizer = torch.optim.RMSprop(model.parameters(), lr=1e-5, momentum=0.9, foreach=True)
    amp = torch.autocast(DEVICE.type, torch.bfloat16, enabled=args.bf16)
    confusion = np.zeros((classes, classes), dtype=np.int64)
    meter = Meter(args.seconds)
    for epoch in range(1_000_000):
        for step, (images, masks) in enumerate(loader):
            images = images.to(DEVICE, memory_format=layout)
            masks = masks.to(DEVICE)
            with amp:
                scores = model(images)
                loss = F.cross_entropy(scores, masks) + dice_loss(scores, masks)
            optimizer.zero_grad(set_to_none=True)
            loss.backward()
            nn.utils.clip_grad_norm_(model.parameters(), 1.0)
            optimizer.step()
            if step % args.metric_every == 0:
                guessed = scores.argmax(1).cpu().numpy().ravel()
                cells = masks.cpu().numpy().ravel() * classes + guessed
                confusion += np.bincount(cells, minlength=classes**2).reshape(classes, classes)
            if step % 20 == 0:
                union = confusion.sum(0) + confusion.sum(1) - np.diag(confusion)
                iou = float((np.diag(confusion) / np.maximum(union, 1)).mean())
                print(f"epoch {epoch} step {step} loss {loss.item():.4f} mIoU {iou:.3f}")
            if meter.update(len(images)):
                return


if __name__ == "__main__":
    main()
