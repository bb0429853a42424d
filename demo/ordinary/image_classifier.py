"""A classifier of small pictures: augmented in Python, evaluated several times an epoch.

As in many a repository of CIFAR nets: a progress line for each batch, accuracy as it goes, the
best model saved.
"""

import argparse
import random

import numpy as np
import torch
from meter import DEVICE, ON_GPU, Meter, add_budget
from torch import nn
from torch.utils.data import DataLoader, Dataset

side, batch_size, width = (64, 256, 64) if ON_GPU else (32, 32, 12)
Sample = tuple[torch.Tensor, int]


class Pictures(Dataset[Sample]):
    def __init__(self, count: int, augment: bool) -> None:
        rng = np.random.default_rng(0)
        self.images = rng.integers(0, 255, (512, side, side, 3), dtype=np.uint8)
        self.labels = rng.integers(0, 10, 512)
        self.count = count
        self.augment = augment

    def __len__(self) -> int:
        return self.count

    def __getitem__(self, index: int) -> Sample:
        image = self.images[index % 512]
        if self.augment:
            image = np.pad(image, ((4, 4), (4, 4), (0, 0)), mode="reflect")
            top, left = random.randint(0, 8), random.randint(0, 8)
            image = image[top : top + side, left : left + side]
            if random.random() < 0.5:
                image = image[:, ::-1]
            jitter = np.random.uniform(0.8, 1.2, 3).astype(np.float32)
            image = np.clip(image * jitter, 0, 255)
        x = torch.from_numpy(np.ascontiguousarray(image, dtype=np.float32)).permute(2, 0, 1) / 255
        return (x - 0.45) / 0.25, int(self.labels[index % 512])


class BasicBlock(nn.Module):
    def __init__(self, cin: int, cout: int, stride: int) -> None:
        super().__init__()
        self.conv1 = nn.Conv2d(cin, cout, 3, stride, 1, bias=False)
        self.bn1 = nn.BatchNorm2d(cout)
        self.conv2 = nn.Conv2d(cout, cout, 3, 1, 1, bias=False)
        self.bn2 = nn.BatchNorm2d(cout)
        self.shortcut = nn.Conv2d(cin, cout, 1, stride, bias=False)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        out = torch.relu(self.bn1(self.conv1(x)))
        out = self.bn2(self.conv2(out))
        return torch.relu(out + self.shortcut(x))


def resnet() -> nn.Module:
    layers: list[nn.Module] = [nn.Conv2d(3, width, 3, 1, 1), nn.BatchNorm2d(width), nn.ReLU()]
    for stage in range(3):
        wide = width << stage
        layers += [BasicBlock(wide, wide * 2, 2), BasicBlock(wide * 2, wide * 2, 1)]
    return nn.Sequential(*layers, nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(width * 8, 10))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    add_budget(parser)
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--no-augment", action="store_true", help="pictures as they are")
    parser.add_argument("--evals", type=int, default=4, help="an epoch")
    parser.add_argument("--print-freq", type=int, default=1)
    parser.add_argument("--bf16", action="store_true")
    args = parser.parse_args()
    torch.manual_seed(0)
    batches = 120
    trainset = Pictures(batches * batch_size, not args.no_augment)
    trainloader = DataLoader(
        trainset, batch_size, shuffle=True, num_workers=args.workers, pin_memory=ON_GPU
    )
    testloader = DataLoader(Pictures(8 * batch_size, False), batch_size, num_workers=args.workers)
    net = resnet().to(DEVICE)
    optimizer = torch.optim.SGD(net.parameters(), lr=0.1, momentum=0.9, weight_decay=5e-4)
    scheduler = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, T_max=200)
    criterion = nn.CrossEntropyLoss()
    amp = torch.autocast(DEVICE.type, torch.bfloat16, enabled=args.bf16)
    meter = Meter(args.seconds)

    def test() -> float:
        net.eval()
        correct = total = 0
        with torch.no_grad():
            for inputs, targets in testloader:
                outputs = net(inputs.to(DEVICE))
                correct += int(outputs.argmax(1).eq(targets.to(DEVICE)).sum().item())
                total += targets.size(0)
        net.train()
        return 100.0 * correct / total

    for epoch in range(1_000_000):
        train_loss, correct, total = 0.0, 0.0, 0
        for batch_idx, (inputs, targets) in enumerate(trainloader):
            inputs, targets = inputs.to(DEVICE), targets.to(DEVICE)
            optimizer.zero_grad()
            with amp:
                outputs = net(inputs)
                loss = criterion(outputs, targets)
            loss.backward()
            optimizer.step()
            total += targets.size(0)
            if batch_idx % args.print_freq == 0:
                train_loss += loss.item()
                correct += outputs.argmax(1).eq(targets).sum().item()
                print(
                    f"{epoch} {batch_idx}/{batches} loss {train_loss:.3f} acc {correct / total:.3f}"
                )
            if args.evals and (batch_idx + 1) % (batches // args.evals) == 0:
                print(f"test accuracy {test():.2f}")
            if meter.update(len(targets)):
                return
        scheduler.step()


if __name__ == "__main__":
    main()
