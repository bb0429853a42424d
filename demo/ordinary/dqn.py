"""Deep Q-learning: a step of the world at a time, batches from a replay buffer in host memory.

As in single-file implementations: the network acts on one observation, and trains every few steps.
"""

import argparse
import random

import numpy as np
import torch
from meter import DEVICE, ON_GPU, Meter, add_budget
from torch import nn
from torch.nn import functional as F

obs_shape, actions = ((4, 84, 84), 6) if ON_GPU else ((2, 32, 32), 4)
batch_size, buffer_size = (32, 5_000) if ON_GPU else (8, 1_000)
train_frequency, target_frequency, gamma = 4, 500, 0.99


class QNetwork(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        kernel, stride = (8, 4) if ON_GPU else (4, 2)
        self.features = nn.Sequential(
            nn.Conv2d(obs_shape[0], 32, kernel, stride=stride),
            nn.ReLU(),
            nn.Conv2d(32, 64, 4, stride=2),
            nn.ReLU(),
            nn.Conv2d(64, 64, 3, stride=1),
            nn.ReLU(),
            nn.Flatten(),
        )
        self.head = nn.Sequential(nn.LazyLinear(512), nn.ReLU(), nn.Linear(512, actions))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.head(self.features(x / 255.0))


class ReplayBuffer:
    def __init__(self, on_device: bool) -> None:
        self.on_device = on_device
        self.obs = np.zeros((buffer_size, *obs_shape), dtype=np.uint8)
        self.actions = np.zeros(buffer_size, dtype=np.int64)
        self.rewards = np.zeros(buffer_size, dtype=np.float32)
        self.kept = torch.zeros((buffer_size, *obs_shape), dtype=torch.uint8, device=DEVICE)
        self.at = 0

    def add(self, obs: np.ndarray, action: int, reward: float) -> None:
        i = self.at % buffer_size
        self.obs[i], self.actions[i], self.rewards[i] = obs, action, reward
        if self.on_device:
            self.kept[i] = torch.from_numpy(obs).to(DEVICE)
        self.at += 1

    def sample(self) -> tuple[torch.Tensor, ...]:
        idx = np.random.randint(0, min(self.at, buffer_size) - 1, batch_size)
        action = torch.from_numpy(self.actions[idx]).to(DEVICE)
        reward = torch.from_numpy(self.rewards[idx]).to(DEVICE)
        if self.on_device:
            where = torch.from_numpy(idx).to(DEVICE)
            return self.kept[where].float(), self.kept[where + 1].float(), action, reward
        obs, following = (torch.from_numpy(self.obs[idx + s]).to(DEVICE).float() for s in (0, 1))
        return obs, following, action, reward


class Game:
    """Something that moves over a screen, drawn anew for each frame, as an emulator does."""

    def __init__(self, frameskip: int) -> None:
        self.frameskip = frameskip
        self.screen = np.random.default_rng(0).integers(0, 255, obs_shape).astype(np.uint8)

    def step(self, action: int) -> tuple[np.ndarray, float]:
        for _frame in range(self.frameskip):
            frame = np.roll(self.screen[-1], action - 2, axis=0)
            large = np.kron(frame, np.ones((2, 2), dtype=np.uint8))
            small = large.reshape(frame.shape[0], 2, frame.shape[1], 2).mean(axis=(1, 3))
            self.screen = np.concatenate([self.screen[1:], small[None].astype(np.uint8)])
        return self.screen, float(self.screen[-1, 0, 0]) / 255


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    add_budget(parser)
    parser.add_argument("--fast-game", action="store_true", help="a frame for each step")
    parser.add_argument("--buffer-on-device", action="store_true")
    parser.add_argument("--fused", action="store_true", help="Adam, fused")
    parser.add_argument("--print-every", type=int, default=100, help="updates")
    args = parser.parse_args()
    torch.manual_seed(1)
    game, buffer = Game(1 if args.fast_game else 8), ReplayBuffer(args.buffer_on_device)
    q_network, target_network = QNetwork().to(DEVICE), QNetwork().to(DEVICE)
    obs = game.screen
    with torch.no_grad():
        for net in (q_network, target_network):
            net(torch.from_numpy(obs[None]).to(DEVICE).float())
    target_network.load_state_dict(q_network.state_dict())
    optimizer = torch.optim.Adam(q_network.parameters(), lr=1e-4, fused=args.fused or None)
    meter = Meter(args.seconds)
    for global_step in range(1_000_000_000):
        if random.random() < 0.1:
            action = random.randrange(actions)
        else:
            with torch.no_grad():
                q_values = q_network(torch.from_numpy(obs[None]).to(DEVICE).float())
            action = int(q_values.argmax(dim=1).cpu().numpy()[0])
        obs, reward = game.step(action)
        buffer.add(obs, action, reward)
        if global_step < 100 or global_step % train_frequency:
            continue
        seen, following, acted, rewarded = buffer.sample()
        with torch.no_grad():
            target = rewarded + gamma * target_network(following).max(dim=1).values
        old = q_network(seen).gather(1, acted[:, None]).squeeze(1)
        loss = F.mse_loss(target, old)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        if meter.steps % args.print_every == 0:
            print(f"step {global_step} loss {loss.item():.4f} q {old.mean().item():.3f}")
        if global_step % target_frequency == 0:
            target_network.load_state_dict(q_network.state_dict())
        if meter.update(batch_size):
            return


if __name__ == "__main__":
    main()
