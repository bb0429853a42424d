"""Proximal policy optimisation: rollouts of many small worlds, then some epochs over them.

As in single-file implementations: the worlds are stepped in Python one by one, and the policy
answers for all of them at once.
"""

import argparse

import numpy as np
import torch
from meter import DEVICE, ON_GPU, Meter, add_budget
from torch import nn
from torch.distributions.categorical import Categorical

num_envs, num_steps, hidden = (64, 64, 256) if ON_GPU else (8, 32, 64)
minibatches, update_epochs, obs_dim, actions = 4, 4, 24, 6


class World:
    """A point that is to come home; walls are looked for one by one, as physics in Python does."""

    def __init__(self, seed: int) -> None:
        self.rng = np.random.default_rng(seed)
        self.walls = self.rng.normal(size=(40, 2))
        self.state = self.rng.normal(size=obs_dim).astype(np.float32)

    def step(self, action: int) -> tuple[np.ndarray, float]:
        self.state[action] += 0.1
        nearest = 1e9
        for wall in self.walls:
            distance = (self.state[0] - wall[0]) ** 2 + (self.state[1] - wall[1]) ** 2
            nearest = min(nearest, float(distance))
        self.state *= 0.99
        return self.state.copy(), -float(np.abs(self.state).sum()) - (nearest < 0.01)


class Worlds:
    """All of them in one array."""

    def __init__(self, count: int) -> None:
        self.state = np.random.default_rng(0).normal(size=(count, obs_dim)).astype(np.float32)

    def step(self, action: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        self.state[np.arange(len(action)), action] += 0.1
        self.state *= 0.99
        return self.state.copy(), -np.abs(self.state).sum(axis=1)


class Agent(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        body = [nn.Linear(obs_dim, hidden), nn.Tanh(), nn.Linear(hidden, hidden), nn.Tanh()]
        self.network = nn.Sequential(*body)
        self.actor, self.critic = nn.Linear(hidden, actions), nn.Linear(hidden, 1)

    def forward(
        self, obs: torch.Tensor, action: torch.Tensor | None = None
    ) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor, torch.Tensor]:
        features = self.network(obs)
        probs = Categorical(logits=self.actor(features), validate_args=False)
        action = probs.sample() if action is None else action
        return action, probs.log_prob(action), probs.entropy(), self.critic(features)[:, 0]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    add_budget(parser)
    parser.add_argument("--vector-env", action="store_true", help="all worlds in one array")
    parser.add_argument("--fused", action="store_true", help="Adam, fused")
    parser.add_argument("--cpu", action="store_true", help="the policy on the CPU")
    args = parser.parse_args()
    device = torch.device("cpu") if args.cpu else DEVICE
    torch.manual_seed(1)
    agent = Agent().to(device)
    optimizer = torch.optim.Adam(agent.parameters(), lr=2.5e-4, eps=1e-5, fused=args.fused or None)
    envs, vector = [World(seed) for seed in range(num_envs)], Worlds(num_envs)
    obs = torch.zeros(num_steps, num_envs, obs_dim, device=device)
    acts = torch.zeros(num_steps, num_envs, dtype=torch.long, device=device)
    logprobs, rewards, values = (torch.zeros(num_steps, num_envs, device=device) for _ in range(3))
    next_obs = torch.zeros(num_envs, obs_dim, device=device)
    meter = Meter(args.seconds)

    def rollout(next_obs: torch.Tensor) -> torch.Tensor:
        for step in range(num_steps):
            obs[step] = next_obs
            with torch.no_grad():
                action, logprobs[step], _, values[step] = agent(next_obs)
            acts[step] = action
            chosen = action.cpu().numpy()
            if args.vector_env:
                state, reward = vector.step(chosen)
            else:
                answers = [env.step(int(a)) for env, a in zip(envs, chosen, strict=True)]
                state = np.stack([each[0] for each in answers])
                reward = np.array([each[1] for each in answers])
            rewards[step] = torch.tensor(reward, dtype=torch.float32).to(device)
            next_obs = torch.from_numpy(state).to(device)
        return next_obs

    for update in range(1_000_000):
        next_obs = rollout(next_obs)
        advantages = torch.zeros_like(rewards)
        last = torch.zeros(num_envs, device=device)
        for t in reversed(range(num_steps - 1)):
            delta = rewards[t] + 0.99 * values[t + 1] - values[t]
            advantages[t] = last = delta + 0.99 * 0.95 * last
        b_obs, b_acts, b_logprobs = obs.flatten(0, 1), acts.flatten(), logprobs.flatten()
        b_adv, b_returns = advantages.flatten(), (advantages + values).flatten()
        for _epoch in range(update_epochs):
            for mb in torch.randperm(len(b_obs), device=device).chunk(minibatches):
                _, newlogprob, entropy, newvalue = agent(b_obs[mb], b_acts[mb])
                ratio = (newlogprob - b_logprobs[mb]).exp()
                adv = (b_adv[mb] - b_adv[mb].mean()) / (b_adv[mb].std() + 1e-8)
                pg_loss = torch.max(-adv * ratio, -adv * ratio.clamp(0.8, 1.2)).mean()
                v_loss = 0.5 * (newvalue - b_returns[mb]).square().mean()
                loss = pg_loss - 0.01 * entropy.mean() + 0.5 * v_loss
                optimizer.zero_grad()
                loss.backward()
                nn.utils.clip_grad_norm_(agent.parameters(), 0.5)
                optimizer.step()
                if meter.update(len(mb)):
                    return
        if update % 10 == 0:
            print(f"update {update}: reward {rewards.mean().item():.3f} loss {loss.item():.3f}")


if __name__ == "__main__":
    main()
