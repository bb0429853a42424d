"""A generator and a discriminator of pictures, one after the other, each with its optimizer.

As in the DCGAN example: both losses and three mean scores are printed at each step.
"""

import argparse

import torch
from meter import DEVICE, ON_GPU, Meter, add_budget
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

nz, ngf, batch_size = (100, 64, 128) if ON_GPU else (32, 8, 16)


def generator() -> nn.Sequential:
    layers: list[nn.Module] = [nn.ConvTranspose2d(nz, ngf * 8, 4, 1, 0, bias=False)]
    for times in (4, 2, 1):
        layers += [nn.BatchNorm2d(ngf * times * 2), nn.ReLU(True)]
        layers += [nn.ConvTranspose2d(ngf * times * 2, ngf * times, 4, 2, 1, bias=False)]
    layers += [nn.BatchNorm2d(ngf), nn.ReLU(True), nn.ConvTranspose2d(ngf, 3, 4, 2, 1, bias=False)]
    return nn.Sequential(*layers, nn.Tanh())


def discriminator() -> nn.Sequential:
    layers: list[nn.Module] = [nn.Conv2d(3, ngf, 4, 2, 1, bias=False), nn.LeakyReLU(0.2, True)]
    for times in (1, 2, 4):
        layers += [nn.Conv2d(ngf * times, ngf * times * 2, 4, 2, 1, bias=False)]
        layers += [nn.BatchNorm2d(ngf * times * 2), nn.LeakyReLU(0.2, True)]
    return nn.Sequential(*layers, nn.Conv2d(ngf * 8, 1, 4, 1, 0, bias=False), nn.Flatten(0))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    add_budget(parser)
    parser.add_argument("--print-every", type=int, default=1)
    parser.add_argument("--fused", action="store_true", help="both optimizers fused")
    parser.add_argument("--bf16", action="store_true")
    parser.add_argument("--cuda-graphs", action="store_true")
    args = parser.parse_args()
    torch.manual_seed(999)
    loader = DataLoader(
        TensorDataset(torch.rand(32 * batch_size, 3, 64, 64) * 2 - 1),
        batch_size,
        shuffle=True,
        pin_memory=ON_GPU,
    )
    net_g, net_d = generator().to(DEVICE), discriminator().to(DEVICE)
    if args.cuda_graphs:
        noise = torch.randn(batch_size, nz, 1, 1, device=DEVICE)
        picture = torch.randn(batch_size, 3, 64, 64, device=DEVICE, requires_grad=True)
        torch.cuda.make_graphed_callables(net_g, (noise,))
        torch.cuda.make_graphed_callables(net_d, (picture,))
    criterion = nn.BCEWithLogitsLoss()
    optimizer_d, optimizer_g = (
        torch.optim.Adam(net.parameters(), lr=2e-4, betas=(0.5, 0.999), fused=args.fused or None)
        for net in (net_d, net_g)
    )
    amp = torch.autocast(DEVICE.type, torch.bfloat16, enabled=args.bf16)
    meter = Meter(args.seconds)
    for epoch in range(1_000_000):
        for i, (data,) in enumerate(loader):
            real = data.to(DEVICE, non_blocking=True)
            ones, zeros = (
                torch.ones(len(real), device=DEVICE),
                torch.zeros(len(real), device=DEVICE),
            )
            net_d.zero_grad()
            with amp:
                output = net_d(real)
                err_real = criterion(output.float(), ones)
            err_real.backward()
            with amp:
                fake = net_g(torch.randn(len(real), nz, 1, 1, device=DEVICE))
                output_fake = net_d(fake.detach())
                err_fake = criterion(output_fake.float(), zeros)
            err_fake.backward()
            optimizer_d.step()
            net_g.zero_grad()
            with amp:
                output_g = net_d(fake)
                err_g = criterion(output_g.float(), ones)
            err_g.backward()
            optimizer_g.step()
            if i % args.print_every == 0:
                print(
                    f"[{epoch}][{i}/{len(loader)}] D {(err_real + err_fake).item():.4f} "
                    f"G {err_g.item():.4f} D(x) {output.sigmoid().mean().item():.3f} "
                    f"{output_fake.sigmoid().mean().item():.3f}/{output_g.sigmoid().mean().item():.3f}"
                )
            if meter.update(len(real)):
                return


if __name__ == "__main__":
    main()
