"""Loops that compute tensors of one part of a batch after the other, by their source."""

from pathlib import Path

import pytest

from gpuwatch.tui.sources.source_text.files import SourceLines
from gpuwatch.tui.sources.source_text.structure import SourceStructure

CRF = """
def log_sum_exp(vec):
    return torch.log(torch.sum(torch.exp(vec)))  # 3

class Tagger(nn.Module):
    def score(self, feats):
        forward_var = self.first
        for feat in feats:
            alphas = []
            for tag in range(self.tags):
                emit = feat[tag].view(1, -1).expand(1, self.tags)
                var = forward_var + self.transitions[tag] + emit
                alphas.append(log_sum_exp(var).view(1))  # 2
            forward_var = torch.cat(alphas).view(1, -1)
        return forward_var

def train():
    for sentence in data:
        loss = model.score(sentence)  # 1
        loss.backward()
"""
RANKING = """
def ranking(scores, relevance):
    total = 0.
    for i in range(scores.size(0)):
        order = torch.argsort(relevance[i])
        s = scores[i][order]
        total = total - torch.logsumexp(s, 0).sum()  # 1
    return total
"""
SUMMED = """
def ranking(scores, relevance):
    total = 0.
    for s, r in zip(scores, relevance):
        total = total + (s * r).sum()  # 1
    return total
"""
RECURRENT = """
def forward(self, x):
    h = self.first
    for t in range(x.size(0)):
        h = torch.tanh(x[t] @ self.w + h @ self.u)  # 1
    return h
"""
LAYERS = """
def forward(self, x):
    for layer in self.layers:
        x = torch.relu(layer(x))  # 1
    return x
"""
HEADS = """
def forward(self, x):
    return [torch.relu(self.heads[k](x)) for k in range(4)]  # 1
"""
NAMED = """
def forward(self, x):
    out = []
    for name in self.names:
        out.append(getattr(self, name)(x))  # 1
    return out
"""
WEIGHTS = """
def penalty(net):
    total = 0.
    for weight in net.parameters():
        total = total + weight.pow(2).sum()  # 1
    return total
"""
AVERAGES = """
@torch.no_grad()
def update(slow, fast):
    for mean, now in zip(slow, fast):
        mean.mul_(0.9).add_(now)  # 1
"""
EPOCHS = """
def train(loader):
    for x, y in loader:
        loss = (x @ w - y).pow(2).mean()  # 1
        loss.backward()
"""


@pytest.mark.parametrize(
    ("text", "functions", "frame"),
    [
        (CRF, ("train", "Tagger.score", "log_sum_exp"), "Tagger.score (train.py:13)"),
        (RANKING, ("ranking",), "ranking (train.py:7)"),
        (SUMMED, ("ranking",), "ranking (train.py:5)"),
        (RECURRENT, ("forward",), ""),
        (LAYERS, ("forward",), ""),
        (HEADS, ("forward",), ""),
        (NAMED, ("forward",), ""),
        (WEIGHTS, ("penalty",), ""),
        (AVERAGES, ("update",), ""),
        (EPOCHS, ("train",), ""),
    ],
)
def test_a_loop_over_tensors_whose_turns_need_no_other(
    tmp_path: Path, text: str, functions: tuple[str, ...], frame: str
) -> None:
    (tmp_path / "train.py").write_text(text)
    lines = text.splitlines()
    frames = [
        f"{name} (train.py:{next(n for n, one in enumerate(lines, 1) if f'# {index}' in one)})"
        for index, name in enumerate(functions, 1)
    ]
    source = SourceStructure(SourceLines([tmp_path]))
    assert source.of(frames).in_turns == frame
    below = (*frames, "log (torch/functional.py:20)")
    assert source.of(below).in_turns == frame


def test_a_loop_of_a_loss_module_is_found_and_one_that_calls_a_net_is_not_twice(
    tmp_path: Path,
) -> None:
    (tmp_path / "train.py").write_text(SUMMED)
    source = SourceStructure(SourceLines([tmp_path]))
    module = "Module._call_impl (torch/nn/modules/module.py:1779)"
    line = "ranking (train.py:5)"
    assert source.of(("<module> (train.py:9)", module, line)).in_turns == line
    assert (
        source.of((line, module, "Linear.forward (torch/nn/modules/linear.py:134)")).in_turns == ""
    )
