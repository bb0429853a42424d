"""What becomes of a validation's loss: it decides about a rate, a checkpoint or the end, and no
training learns from it."""

from pathlib import Path

import pytest

from tests.unit.sources.test_source_structure import structure

NANO_GPT = """
@torch.no_grad()
def estimate_loss(model):
    model.eval()
    losses = torch.zeros(200)
    for k in range(200):
        X, Y = get_batch("val")
        logits, loss = model(X, Y)  # 2
        losses[k] = loss
    model.train()
    return losses.mean()

def train_step(model, optimizer, {handed}):
    logits, loss = model(*get_batch("train"))
    optimizer.zero_grad()
    for group in optimizer.param_groups:
        group["lr"] = lr
    loss.backward()
    optimizer.step()
    if kept:
        kept["train"] = loss.item()

def main():
    best, lr, stage, history, kept = 1e9, 1e-3, 0, {{}}, {{}}
    for it in range(100000):
        train_step(model, optimizer, {handed})
        if it % 250 == 0:
            {asks}  # 1
            {after}
"""
ASKS = "val_loss = estimate_loss(model)"
GNN = """
def train(model, data, optimizer):
    model.train()
    optimizer.zero_grad()
    loss = F.nll_loss(model(data.x, data.edge_index)[data.train_mask], data.y[data.train_mask])
    loss.backward()
    optimizer.step()
    return loss.item()

@torch.no_grad()
def test(model, data):
    model.eval()
    out = model(data.x, data.edge_index)  # 2
    return [F.nll_loss(out[mask], data.y[mask]) for mask in (data.train_mask, data.val_mask)]

def run(model, data, optimizer):
    for epoch in range(200):
        loss = train(model, data, optimizer)
        train_loss, val_loss = test(model, data)  # 1
        scheduler.step(metrics=val_loss)
"""
TRAINER = """
class Trainer:
    @torch.no_grad()
    def validate(self):
        self.model.eval()
        return sum(self.loss(batch) for batch in self.held_out)  # 2

    def train_epoch(self):
        for batch in self.loader:
            self.loss(batch).backward()
            self.optimizer.step()

    def on_epoch_end(self, metrics):
        if self.warm:
            self.lr_scheduler.step()

    def fit(self):
        for epoch in range(10):
            self.train_epoch()
            metrics = self.validate()  # 1
            self.model, self.stop = self.stopper.check(self.model, metrics)
            self.on_epoch_end(metrics)
"""


@pytest.mark.parametrize(
    ("handed", "asks", "after"),
    [
        ("kept", ASKS, "scheduler.step(metrics=val_loss)"),
        ("history", ASKS, "history[it] = val_loss"),
        ("kept", "kept[it] = estimate_loss(model)", "pass"),
        ("best", ASKS, "best = min(best, val_loss)"),
        ("lr", ASKS, "lr = decay(lr, val_loss)"),
        ("stage", ASKS, "stage = 1 if val_loss < 0.1 else stage"),
        ("kept", ASKS, "model, stop = stopper.check(model, val_loss)"),
        ("kept", ASKS, "tracker.log(val_loss).step()"),
        ("kept", "number = estimate_loss(model).item()", "train_step(number, optimizer, kept)"),
    ],
    ids=[
        *("a rate", "a history", "kept at once", "the best", "lr", "a stage", "early stopping"),
        *("a tracker", "a number"),
    ],
)
def test_what_a_loss_decides_about_is_no_training(
    tmp_path: Path, handed: str, asks: str, after: str
) -> None:
    """nanoGPT's `estimate_loss`: "generation takes 40 %: generate more at once"."""
    text = NANO_GPT.format(handed=handed, asks=asks, after=after)
    found = structure(tmp_path, text, "main", "estimate_loss")
    assert (found.evaluates, found.feeds) == (True, False)


@pytest.mark.parametrize(
    ("text", "functions"),
    [(GNN, ("run", "test")), (TRAINER, ("Trainer.fit", "Trainer.validate"))],
    ids=["a graph", "a trainer"],
)
def test_a_rate_is_set_by_no_learning(
    tmp_path: Path, text: str, functions: tuple[str, ...]
) -> None:
    found = structure(tmp_path, text, *functions)
    assert (found.evaluates, found.feeds) == (True, False)


def test_a_step_of_a_profiler_is_no_optimizers(tmp_path: Path) -> None:
    text = """
def test(net):
    net.eval()
    for x, y in held_out:
        right += (net(x).argmax(1) == y).sum()  # 1
        prof.step()
"""
    assert structure(tmp_path, text, "test").evaluates
    assert not structure(tmp_path, text.replace("prof.", "optimizers[0]."), "test").evaluates


DISTILLED = """
class Distiller:
    @torch.no_grad()
    def wanted(self, x):
        out = 0
        for teacher in self.teachers:
            out = out + teacher(x)  # 2
        return out

    def optimize(self):
        self.loss.backward()

    def update(self, x, wanted):
        self.gap = distance(self.net(x), wanted)
        self.loss = self.gap + self.others
        self.backward(self.loss)
        self.optimizer.step()

    def fit(self):
        for x in self.loader:
            self.update(x, wanted=self.wanted(x))  # 1
"""
REWARDS = """
@torch.no_grad()
def score(judge, texts):
    rewards = []
    for text in texts:
        rewards.append(judge(text).logits.item())  # 2
    return torch.tensor(rewards)

for prompts in loader:
    rewards = score(judge, texts)  # 1
    loss = -(log_probs(model, texts) * (rewards - rewards.mean())).mean()
    loss.backward()
    optimizer.step()
"""
TOKENS = """
@torch.no_grad()
def generate(model, ids):
    out = []
    for _ in range(64):
        out.append(model(ids).argmax(-1).item())  # 2
    return out

for prompts in loader:
    texts = generate(model, prompts)  # 1
    loss = -log_probs(model, torch.tensor(texts)).mean()
    loss.backward()
    optimizer.step()
"""


@pytest.mark.parametrize(
    ("text", "functions"),
    [
        (DISTILLED, ("Distiller.fit", "Distiller.wanted")),
        (REWARDS, ("<module>", "score")),
        (TOKENS, ("<module>", "generate")),
    ],
    ids=["by an attribute", "rewards", "tokens"],
)
def test_what_reaches_the_backward_is_learned_from(
    tmp_path: Path, text: str, functions: tuple[str, ...]
) -> None:
    """Through what its function keeps in `self`, and as the number of a reward or of a token."""
    found = structure(tmp_path, text, *functions)
    assert (found.evaluates, found.feeds) == (False, True)
