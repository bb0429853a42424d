"""The small convolutional net that the scripts train."""

import torch
from torch import nn

CLASSES = 10


class ConvNet(nn.Module):
    """Convolutions that halve the picture, twice as many channels each time, then a head."""

    def __init__(self, width: int = 16, blocks: int = 4) -> None:
        super().__init__()
        layers: list[nn.Module] = []
        channels = 3
        for block in range(blocks):
            wider = width << block
            layers += convolution(channels, wider, stride=2)
            channels = wider
        self.features = nn.Sequential(*layers)
        self.head = nn.Linear(channels, CLASSES)

    def forward(self, images: torch.Tensor) -> torch.Tensor:
        """Class scores, [batch, CLASSES], of uint8 images [batch, 3, side, side]."""
        features: torch.Tensor = self.features(images.float().div(255))
        scores: torch.Tensor = self.head(features.mean(dim=(2, 3)))
        return scores


def convolution(channels: int, wider: int, stride: int) -> list[nn.Module]:
    """A 3x3 convolution, its normalisation and its activation."""
    return [
        nn.Conv2d(channels, wider, kernel_size=3, stride=stride, padding=1, bias=False),
        nn.BatchNorm2d(wider),
        nn.ReLU(inplace=True),
    ]
