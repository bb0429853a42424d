"""Of how many files the syntax is kept, and what was learned of those that are parsed again."""

import ast
from pathlib import Path

import pytest

from gpuwatch.tui.sources.source_text import syntax_trees
from gpuwatch.tui.sources.source_text.files import SourceLines
from gpuwatch.tui.sources.source_text.structure import SourceStructure
from gpuwatch.tui.sources.source_text.syntax_trees import SyntaxTrees
from gpuwatch.tui.verdict.syntax import parsed

NET = "Module._call_impl (torch/nn/modules/module.py:1779)"
TRAIN = """import torch
def fit(model, loader, val, opt):
    for e in range(9):
        for x, y in loader:
            loss = model(x)
            loss.backward()
            opt.step()
        check(model, val)
def check(model, val):
    model.eval()
    for x, y in val:
        out = model(x)
"""
LAYER = """import torch
class Layer:
    def forward(self, x):
        return self.inner(x)
"""
FILES = 30


@pytest.fixture
def read(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Texts that were parsed."""
    texts: list[str] = []

    def counted(text: str) -> ast.Module | None:
        texts.append(text)
        return parsed(text)

    monkeypatch.setattr(syntax_trees, "parsed", counted)
    return texts


def project(folder: Path) -> list[tuple[str, ...]]:
    """A net of layers in each other, each in a file of its own: stacks of its evaluation and of its
    steps, one deeper than the other."""
    (folder / "train.py").write_text(TRAIN)
    for at in range(FILES):
        (folder / f"layer{at}.py").write_text(LAYER)
    layers = [(NET, f"Layer.forward (layer{at}.py:4)") for at in range(FILES)]
    nets = [sum(layers[: at + 1], ()) for at in range(FILES)]
    evaluation = ("fit (train.py:8)", "check (train.py:12)", *nets[0])
    return [evaluation, *(("fit (train.py:5)", *net) for net in nets)]


FETCH = ("fit (train.py:8)", "check (train.py:11)", "_next (torch/utils/data/dataloader.py:9)")
"""Of the evaluation's batches."""


def test_files_of_a_project_are_parsed_once(tmp_path: Path, read: list[str]) -> None:
    source = SourceStructure(SourceLines([tmp_path]))
    stacks = project(tmp_path)
    for _ in range(2):
        for stack in stacks:
            source.of(stack)
    assert len(read) == FILES + 1


def test_what_was_learned_of_a_file_is_known_when_it_is_parsed_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, read: list[str]
) -> None:
    monkeypatch.setattr(syntax_trees, "MOST_KEPT", 2 * len(TRAIN))
    stacks = project(tmp_path)
    source = SourceStructure(SourceLines([tmp_path]))
    assert not source.of(FETCH).evaluates
    for stack in stacks:
        source.of(stack)
    for at in range(FILES):
        source.of((f"Layer.forward (layer{at}.py:4)",))
    before = len(read)
    assert source.of(FETCH).evaluates
    assert read[before:] == [TRAIN.rstrip("\n")]


def test_the_file_that_was_asked_for_longest_ago_makes_room(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, read: list[str]
) -> None:
    monkeypatch.setattr(syntax_trees, "MOST_KEPT", 10)
    for name in "abc":
        (tmp_path / f"{name}.py").write_text(f"{name} = 1")
    trees = SyntaxTrees(SourceLines([tmp_path]))
    for path in ("a.py", "b.py", "a.py", "c.py", "a.py", "b.py", "b.py"):
        assert trees.of(path) is not None
    assert read == ["a = 1", "b = 1", "c = 1", "b = 1"]
