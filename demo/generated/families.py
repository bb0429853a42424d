"""The nets of the families, their sizes, and batches that fit them.

A net takes the inputs of a batch and gives scores [..., classes]; the loss is cross entropy for
all of them, so that every cause can be in every family.
"""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Final, cast

import torch
from nets import Block, ResNet, ViT, multilayer
from torch import nn

from generated.spec import Family, Size, Spec

Batch = tuple[torch.Tensor, torch.Tensor]
"""Inputs and targets."""


@dataclass(frozen=True)
class Scale:
    """How large a net and its batch are."""

    batch: int
    length: int
    """Tokens of a sequence, pixels of a picture's side, features of a row."""
    width: int
    layers: int
    classes: int = 10


SCALES: Final[Mapping[str, Mapping[Family, Mapping[Size, Scale]]]] = {
    "cpu": {
        "mlp": {
            "small": Scale(64, 256, 256, 3),
            "medium": Scale(256, 512, 512, 4),
            "large": Scale(256, 1_024, 1_024, 3),
        },
        "conv": {
            "small": Scale(8, 32, 8, 3),
            "medium": Scale(16, 48, 16, 3),
            "large": Scale(16, 64, 24, 3),
        },
        "encoder": {
            "small": Scale(8, 32, 64, 2),
            "medium": Scale(16, 32, 96, 4),
            "large": Scale(16, 48, 128, 5),
        },
        "gpt": {
            "small": Scale(4, 32, 64, 2, 512),
            "medium": Scale(8, 64, 96, 3, 1_024),
            "large": Scale(8, 96, 160, 4, 1_024),
        },
        "lstm": {
            "small": Scale(8, 16, 64, 1, 512),
            "medium": Scale(16, 32, 128, 1, 512),
            "large": Scale(32, 48, 160, 1, 1_024),
        },
        "recommender": {
            "small": Scale(128, 8, 5_000, 2),
            "medium": Scale(256, 16, 20_000, 3),
            "large": Scale(512, 16, 40_000, 3),
        },
        "pointwise": {
            "small": Scale(64, 256, 1_024, 6),
            "medium": Scale(256, 256, 2_048, 8),
            "large": Scale(512, 256, 4_096, 8),
        },
    },
    "cuda": {
        "mlp": {
            "small": Scale(64, 512, 512, 8),
            "medium": Scale(4_096, 512, 2_048, 12),
            "large": Scale(8_192, 512, 4_096, 12),
        },
        "conv": {
            "small": Scale(16, 64, 32, 3),
            "medium": Scale(128, 128, 64, 4),
            "large": Scale(256, 160, 96, 4),
        },
        "encoder": {
            "small": Scale(16, 64, 256, 4),
            "medium": Scale(128, 128, 512, 8),
            "large": Scale(256, 128, 1_024, 12),
        },
        "gpt": {
            "small": Scale(8, 128, 256, 4, 8_192),
            "medium": Scale(8, 512, 768, 8, 16_384),
            "large": Scale(16, 1_024, 1_024, 12, 32_768),
        },
        "lstm": {
            "small": Scale(32, 64, 256, 1, 8_192),
            "medium": Scale(64, 128, 1_024, 2, 8_192),
            "large": Scale(256, 128, 1_536, 2, 16_384),
        },
        "recommender": {
            "small": Scale(1_024, 16, 50_000, 3),
            "medium": Scale(8_192, 26, 500_000, 4),
            "large": Scale(32_768, 26, 1_000_000, 6),
        },
        "pointwise": {
            "small": Scale(512, 256, 4_096, 8),
            "medium": Scale(4_096, 256, 4_096, 24),
            "large": Scale(8_192, 256, 4_096, 64),
        },
    },
}
"""A step of 3 to 15, 20 to 60 and 80 to 200 ms on one core; on an H200 small ones are too small to
fill it. A recommender's width is the rows of its table."""
FEATURES: Final = {"cpu": 32, "cuda": 64}
"""Numbers in a row of a recommender's table."""
TABLE_ROWS_TIMES: Final = {"cpu": 8, "cuda": 16}
"""A table whose dense update is the cause is so many times as long."""
PATCH: Final = 8


