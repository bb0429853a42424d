"""A GPT, a ResNet and an MLP in bf16 whose FLOPs are counted by hand, each as a training.

    python flops_nets.py gpt|resnet|mlp [--seconds 40]

Prints one line of JSON at its start: the FLOPs of a step by hand; and one at its end: the time of a
step by its own clock, over the last half.
"""

import argparse
import itertools
import json
import time

import torch
from torch import nn
from torch.utils.data import DataLoader, Dataset

DEVICE = torch.device("cuda" if torch.cuda.is_available() else "cpu")
SMALL = DEVICE.type == "cpu"


class Ready(Dataset[torch.Tensor]):
    """The same batch again and again."""

    def __init__(self, batch: torch.Tensor) -> None:
        self._batch = batch

    def __len__(self) -> int:
        return 1_000_000

    def __getitem__(self, index: int) -> torch.Tensor:
        return self._batch


class Block(nn.Module):
    """Attention and a multilayer perceptron, causal, no biases."""

    def __init__(self, width: int, heads: int) -> None:
        super().__init__()
        self.heads = heads
        self.qkv = nn.Linear(width, 3 * width, bias=False)
        self.out = nn.Linear(width, width, bias=False)
        self.up = nn.Linear(width, 4 * width, bias=False)
        self.down = nn.Linear(4 * width, width, bias=False)
        self.first, self.second = nn.LayerNorm(width), nn.LayerNorm(width)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        batch, length, width = x.shape
        parts = self.qkv(self.first(x)).view(batch, length, 3, self.heads, -1)
        q, k, v = parts.permute(2, 0, 3, 1, 4)
        mixed = nn.functional.scaled_dot_product_attention(q, k, v, is_causal=True)
        x = x + self.out(mixed.transpose(1, 2).reshape(batch, length, width))
        hidden: torch.Tensor = self.down(nn.functional.gelu(self.up(self.second(x))))
        return x + hidden


class Gpt(nn.Module):
    """Tokens in, mean loss out."""

    def __init__(self, words: int, width: int, layers: int, heads: int, length: int) -> None:
        super().__init__()
        self.words, self.places = nn.Embedding(words, width), nn.Embedding(length, width)
        self.blocks = nn.Sequential(*(Block(width, heads) for _ in range(layers)))
        self.head = nn.Linear(width, words, bias=False)

    def forward(self, tokens: torch.Tensor) -> torch.Tensor:
        places = torch.arange(tokens.shape[1], device=tokens.device)
        scores = self.head(self.blocks(self.words(tokens) + self.places(places)))
        return nn.functional.cross_entropy(scores.flatten(0, 1).float(), tokens.flatten())


class Bottleneck(nn.Module):
    """Of a ResNet-50."""

    def __init__(self, inside: int, width: int, stride: int) -> None:
        super().__init__()
        out = 4 * width
        self.body = nn.Sequential(
            *(nn.Conv2d(inside, width, 1, bias=False), nn.BatchNorm2d(width), nn.ReLU()),
            nn.Conv2d(width, width, 3, stride, 1, bias=False),
            *(nn.BatchNorm2d(width), nn.ReLU()),
            *(nn.Conv2d(width, out, 1, bias=False), nn.BatchNorm2d(out)),
        )
        same = inside == out and stride == 1
        self.short = nn.Identity() if same else nn.Conv2d(inside, out, 1, stride, bias=False)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return torch.relu(self.body(x) + self.short(x))


def resnet(depths: tuple[int, ...]) -> nn.Sequential:
    """A ResNet-50 for 1,000 classes, with depths (3, 4, 6, 3)."""
    layers: list[nn.Module] = [
        nn.Conv2d(3, 64, 7, 2, 3, bias=False), nn.BatchNorm2d(64), nn.ReLU(), nn.MaxPool2d(3, 2, 1)
    ]  # fmt: skip
    inside = 64
    for stage, depth in enumerate(depths):
        for block in range(depth):
            stride = 2 if stage and not block else 1
            layers.append(Bottleneck(inside, 64 << stage, stride))
            inside = 256 << stage
    return nn.Sequential(*layers, nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(inside, 1000))


def gpt_case() -> tuple[nn.Module, torch.Tensor, float]:
    """nanoGPT's count: 6 N a token for the products, and 12 L H Q T for attention: with the head,
    without the embeddings, which are looked up."""
    words, width, layers, heads, length, batch = (
        (97, 32, 2, 2, 16, 2) if SMALL else (50_304, 1024, 12, 16, 1024, 12)
    )
    net = Gpt(words, width, layers, heads, length)
    products = layers * 12 * width * width + words * width
    flops = batch * length * (6 * products + 12 * layers * width * length)
    return net, torch.randint(0, words, (batch, length)), float(flops)


def resnet_case() -> tuple[nn.Module, torch.Tensor, float]:
    """2 Cin Cout k^2 Hout Wout for each convolution, by its published shapes; three times for
    training, twice for the first, whose input needs no gradient."""
    batch, side = (2, 64) if SMALL else (192, 224)
    depths = (1, 1, 1, 1) if SMALL else (3, 4, 6, 3)
    half = side // 2
    first = 2 * 3 * 64 * 49 * half * half
    total, inside, here = 0.0, 64, side // 4
    for stage, depth in enumerate(depths):
        width = 64 << stage
        for block in range(depth):
            stride = 2 if stage and not block else 1
            after = here // stride
            total += 2 * inside * width * here * here
            total += 2 * 9 * width * width * after * after
            total += 2 * width * 4 * width * after * after
            if not block:
                total += 2 * inside * 4 * width * after * after
            inside, here = 4 * width, after
    total += 2 * inside * 1000
    flops = batch * (3 * total + 2 * first)
    return resnet(depths), torch.randn(batch, 3, side, side), float(flops)


def mlp_case() -> tuple[nn.Module, torch.Tensor, float]:
    """2 m n k for each product; three times for training, twice for the first layer's."""
    batch, width, layers = (8, 32, 3) if SMALL else (8192, 8192, 6)
    net = nn.Sequential(*(nn.Sequential(nn.Linear(width, width), nn.GELU()) for _ in range(layers)))
    flops = 2 * batch * width * width * (3 * layers - 1)
    return net, torch.randn(batch, width), float(flops)


CASES = {"gpt": gpt_case, "resnet": resnet_case, "mlp": mlp_case}


def main() -> None:
    """Train for so long."""
    parser = argparse.ArgumentParser()
    parser.add_argument("case", choices=tuple(CASES))
    parser.add_argument("--seconds", type=float, default=40.0)
    options = parser.parse_args()
    net, batch, flops = CASES[options.case]()
    net, batch = net.to(DEVICE), batch.to(DEVICE)
    print(json.dumps({"flops": flops}), flush=True)
    optimizer = torch.optim.AdamW(net.parameters(), lr=1e-5, fused=not SMALL)
    ends: list[float] = []
    began = time.perf_counter()
    for _ in itertools.count():
        for one in DataLoader(Ready(batch), batch_size=None):
            with torch.autocast(DEVICE.type, torch.bfloat16):
                out = net(one)
            loss = out if options.case == "gpt" else out.float().square().mean()
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            ends.append(time.perf_counter())
            if ends[-1] - began > options.seconds:
                last = ends[len(ends) // 2 :]
                print(json.dumps({"step_s": (last[-1] - last[0]) / (len(last) - 1)}), flush=True)
                return


if __name__ == "__main__":
    main()
