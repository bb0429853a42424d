"""Which lines compute tensors, where a sample that ends in them has no frame of PyTorch's."""

import os
from pathlib import Path
from time import process_time

import pytest

from gpuwatch.tui.model.code_lines import computes, imports_torch
from gpuwatch.tui.model.observations import StackCount
from gpuwatch.tui.session.stack_phases.classify import phase_of
from gpuwatch.tui.sources.source_text.files import ShortPaths, SourceLines
from gpuwatch.tui.sources.source_text.structure import SourceStructure

RENDERS = """
import torch
import numpy as np

def render_rays(rays_o, rays_d, z_vals):
    pts = rays_o[...,None,:] + rays_d[...,None,:] * z_vals[...,:,None]  # HERE
    return torch.cat([pts, z_vals], -1)
"""
EMBEDS = """
import torch

def create_embedding_fn(bands, fns):
    bands = 2. ** torch.linspace(0., 1., steps=bands)
    for freq in bands:
        fns.append(lambda x, p_fn=torch.sin, freq=freq: p_fn(x * freq))
    return lambda x: \\
        x * freq  # HERE
"""
SOLVES = """
import torch

def _runge_kutta_step(func, y0, k, dt, beta):
    yi = y0 + torch.sum(k * (beta * dt), dim=-1)  # HERE
    return func(yi)
"""
COUNTS = """
import torch

def tokens(counts, batch):
    seen = torch.zeros(9)
    for i in range(100_000):
        counts[i % 7] = counts[i % 7] + i * i  # HERE
    return seen
"""
METRIC = """
import numpy as np
import torch

def recall(scores, targets):
    scores = scores.cpu().numpy()
    order = np.argsort(-scores)
    return order[:, :10] == targets[:, None]  # HERE
"""
WITHOUT = """
def smooth(values):
    return values[..., None] * values[:, None]  # HERE
"""
WAITS = """
import torch

def is_done(state):
    return (state.norm() < 1e-3).item()  # HERE
"""
PIECES = """
import torch

def numbers(pieces, seen):
    numbers = [ord(piece[0]) * 31 for piece in pieces]  # HERE
    return torch.tensor(numbers), seen
"""
SCRIPT = """
import torch
x = torch.zeros(3)
y = x * 2  # HERE
"""
ADVANTAGES = """
import torch

class Buffer:
    def advantages(self):
        gae = 0.0
        for t in reversed(range(self.n)):
            delta = self.rewards[t] + self.gamma * self.values[t + 1] - self.values[t]{}
            gae = delta + self.gamma * self.lam * self.masks[t] * gae{}
            self.adv[t] = gae + self.values[t]{}
        return torch.tensor(self.adv, device=self.device)
"""
OF_TENSORS = """
import torch

def advantages(rewards, values, args, device):
    advantages = torch.zeros_like(rewards).to(device)
    for t in reversed(range(args.num_steps)):
        delta = rewards[t] + args.gamma * values[t + 1] - values[t]  # HERE
        advantages[t] = last = delta + args.gamma * last
    return advantages
"""
RETURNS = """
import torch

def returns(rewards, gamma):
    total = 0.0
    for t in reversed(range(len(rewards))):
        total = rewards[t] + gamma * total  # HERE
        rewards[t] = total
    rewards = torch.tensor(rewards)
    return (rewards - rewards.mean()) / rewards.std()
"""
CONVERTED = """
import torch

def normed(rewards):
    given = torch.tensor(rewards)
    return (given - 1) / 2  # HERE
"""
STORES = """
import torch

def values(self, states):
    for t in range(len(states)):
        best = torch.clamp(self.low[t], 0, 1)
        self.low[t] = self.low[t] + self.high[t]  # HERE
    return best
"""
PROPOSES = """
import torch

def rejection_sample(concentration, proposal_r, u):
    z = torch.cos(3.14 * u)
    f = (1 + proposal_r * z) / (proposal_r + z)
    c = concentration * (proposal_r - f)  # HERE
    return c
"""
A_KEYWORD = """
import torch

def schedule(tasks, device):
    if torch.cuda.is_available():
        device = "cuda"
    for task in tasks:
        if task.cost * 2 + task.age > task.best - 1:  # HERE
            task.best = 0
"""
BEHIND_ANOTHER = """
import torch

def main(steps):
    alphas = torch.linspace(0., 1., steps)

    def sample(a):
        return a.sqrt()

    for t in range(steps):
        a = alphas[t][:, None]  # HERE
        sample(a)
"""
LAYERS = """
import torch
from torch import nn

class Attention(nn.Module):
    def __init__(self, config):
        self.query = nn.Linear(
            config.width, config.heads * self.head_dim, bias=True
        )
        self.scaling = self.head_dim**-0.5  # HERE
"""
WALKS = """
import torch

def encoded(x, bands):
    bands = torch.linspace(0., 1., steps=bands)
    for band in bands:
        x = x * band  # HERE
    return x
"""


OF_ARRAYS = """
import torch

def augmented(img, n):
    {asks}
    return (img - m) * 0.5  # HERE
"""
OF_A_NET = """
import torch
from torch import nn

class Scale(nn.Module):
    def forward(self, x):
        m = x.mean()
        return (x - m) * self.scale  # HERE
"""


def found(source: str) -> bool:
    lines = source.splitlines()
    here = next(at for at, one in enumerate(lines, 1) if "# HERE" in one)
    return imports_torch(lines) and computes(lines, here)


