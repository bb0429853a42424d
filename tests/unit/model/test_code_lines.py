"""Which lines compute tensors, where a sample that ends in them has no frame of PyTorch's."""

import os
from pathlib import Path

import pytest

from gpuwatch.tui.model.code_lines import computes, imports_torch
from gpuwatch.tui.model.observations import StackCount
from gpuwatch.tui.session.stack_phases.classify import phase_of
from gpuwatch.tui.sources.source_code import ShortPaths, SourceLines
from gpuwatch.tui.sources.source_structure import SourceStructure

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


def found(source: str) -> bool:
    lines = source.splitlines()
    here = next(at for at, one in enumerate(lines, 1) if "# HERE" in one)
    return imports_torch(lines) and computes(lines, here)


@pytest.mark.parametrize("source", [RENDERS, EMBEDS, SOLVES])
def test_arithmetic_on_tensors_computes(source: str) -> None:
    """yenchenlin's NeRF on an H200: "19 % of each step is Python that launches nothing"."""
    assert found(source)


@pytest.mark.parametrize("source", [COUNTS, METRIC, WITHOUT, WAITS, PIECES, SCRIPT])
def test_pythons_numbers_arrays_waits_and_what_is_not_known_do_not(source: str) -> None:
    assert not found(source)


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
