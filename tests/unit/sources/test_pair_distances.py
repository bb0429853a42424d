"""Distances that are summed of all differences, by the source of their function."""

from pathlib import Path
from textwrap import indent

import pytest

from gpuwatch.tui.sources.source_text.files import SourceLines
from gpuwatch.tui.sources.source_text.structure import SourceStructure

PROTOTYPES = """
n, m, d = x.size(0), y.size(0), x.size(1)
x = x.unsqueeze(1).expand(n, m, d)
y = y.unsqueeze(0).expand(n, m, d)
return torch.pow(x - y, 2).sum(2)  # here
"""
SEVERAL_LINES = """
return (
    (x.unsqueeze(1) - self.codes.unsqueeze(0))  # here
    .pow(2)
    .sum(dim=-1)
)
"""
AMONG_OTHERS = """
return State(
    points=self.net(x),
    far=(x[:, :, None, :] - y[:, None, :, :]).norm(p=2, dim=-1),  # here
)
"""
BESIDE_THEM = AMONG_OTHERS.replace("  # here", "").replace("net(x),", "net(x),  # here")
BY_NAMES = """
difference = x[:, None] - y[None]  # here
with torch.no_grad():
    squares = difference ** 2
    far = squares.sum(-1)
return far.argmin(1)
"""
OF_EACH = """
error = x - y
return torch.pow(error, 2).sum(2)  # here
"""
BOUND_AGAIN = """
x = x.unsqueeze(1)
x = self.net(x)
y = y.unsqueeze(0)
return ((x - y) ** 2).sum(-1)  # here
"""
NEEDED = """
difference = x[:, None] - x[None]
far = (difference ** 2).sum(-1)  # here
return self.edges(torch.cat([difference, far[..., None]], -1))
"""
WITHIN = """
def other(x, y):
    return ((x[:, None] - y[None]) ** 2).sum(-1)
return other(x, y)  # here
"""


def pairs(folder: Path, body: str) -> bool | None:
    text = "import torch\ndef far(self, x, y):\n" + indent(body.strip(), "    ") + "\n"
    (folder / "net.py").write_text(text)
    line = next(at for at, one in enumerate(text.splitlines(), 1) if one.endswith("# here"))
    structure = SourceStructure(SourceLines([folder]))
    return structure.of((f"far (net.py:{line})", "wrapped (torch/_tensor.py:39)")).pairs


@pytest.mark.parametrize("body", [PROTOTYPES, SEVERAL_LINES, AMONG_OTHERS, BY_NAMES])
def test_all_differences(tmp_path: Path, body: str) -> None:
    assert pairs(tmp_path, body) is True


@pytest.mark.parametrize("body", [OF_EACH, BOUND_AGAIN, NEEDED, WITHIN, BESIDE_THEM])
def test_what_looks_alike(tmp_path: Path, body: str) -> None:
    assert pairs(tmp_path, body) is False


def test_what_cannot_be_read_is_not_known(tmp_path: Path) -> None:
    structure = SourceStructure(SourceLines([tmp_path]))
    assert structure.of(("far (net.py:3)",)).pairs is None
