"""Embeddings of sentences from pairs that belong together: the others of a batch are wrong answers.

As in embedding libraries: a collate function tokenises in the process that trains, lengths differ,
and each batch is padded to its longest.
"""

import argparse
import random
import re

import torch
from meter import DEVICE, ON_GPU, Meter, add_budget
from torch import nn
from torch.nn import functional as F
from torch.utils.data import DataLoader, Dataset

dim, layers, heads, batch_size = (384, 6, 12, 128) if ON_GPU else (64, 2, 4, 16)
vocab, longest = 30_000, 128
WORDS = [f"{a}{b}{c}" for a in "bdfklmnprst" for b in "aeiou" for c in ("n", "r", "st", "mp", "lf")]
Pair = tuple[str, str]


class Pairs(Dataset[Pair]):
    def __init__(self) -> None:
        chance = random.Random(0)
        self.texts = [
            " ".join(chance.choices(WORDS, k=chance.randint(12, 90 if ON_GPU else 40))) + "."
            for _ in range(2_000)
        ]

    def __len__(self) -> int:
        return 1_000_000

    def __getitem__(self, index: int) -> Pair:
        return self.texts[index % 2_000], self.texts[(index * 7 + 1) % 2_000]


class WordPieces:
    """A greedy tokeniser in plain Python."""

    def __init__(self, cache: bool) -> None:
        self.pieces = {piece: at + 3 for at, piece in enumerate(self.all_pieces())}
        self.cache: dict[str, list[int]] | None = {} if cache else None

    @staticmethod
    def all_pieces() -> list[str]:
        letters = "abcdefghijklmnopqrstuvwxyz."
        return [*letters, *(a + b for a in letters for b in letters)]

    def encode(self, text: str) -> list[int]:
        if self.cache is not None and text in self.cache:
            return self.cache[text]
        ids = [1]
        for word in re.findall(r"\w+|[^\w\s]", text.lower()):
            start = 0
            while start < len(word):
                end = min(len(word), start + 6)
                while end > start + 1 and word[start:end] not in self.pieces:
                    end -= 1
                ids.append(self.pieces.get(word[start:end], 2))
                start = end
        ids = ids[:longest]
        if self.cache is not None:
            self.cache[text] = ids
        return ids

    def batch(self, texts: list[str]) -> tuple[torch.Tensor, torch.Tensor]:
        ids = [self.encode(text) for text in texts]
        length = max(map(len, ids))
        padded = torch.tensor([each + [0] * (length - len(each)) for each in ids])
        return padded, padded == 0


class Encoder(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.words, self.places = nn.Embedding(vocab, dim), nn.Embedding(longest, dim)
        layer = nn.TransformerEncoderLayer(dim, heads, dim * 4, batch_first=True, norm_first=True)
        self.encoder = nn.TransformerEncoder(layer, layers, enable_nested_tensor=False)

    def forward(self, ids: torch.Tensor, padding: torch.Tensor) -> torch.Tensor:
        x = self.words(ids) + self.places(torch.arange(ids.shape[1], device=ids.device))
        x = self.encoder(x, src_key_padding_mask=padding)
        kept = (~padding)[:, :, None]
        return F.normalize((x * kept).sum(1) / kept.sum(1), dim=-1)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    add_budget(parser)
    parser.add_argument("--cache-tokens", action="store_true", help="tokenise each text once")
    parser.add_argument("--workers", type=int, default=0)
    parser.add_argument("--bf16", action="store_true")
    parser.add_argument("--fused", action="store_true", help="AdamW, fused")
    args = parser.parse_args()
    torch.manual_seed(0)
    tokenizer = WordPieces(args.cache_tokens)

    def collate(pairs: list[Pair]) -> tuple[torch.Tensor, ...]:
        return (
            *tokenizer.batch([a for a, _ in pairs]),
            *tokenizer.batch([b for _, b in pairs]),
        )

    loader = DataLoader(
        Pairs(), batch_size, collate_fn=collate, num_workers=args.workers, pin_memory=ON_GPU
    )
    model = Encoder().to(DEVICE)
    optimizer = torch.optim.AdamW(model.parameters(), lr=2e-5, fused=args.fused or None)
    scheduler = torch.optim.lr_scheduler.LambdaLR(optimizer, lambda at: min(1.0, (at + 1) / 100))
    amp = torch.autocast(DEVICE.type, torch.bfloat16, enabled=args.bf16)
    meter = Meter(args.seconds)
    for step, batch in enumerate(loader):
        a, a_pad, b, b_pad = (each.to(DEVICE) for each in batch)
        with amp:
            scores = model(a, a_pad) @ model(b, b_pad).T * 20.0
            loss = F.cross_entropy(scores.float(), torch.arange(len(scores), device=DEVICE))
        loss.backward()
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        scheduler.step()
        optimizer.zero_grad()
        if step % 20 == 0:
            print({"step": step, "loss": round(loss.item(), 4), "lr": scheduler.get_last_lr()[0]})
        if meter.update(len(a)):
            return


if __name__ == "__main__":
    main()
