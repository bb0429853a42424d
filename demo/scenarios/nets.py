"""The nets that the scenarios train, one of each shape."""

import itertools

import torch
from torch import nn
from torch.nn import functional


class Residual(nn.Module):
    """A residual block of two 3x3 convolutions; the first may halve the picture."""

    def __init__(self, channels: int, wider: int, stride: int) -> None:
        super().__init__()
        self.body = nn.Sequential(
            nn.Conv2d(channels, wider, 3, stride, padding=1, bias=False),
            nn.BatchNorm2d(wider),
            nn.ReLU(inplace=True),
            nn.Conv2d(wider, wider, 3, padding=1, bias=False),
            nn.BatchNorm2d(wider),
        )
        self.skip = nn.Conv2d(channels, wider, 1, stride, bias=False)

    def forward(self, features: torch.Tensor) -> torch.Tensor:
        return functional.relu(self.body(features) + self.skip(features))


class ResNet(nn.Module):
    """Residual blocks, each twice as wide as the one before, and a linear head."""

    def __init__(self, width: int, blocks: int = 4, classes: int = 10) -> None:
        super().__init__()
        widths = [3] + [width << block for block in range(blocks)]
        self.blocks = nn.Sequential(
            *(Residual(a, b, stride=2) for a, b in itertools.pairwise(widths))
        )
        self.head = nn.Linear(widths[-1], classes)

    def forward(self, pictures: torch.Tensor) -> torch.Tensor:
        """Class scores [batch, classes] of pictures [batch, 3, side, side]."""
        scores: torch.Tensor = self.head(self.blocks(pictures).mean(dim=(2, 3)))
        return scores


class Block(nn.Module):
    """A transformer block, normalised first."""

    def __init__(self, width: int, heads: int, causal: bool) -> None:
        super().__init__()
        self.heads = heads
        self.causal = causal
        self.before_attention = nn.LayerNorm(width)
        self.mixed = nn.Linear(width, 3 * width)
        self.joined = nn.Linear(width, width)
        self.before_network = nn.LayerNorm(width)
        self.network = nn.Sequential(
            nn.Linear(width, 4 * width), nn.GELU(), nn.Linear(4 * width, width)
        )

    def forward(self, stream: torch.Tensor) -> torch.Tensor:
        batch, length, width = stream.shape
        mixed = self.mixed(self.before_attention(stream))
        query, key, value = (
            part.view(batch, length, self.heads, -1).transpose(1, 2) for part in mixed.chunk(3, -1)
        )
        seen = functional.scaled_dot_product_attention(query, key, value, is_causal=self.causal)
        stream = stream + self.joined(seen.transpose(1, 2).reshape(batch, length, width))
        stream = stream + self.network(self.before_network(stream))
        return stream


class GPT(nn.Module):
    """A small language model; its loss is the next token's."""

    def __init__(self, vocabulary: int, length: int, width: int, layers: int, heads: int) -> None:
        super().__init__()
        self.words = nn.Embedding(vocabulary, width)
        self.places = nn.Embedding(length, width)
        self.blocks = nn.Sequential(*(Block(width, heads, causal=True) for _ in range(layers)))
        self.head = nn.Linear(width, vocabulary, bias=False)

    def forward(self, tokens: torch.Tensor) -> torch.Tensor:
        """The mean loss of guessing each token [batch, length + 1] from those before it."""
        seen, wanted = tokens[:, :-1], tokens[:, 1:]
        places = torch.arange(seen.shape[1], device=tokens.device)
        scores = self.head(self.blocks(self.words(seen) + self.places(places)))
        loss: torch.Tensor = functional.cross_entropy(scores.flatten(0, 1), wanted.flatten())
        return loss


class TextClassifier(nn.Module):
    """Transformer blocks over texts of several lengths, and the mean over what is no padding."""

    def __init__(self, vocabulary: int, longest: int, width: int, layers: int, heads: int) -> None:
        super().__init__()
        self.words = nn.Embedding(vocabulary, width)
        self.places = nn.Embedding(longest, width)
        layer = nn.TransformerEncoderLayer(
            width, heads, 4 * width, dropout=0.1, batch_first=True, norm_first=True
        )
        self.blocks = nn.TransformerEncoder(layer, layers, enable_nested_tensor=False)
        self.head = nn.Linear(width, 2)

    def forward(self, ids: torch.Tensor, mask: torch.Tensor) -> torch.Tensor:
        """Class scores [batch, 2] of token numbers [batch, length]; the mask is 0 for padding."""
        places = torch.arange(ids.shape[1], device=ids.device)
        stream = self.blocks(self.words(ids) + self.places(places), src_key_padding_mask=mask == 0)
        kept = mask.unsqueeze(2)
        scores: torch.Tensor = self.head((stream * kept).sum(1) / kept.sum(1))
        return scores


class ViT(nn.Module):
    """Transformer blocks over square patches of a picture."""

    def __init__(
        self, side: int, patch: int, width: int, layers: int, heads: int, classes: int = 10
    ) -> None:
        super().__init__()
        self.patches = nn.Conv2d(3, width, patch, stride=patch)
        self.places = nn.Parameter(torch.zeros((side // patch) ** 2, width))
        self.blocks = nn.Sequential(*(Block(width, heads, causal=False) for _ in range(layers)))
        self.head = nn.Linear(width, classes)

    def forward(self, pictures: torch.Tensor) -> torch.Tensor:
        """Class scores [batch, classes] of pictures [batch, 3, side, side]."""
        stream = self.patches(pictures).flatten(2).transpose(1, 2) + self.places
        scores: torch.Tensor = self.head(self.blocks(stream).mean(dim=1))
        return scores


class UNet(nn.Module):
    """Down and up again with a shortcut at each size; a score for each pixel."""

    def __init__(self, width: int, depth: int) -> None:
        super().__init__()
        self.first = nn.Conv2d(3, width, 3, padding=1)
        self.down = nn.ModuleList(
            Residual(width << level, width << (level + 1), stride=2) for level in range(depth)
        )
        self.up = nn.ModuleList(
            nn.ConvTranspose2d(width << (level + 1), width << level, 2, stride=2)
            for level in reversed(range(depth))
        )
        self.last = nn.Conv2d(width, 1, 1)

    def forward(self, pictures: torch.Tensor) -> torch.Tensor:
        """Scores [batch, 1, side, side] of pictures [batch, 3, side, side]."""
        features = self.first(pictures)
        shortcuts = []
        for down in self.down:
            shortcuts.append(features)
            features = down(features)
        for up in self.up:
            features = functional.relu(up(features) + shortcuts.pop())
        scores: torch.Tensor = self.last(features)
        return scores


def multilayer(inputs: int, width: int, layers: int, classes: int = 10) -> nn.Sequential:
    """Linear layers and their activations."""
    body: list[nn.Module] = [nn.Linear(inputs, width), nn.ReLU()]
    for _ in range(layers):
        body += [nn.Linear(width, width), nn.ReLU()]
    return nn.Sequential(*body, nn.Linear(width, classes))
