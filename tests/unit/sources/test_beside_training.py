"""What a step does when its update is made, and no training learns from, by the source."""

from pathlib import Path

import pytest

from tests.unit.sources.test_source_structure import structure

GUARD = """
def all_finite(state):
    if isinstance(state, dict):
        return all(all_finite(one) for one in state.values())
    return bool(torch.isfinite(state).all())  # 3

class Guard:
    def after_step(self, loss):
        if loss > 9:
            return
        state = copied(self.model.state_dict())
        if all_finite(state):  # 2
            self.states.append(state)

for step in range(9999):
    loss = net(x)
    x = get_batch()
    loss.backward()
    optimizer.step()
    optimizer.zero_grad()
    guard.after_step(loss.item())  # 1
"""
CHECKS = ("<module>", "Guard.after_step", "all_finite")
OF_A_CLASS = """
class Trainer:
    def train_step(self, batch):
        loss = self.loss(batch)
        self.scaler.scale(loss).backward()
        self.scaler.step(self.optimizer)
        self.scheduler.step()

    def fit(self):
        for batch in self.batches():
            self.train_step(batch)
            self.note(norms(self.net))  # 1
"""
LOSS = """
def focal(out, y):
    return ((1 - torch.exp(-out)) * y).mean()  # 2

for step in range(9999):
    loss = focal(net(x), y)  # 1
    loss.backward()
    optimizer.step()
"""
TURNED = """
def fit(x):
    return (x * torch.exp(w)).sum()  # 2

loss = fit(x)
for step in range(9999):
    loss.backward()
    optimizer.step()
    loss = fit(x)  # 1
"""
NEXT_BATCH = """
def draw():
    return torch.stack([crop(one) for one in rows])  # 2

x = draw()
for step in range(9999):
    loss = net(x)
    loss.backward()
    optimizer.step()
    x = draw()  # 1
"""
GAN = """
def penalty():
    return (torch.exp(w) - 1).mean()  # 2

for step in range(9999):
    d_loss = judge(x)
    d_loss.backward()
    d_optimizer.step()
    state.g_loss = penalty()  # 1
    g_step()
    state.g_loss.backward()
    g_optimizer.step()
"""
IN_THE_END = """
def plot():
    return torch.exp(w)  # 2

for step in range(9999):
    net(x).backward()
    optimizer.step()
plot()  # 1
"""
BY_HAND = """
def moved(w):
    return w.mul_(0.9)  # 2

for step in range(9999):
    loss = net(x)
    loss.backward()
    moved(w)  # 1
"""


@pytest.mark.parametrize(
    ("text", "functions", "beside"),
    [
        (GUARD, CHECKS, True),
        (OF_A_CLASS, ("Trainer.fit",), True),
        (LOSS, ("<module>", "focal"), False),
        (TURNED, ("<module>", "fit"), False),
        (NEXT_BATCH, ("<module>", "draw"), False),
        (GAN, ("<module>", "penalty"), False),
        (IN_THE_END, ("<module>", "plot"), False),
        (BY_HAND, ("<module>", "moved"), False),
    ],
    ids=[
        "a guard",
        "behind a method that trains",
        "a loss",
        "the next turn's loss",
        "the next batch",
        "between two updates",
        "behind the training",
        "an update by hand",
    ],
)
def test_behind_the_update_is_what_nothing_learns_from(
    tmp_path: Path, text: str, functions: tuple[str, ...], beside: bool
) -> None:
    """All of a model's state was copied and checked in each step: "no loader seen"."""
    assert structure(tmp_path, text, *functions, net=False).beside is beside
