"""Nothing to fix: a GAN with two nets, two optimizers and two backward passes a step.

`--without-cause` changes nothing, since there is no cause.
"""

import probe

probe.install()

import itertools
from collections.abc import Sequence

import torch
from samples import ReadyBatches, pictures
from scenario import DEVICE, ON_GPU, Options, Report, Run, play
from torch import nn
from torch.utils.data import DataLoader

NOISE = 128


def generator(width: int) -> nn.Sequential:
    """Noise [batch, NOISE, 1, 1] to pictures [batch, 3, 64, 64]."""
    layers: list[nn.Module] = [nn.ConvTranspose2d(NOISE, 8 * width, 4), nn.ReLU()]
    for channels in (8 * width, 4 * width, 2 * width):
        layers += [
            nn.ConvTranspose2d(channels, channels // 2, 4, stride=2, padding=1),
            nn.BatchNorm2d(channels // 2),
            nn.ReLU(),
        ]
    return nn.Sequential(*layers, nn.ConvTranspose2d(width, 3, 4, stride=2, padding=1), nn.Tanh())


def critic(width: int) -> nn.Sequential:
    """Pictures [batch, 3, 64, 64] to a score each [batch, 1]."""
    layers: list[nn.Module] = [nn.Conv2d(3, width, 4, stride=2, padding=1), nn.LeakyReLU(0.2)]
    for channels in (width, 2 * width, 4 * width):
        layers += [nn.Conv2d(channels, 2 * channels, 4, stride=2, padding=1), nn.LeakyReLU(0.2)]
    return nn.Sequential(*layers, nn.Conv2d(8 * width, 1, 4), nn.Flatten())


def train(options: Options, run: Run) -> None:
    """Train until the run is over."""
    batch, width = options.sizes(tiny=(2, 2), cpu=(8, 8), gpu=(512, 128))
    loader = DataLoader(ReadyBatches(pictures(batch, 64, device=DEVICE)), batch_size=None)
    make, judge = generator(width).to(DEVICE), critic(width).to(DEVICE)
    maker = torch.optim.Adam(make.parameters(), lr=2e-4, betas=(0.5, 0.999))
    judger = torch.optim.Adam(judge.parameters(), lr=2e-4, betas=(0.5, 0.999))
    softplus = nn.functional.softplus
    for _epoch in itertools.count():
        for real, _classes in loader:
            with torch.autocast(DEVICE.type, torch.bfloat16, enabled=ON_GPU):
                fake = make(torch.randn(batch, NOISE, 1, 1, device=DEVICE))
                loss = softplus(-judge(real)) + softplus(judge(fake.detach()))
            judger.zero_grad()
            loss.mean().backward()
            judger.step()
            with torch.autocast(DEVICE.type, torch.bfloat16, enabled=ON_GPU):
                loss = softplus(-judge(fake))
            maker.zero_grad()
            loss.mean().backward()
            maker.step()
            if run.finished(batch):
                return


def main(argv: Sequence[str] | None = None) -> Report:
    """One run with these options."""
    return play(train, __doc__, argv)


if __name__ == "__main__":
    main()
