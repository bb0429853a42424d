"""Loops that choose from what the net says, by the source of the user's own functions."""

from pathlib import Path

import pytest

from tests.unit.sources.test_source_structure import structure

DECODES = """
def learn(batch):
    loss = decode(batch.words)  # 1
    loss.backward()
    hits = scores.argmax(1)

def likeliest(scores):
    return scores.argmax(1)

def decode(words):
    loss = 0
    for word, wanted in zip(words, words[1:]):
        scores, state = decoder(word, state)  # 2
        {line}
        loss = loss + criterion(scores, wanted)
    return loss
"""


@pytest.mark.parametrize(
    ("line", "chooses"),
    [
        ("lengths = state.max()", False),
        ("best = torch.max(lengths)", False),
        ("state = self.activation(state)", False),
        ("word = scores.argmax(1)", True),
        ("_, word = scores.max(1)", True),
        ("_, word = torch.max(scores, 1)", True),
        ("word = self._sample_event(scores)", True),
        ("word = Categorical(logits=scores).sample()", True),
        ("word, reward, done = env.step(scores)", True),
        ("state = state.detach()", True),
        ("state = repackage_hidden(state)", True),
        ("state = state.data", True),
        ("state = (scores > 0).float()", True),
        ("word = scores.sort(1, descending=True)[1][:, 0]", True),
        ("word = likeliest(scores)", True),
    ],
)
def test_a_loop_that_chooses_what_comes_next(tmp_path: Path, line: str, chooses: bool) -> None:
    text = DECODES.format(line=line)
    assert structure(tmp_path, text, "learn", "decode").chooses is chooses


def test_a_function_of_the_loop_may_choose(tmp_path: Path) -> None:
    text = """
def episode(env):
    for _ in range(200):
        state = act(state)  # 1

def act(state):
    scores = policy(state)  # 2
    return torch.multinomial(scores, 1)
"""
    assert structure(tmp_path, text, "episode", "act").chooses


def test_what_a_training_loop_chooses_is_for_its_metrics(tmp_path: Path) -> None:
    text = """
def train(loader):
    for x, y in loader:
        scores = net(x)  # 1
        criterion(scores, y).backward()
        hits += (scores.argmax(1) == y).sum()
"""
    assert not structure(tmp_path, text, "train").chooses


def test_a_backward_after_many_turns_is_of_all_of_them(tmp_path: Path) -> None:
    text = """
def train(env):
    for step in range(10_000):
        scores = net(seen)  # 1
        seen, reward, done = env.step(Categorical(logits=scores).sample())
        losses.append(loss_of(scores, reward))
        if (step + 1) % 16 == 0:
            sum(losses).backward()
"""
    assert structure(tmp_path, text, "train").chooses
