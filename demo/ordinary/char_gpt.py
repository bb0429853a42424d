"""A GPT on tokens in one long array: batches are slices drawn by a function, no loader.

As in small GPT repositories: gradient accumulation, a cosine schedule, clipping, and every so often
an estimate of the loss over batches of both splits.
"""

import argparse
import math
from contextlib import nullcontext

import numpy as np
import torch
from meter import DEVICE, ON_GPU, Meter, add_budget
from torch import nn
from torch.nn import functional as F

block_size = 512 if ON_GPU else 64
batch_size = 8
n_embd, n_layer, n_head = (768, 12, 12) if ON_GPU else (96, 3, 3)
vocab_size = 50_304 if ON_GPU else 512
accumulation = 2
learning_rate, min_lr, warmup, decay = 6e-4, 6e-5, 100, 5_000
log_interval = 10


class CausalSelfAttention(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.c_attn = nn.Linear(n_embd, 3 * n_embd, bias=False)
        self.c_proj = nn.Linear(n_embd, n_embd, bias=False)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        b, t, c = x.size()
        q, k, v = self.c_attn(x).split(n_embd, dim=2)
        q, k, v = (each.view(b, t, n_head, c // n_head).transpose(1, 2) for each in (q, k, v))
        y = F.scaled_dot_product_attention(q, k, v, is_causal=True)
        y = self.c_proj(y.transpose(1, 2).contiguous().view(b, t, c))
        return y


class Block(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.ln_1, self.attn = nn.LayerNorm(n_embd), CausalSelfAttention()
        self.ln_2 = nn.LayerNorm(n_embd)
        self.mlp = nn.Sequential(
            nn.Linear(n_embd, 4 * n_embd), nn.GELU(), nn.Linear(4 * n_embd, n_embd)
        )

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        x = x + self.attn(self.ln_1(x))
        x = x + self.mlp(self.ln_2(x))
        return x


class GPT(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.wte, self.wpe = nn.Embedding(vocab_size, n_embd), nn.Embedding(block_size, n_embd)
        self.h = nn.ModuleList(Block() for _ in range(n_layer))
        self.ln_f = nn.LayerNorm(n_embd)
        self.lm_head = nn.Linear(n_embd, vocab_size, bias=False)
        self.lm_head.weight = self.wte.weight

    def forward(self, idx: torch.Tensor, targets: torch.Tensor) -> torch.Tensor:
        x = self.wte(idx) + self.wpe(torch.arange(idx.size(1), device=idx.device))
        for block in self.h:
            x = block(x)
        logits = self.lm_head(self.ln_f(x))
        return F.cross_entropy(logits.view(-1, vocab_size), targets.view(-1))


def get_lr(it: int) -> float:
    if it < warmup:
        return learning_rate * (it + 1) / (warmup + 1)
    ratio = min(1.0, (it - warmup) / (decay - warmup))
    return min_lr + 0.5 * (1 + math.cos(math.pi * ratio)) * (learning_rate - min_lr)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    add_budget(parser)
    parser.add_argument("--compile", action="store_true")
    parser.add_argument("--eval-interval", type=int, default=50, help="0: never")
    parser.add_argument("--eval-iters", type=int, default=20)
    args = parser.parse_args()
    torch.manual_seed(1337)
    torch.backends.cuda.matmul.allow_tf32 = True
    tokens = np.random.default_rng(0).integers(vocab_size, size=2_000_000).astype(np.uint16)
    data = {"train": tokens[:1_800_000], "val": tokens[1_800_000:]}
    amp = torch.autocast("cuda", torch.bfloat16) if ON_GPU else nullcontext()

    def get_batch(split: str) -> tuple[torch.Tensor, torch.Tensor]:
        ix = torch.randint(len(data[split]) - block_size, (batch_size,)).tolist()
        x, y = (
            torch.stack(
                [
                    torch.from_numpy(data[split][i + s : i + s + block_size].astype(np.int64))
                    for i in ix
                ]
            )
            for s in (0, 1)
        )
        if ON_GPU:
            return (
                x.pin_memory().to(DEVICE, non_blocking=True),
                y.pin_memory().to(DEVICE, non_blocking=True),
            )
        return x, y

    model = GPT().to(DEVICE)
    step_model = torch.compile(model) if args.compile else model
    optimizer = torch.optim.AdamW(model.parameters(), lr=learning_rate, fused=True)

    @torch.no_grad()
    def estimate_loss() -> dict[str, float]:
        out = {}
        model.eval()
        for split in ("train", "val"):
            losses = torch.zeros(args.eval_iters)
            for k in range(args.eval_iters):
                with amp:
                    losses[k] = model(*get_batch(split)).item()
            out[split] = losses.mean().item()
        model.train()
        return out

    meter = Meter(args.seconds)
    x, y = get_batch("train")
    iter_num = 0
    while True:
        for group in optimizer.param_groups:
            group["lr"] = get_lr(iter_num)
        if args.eval_interval and iter_num and iter_num % args.eval_interval == 0:
            print(f"step {iter_num}: {estimate_loss()}")
        for _micro in range(accumulation):
            with amp:
                loss = step_model(x, y) / accumulation
            x, y = get_batch("train")
            loss.backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        optimizer.zero_grad(set_to_none=True)
        if iter_num % log_interval == 0:
            print(f"iter {iter_num}: loss {loss.item() * accumulation:.4f}")
        iter_num += 1
        if meter.update(batch_size * accumulation):
            return


if __name__ == "__main__":
    main()
