"""A diffusion model of small pictures: noise is predicted by a U-Net, an average of it samples.

As in denoising repositories: the average is updated parameter by parameter after each step, and a
few pictures are drawn every so often.
"""

import argparse
import copy
import math
from itertools import pairwise

import torch
from meter import DEVICE, ON_GPU, Meter, add_budget
from torch import nn
from torch.nn import functional as F
from torch.utils.data import DataLoader, TensorDataset

side, batch_size, dim = (64, 64, 96) if ON_GPU else (16, 8, 16)
timesteps, sample_steps, ema_decay = 1_000, 20, 0.995


class ResnetBlock(nn.Module):
    def __init__(self, cin: int, cout: int, time_dim: int) -> None:
        super().__init__()
        self.mlp = nn.Sequential(nn.SiLU(), nn.Linear(time_dim, cout * 2))
        self.norm1, self.conv1 = nn.GroupNorm(8, cin), nn.Conv2d(cin, cout, 3, padding=1)
        self.norm2, self.conv2 = nn.GroupNorm(8, cout), nn.Conv2d(cout, cout, 3, padding=1)
        self.res = nn.Conv2d(cin, cout, 1)

    def forward(self, x: torch.Tensor, t: torch.Tensor) -> torch.Tensor:
        scale, shift = self.mlp(t)[:, :, None, None].chunk(2, dim=1)
        h = self.conv1(F.silu(self.norm1(x)))
        h = self.norm2(h) * (scale + 1) + shift
        return self.conv2(F.silu(h)) + self.res(x)


class Unet(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        time_dim = dim * 4
        self.time_mlp = nn.Sequential(
            nn.Linear(dim, time_dim), nn.GELU(), nn.Linear(time_dim, time_dim)
        )
        self.init_conv = nn.Conv2d(3, dim, 7, padding=3)
        dims = [dim, dim, dim * 2, dim * 4]
        pairs = list(pairwise(dims))
        self.downs = nn.ModuleList(ResnetBlock(a, b, time_dim) for a, b in pairs)
        self.mid = nn.ModuleList(ResnetBlock(dims[-1], dims[-1], time_dim) for _ in range(2))
        self.ups = nn.ModuleList(ResnetBlock(b * 2, a, time_dim) for a, b in reversed(pairs))
        self.final = nn.Conv2d(dim, 3, 1)

    def forward(self, x: torch.Tensor, time: torch.Tensor) -> torch.Tensor:
        half = dim // 2
        freqs = torch.exp(torch.arange(half, device=x.device) * -(math.log(10_000) / (half - 1)))
        angles = time[:, None] * freqs[None]
        t = self.time_mlp(torch.cat((angles.sin(), angles.cos()), dim=-1))
        x = self.init_conv(x)
        skips = []
        for down in self.downs:
            x = down(x, t)
            skips.append(x)
            x = F.avg_pool2d(x, 2)
        for block in self.mid:
            x = block(x, t)
        for up in self.ups:
            x = F.interpolate(x, scale_factor=2)
            x = up(torch.cat((x, skips.pop()), dim=1), t)
        return self.final(x)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    add_budget(parser)
    parser.add_argument("--sample-every", type=int, default=50, help="0: never")
    parser.add_argument("--ema-every", type=int, default=1)
    parser.add_argument("--bf16", action="store_true")
    parser.add_argument("--fused", action="store_true", help="Adam, fused")
    parser.add_argument("--no-item", action="store_true", help="print the loss every 50 steps only")
    args = parser.parse_args()
    torch.manual_seed(0)
    betas = torch.linspace(1e-4, 0.02, timesteps, device=DEVICE)
    alphas_cumprod = torch.cumprod(1.0 - betas, dim=0)
    dl = DataLoader(
        TensorDataset(torch.rand(64 * batch_size, 3, side, side)), batch_size, shuffle=True
    )
    model = Unet().to(DEVICE)
    ema_model = copy.deepcopy(model)
    opt = torch.optim.Adam(model.parameters(), lr=8e-5, betas=(0.9, 0.99), fused=args.fused or None)
    amp = torch.autocast(DEVICE.type, torch.bfloat16, enabled=args.bf16)
    meter = Meter(args.seconds)

    @torch.no_grad()
    def sample() -> torch.Tensor:
        ema_model.eval()
        img = torch.randn(4, 3, side, side, device=DEVICE)
        for step in reversed(range(0, timesteps, timesteps // sample_steps)):
            noise = ema_model(img, torch.full((4,), step, device=DEVICE))
            a = alphas_cumprod[step]
            img = (img - (1 - a).sqrt() * noise) / a.sqrt().clamp(min=0.1)
        return img.clamp(0, 1)

    step = 0
    while True:
        for (x_start,) in dl:
            x_start = x_start.to(DEVICE) * 2 - 1
            t = torch.randint(0, timesteps, (len(x_start),), device=DEVICE)
            noise = torch.randn_like(x_start)
            a = alphas_cumprod[t][:, None, None, None]
            with amp:
                predicted = model(a.sqrt() * x_start + (1 - a).sqrt() * noise, t)
                loss = F.mse_loss(predicted.float(), noise)
            loss.backward()
            if not args.no_item or step % 50 == 0:
                print(f"loss: {loss.item():.4f}")
            nn.utils.clip_grad_norm_(model.parameters(), 1.0)
            opt.step()
            opt.zero_grad()
            step += 1
            if step % args.ema_every == 0:
                for ma, current in zip(ema_model.parameters(), model.parameters(), strict=True):
                    ma.data.mul_(ema_decay).add_(current.data, alpha=1 - ema_decay)
            if args.sample_every and step % args.sample_every == 0:
                print(f"sampled, mean {sample().mean().item():.3f}")
            if meter.update(len(x_start)):
                return


if __name__ == "__main__":
    main()