@pytest.mark.parametrize(
    "source", [RENDERS, EMBEDS, SOLVES, OF_TENSORS, CONVERTED, WALKS, PROPOSES, BEHIND_ANOTHER]
)
def test_arithmetic_on_tensors_computes(source: str) -> None:
    """yenchenlin's NeRF on an H200: "19 % of each step is Python that launches nothing"."""
    assert found(source)


@pytest.mark.parametrize(
    "source",
    [
        *(COUNTS, METRIC, WITHOUT, WAITS, PIECES, SCRIPT),
        *(
            ADVANTAGES.format(*("  # HERE" if at == here else "" for at in range(3)))
            for here in range(3)
        ),
        *(RETURNS, STORES, A_KEYWORD, LAYERS),
    ],
)
def test_pythons_numbers_arrays_waits_and_what_is_not_known_do_not(source: str) -> None:
    assert not found(source)


def test_a_text_computes_nothing_but_for_what_is_put_into_it() -> None:
    assert not computes(["import torch", 'log.write(f"{step} model(x) took {t}")'], 2)
    assert computes(["import torch", 'log.write(f"{step} {model(x)}")'], 2)


@pytest.mark.parametrize(
    ("asks", "computing"),
    [
        ("m = img.mean()", False),
        ("img = img.reshape(n, -1)", False),
        ("img = img.transpose(2, 0, 1)", False),
        ("m = img['close'].std()", False),
        ("img = img.astype('float32'); m = torch.tensor(3) * img.norm()", False),
        ("m = img.mean(axis=(0, 1)); img.clamp(0, 1)", False),
        ("m = img.mean(); torch.relu(img)", True),
        ("m = torch.sum(img, axis=-1)", True),
        ("m = img.mean(dim=1)", True),
        ("m = img.mean(0, keepdim=True)", True),
        ("img = img.transpose(1, 2)", True),
        ("m = img.mean()\n    m = m.clamp(0, 1)", True),
    ],
)
def test_what_numpys_arrays_are_asked_for_too_shows_no_tensor(asks: str, computing: bool) -> None:
    """A data set's transforms in a file that imports PyTorch were the net's forward."""
    assert found(OF_ARRAYS.format(asks=asks)) is computing


def test_in_a_net_and_of_what_is_said_to_be_a_tensor_it_does() -> None:
    assert found(OF_A_NET)
    assert not found(OF_A_NET.replace("nn.Module", "Transform"))
    said = OF_ARRAYS.format(asks="m = img.mean()")
    assert found(said.replace("img, n", "img: torch.Tensor, n"))
    assert found(said.replace("n):", "n) -> Tensor:"))


def test_a_docstring_imports_nothing() -> None:
    assert not imports_torch(['"""', "from torch we took the idea", "import torch", '"""'])
    assert not imports_torch(["import torch_geometric", "from torchvision import io"])
    assert imports_torch(['"""One line."""', "import torch.nn as nn"])
    assert imports_torch(["import torch, os"])


@pytest.mark.parametrize("part", ["[1, 2, 3], ", "x_ + ", "a[0], ", " ", "-", "a(b)(c), ", "'a', "])
def test_long_lines_are_data_and_take_no_time(part: str) -> None:
    """One of 20,000 brackets took 9 s."""
    for length in (900, 100_000):
        long = f"    x = y, {part * (length // len(part))} torch.relu(y)"
        lines = ["import torch", "def f(y):", "    z = torch.zeros(1)", long, "    w = z - 1"]
        began = process_time()
        assert computes(lines, 5)
        assert computes(lines, 4) == (length < 1_000)
        assert process_time() - began < 1.0


@pytest.mark.parametrize("part", ["[", "for a in ", "a = "])
def test_a_function_that_cannot_be_parsed_is_not_known(part: str) -> None:
    lines = ["import torch", "def f(y):", "    z = torch.zeros(1)", f"    {part}", "    w = z - 1"]
    assert not computes(lines, 5)


def test_an_expression_of_thousands_of_terms_is_not_known() -> None:
    terms = ["    w = z - 1", *(["    + 1 \\"] * 9_000), "    + 1"]
    lines = ["import torch", "def f(y):", "    z = torch.zeros(1)", f"{terms[0]} \\", *terms[1:]]
    assert not computes(lines, 4)


def test_a_line_that_is_not_there_does_not() -> None:
    assert not computes(["import torch"], 9)
    assert not computes([], 0)


def test_a_librarys_own_line_is_read_where_it_is_installed(tmp_path: Path) -> None:
    """gpytorch's, keras's and torchdiffeq's lines end samples too: "26 % is Python"."""
    home = tmp_path / "site-packages" / "torchode"
    home.mkdir(parents=True)
    (home / "__init__.py").touch()
    (home / "solvers.py").write_text(SOLVES)
    paths = ShortPaths(os.getpid())
    short = paths.of(str(home / "solvers.py"))
    assert short == "site-packages/torchode/solvers.py"
    source = SourceStructure(SourceLines([tmp_path], paths.file_of))
    frames = ("<module> (train.py:3)", f"_runge_kutta_step ({short}:5)")
    assert source.of(frames).computes
    stack = StackCount(role="main", pid=1, thread="t", frames=frames, count=1)
    assert phase_of(stack) == "other"
    computing = StackCount(
        role="main", pid=1, thread="t", frames=frames, count=1, computes=source.of(frames).computes
    )
    assert phase_of(computing) == "forward"
    assert not source.of((*frames, "relu (torch/nn/functional.py:9)")).computes


def test_a_file_of_which_no_path_was_cut_is_looked_up_by_its_roots() -> None:
    assert ShortPaths(1).file_of("train.py") is None