class LanguageModel(nn.Module):
    """Transformer blocks over tokens."""

    def __init__(self, scale: Scale) -> None:
        super().__init__()
        self.tokens = nn.Embedding(scale.classes, scale.width)
        self.positions = nn.Embedding(scale.length, scale.width)
        heads = max(1, scale.width // 64)
        self.blocks = nn.ModuleList(
            Block(scale.width, heads, causal=True) for _ in range(scale.layers)
        )
        self.head = nn.Linear(scale.width, scale.classes, bias=False)

    def forward(self, tokens: torch.Tensor) -> torch.Tensor:
        places = torch.arange(tokens.shape[1], device=tokens.device)
        stream = self.tokens(tokens) + self.positions(places)
        for block in self.blocks:
            stream = block(stream)
        return cast(torch.Tensor, self.head(stream))


class RecurrentModel(nn.Module):
    """An LSTM over tokens; `by_cell` walks through the sequence in Python."""

    def __init__(self, scale: Scale, by_cell: bool) -> None:
        super().__init__()
        self.tokens = nn.Embedding(scale.classes, scale.width)
        self.by_cell = by_cell
        self.cell = nn.LSTMCell(scale.width, scale.width) if by_cell else None
        self.lstm = (
            None if by_cell else nn.LSTM(scale.width, scale.width, scale.layers, batch_first=True)
        )
        self.head = nn.Linear(scale.width, scale.classes)

    def forward(self, tokens: torch.Tensor) -> torch.Tensor:
        words = self.tokens(tokens)
        if self.lstm is not None:
            states, _ = self.lstm(words)
        elif self.cell is not None:
            state: Batch | None = None
            every = []
            for word in words.unbind(1):
                state = self.cell(word, state)
                every.append(state[0])
            states = torch.stack(every, 1)
        return cast(torch.Tensor, self.head(states))


class Recommender(nn.Module):
    """Rows of one large table, joined, and a small net over them."""

    def __init__(self, scale: Scale, features: int, sparse: bool) -> None:
        super().__init__()
        self.table = nn.Embedding(scale.width, features, sparse=sparse)
        self.top = multilayer(scale.length * features, 256, scale.layers, scale.classes)

    def forward(self, rows: torch.Tensor) -> torch.Tensor:
        return cast(torch.Tensor, self.top(self.table(rows).flatten(1)))


class Pointwise(nn.Module):
    """Activations and scalings one by one, each over the whole tensor; hardly any product."""

    def __init__(self, scale: Scale) -> None:
        super().__init__()
        self.gains = nn.ParameterList(
            nn.Parameter(torch.ones(scale.width)) for _ in range(scale.layers)
        )
        self.head = nn.Linear(scale.width, scale.classes)

    def forward(self, rows: torch.Tensor) -> torch.Tensor:
        rows = rows.repeat(1, self.gains[0].numel() // rows.shape[1])
        for gain in self.gains:
            rows = torch.tanh(rows * gain) + 0.1 * torch.sigmoid(rows)
        return cast(torch.Tensor, self.head(rows))


class Autocast(nn.Module):
    """A net whose forward runs in bf16."""

    def __init__(self, net: nn.Module, device: str) -> None:
        super().__init__()
        self.net = net
        self.device = device

    def forward(self, inputs: torch.Tensor) -> torch.Tensor:
        # Without the cache, as a CUDA graph needs it.
        with torch.autocast(self.device, torch.bfloat16, cache_enabled=False):
            return cast(torch.Tensor, self.net(inputs))


def scale_of(spec: Spec) -> Scale:
    """How large this run's net is."""
    scale = SCALES[spec.device][spec.family][spec.size]
    if spec.cause("dense_table"):
        return replace(scale, width=scale.width * TABLE_ROWS_TIMES[spec.device])
    return scale


def net_of(spec: Spec) -> nn.Module:
    """The net of a run, on its device."""
    scale = scale_of(spec)
    net = _bare(spec, scale).to(spec.device)
    return Autocast(net, spec.device) if spec.precision == "bf16" else net


def _bare(spec: Spec, scale: Scale) -> nn.Module:
    match spec.family:
        case "mlp":
            return multilayer(scale.length, scale.width, scale.layers, scale.classes)
        case "conv":
            return ResNet(scale.width, scale.layers, scale.classes)
        case "encoder":
            heads = max(1, scale.width // 64)
            return ViT(scale.length, PATCH, scale.width, scale.layers, heads, scale.classes)
        case "gpt":
            return LanguageModel(scale)
        case "lstm":
            return RecurrentModel(scale, by_cell=spec.cause("cells") is not None)
        case "recommender":
            return Recommender(scale, FEATURES[spec.device], sparse=spec.table == "sparse")
        case "pointwise":
            return Pointwise(scale)


def samples_of(spec: Spec, count: int) -> Batch:
    """So many samples in host memory."""
    scale = scale_of(spec)
    match spec.family:
        case "conv" | "encoder":
            inputs = torch.randn(count, 3, scale.length, scale.length)
        case "gpt" | "lstm":
            tokens = torch.randint(scale.classes, (count, scale.length + 1))
            return tokens[:, :-1].contiguous(), tokens[:, 1:].contiguous()
        case "recommender":
            inputs = torch.randint(scale.width, (count, scale.length))
        case _:
            inputs = torch.randn(count, scale.length)
    return inputs, torch.randint(scale.classes, (count,))
