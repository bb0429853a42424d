"""A parametrized weight that a loop in a net computes anew in each turn, by the source."""

from pathlib import Path

import pytest

from gpuwatch.tui.sources.source_text.files import SourceLines
from gpuwatch.tui.sources.source_text.structure import SourceStructure
from tests.unit.sources.test_source_structure import NET

WEIGHT = (
    *(NET, "Linear.forward (torch/nn/modules/linear.py:134)"),
    "get_parametrized (torch/nn/utils/parametrize.py:401)",
    "ParametrizationList.forward (torch/nn/utils/parametrize.py:328)",
    *(NET, "_Orthogonal.forward (torch/nn/utils/parametrizations.py:109)"),
)
OLDER = (NET, "WeightNorm.__call__ (torch/nn/utils/weight_norm.py:78)")
TEXT = """
class Net:
    def forward(self, xs, blocks):
        state = self.begin(xs)
        {loop}
            {line}
        return self.head(state)

{decorator}
def train(loader):
    for xs in loader:
        loss = net(xs)  # 1
        loss.backward()

class Rotations:
    def forward(self, angles):
        for angle in angles:
            turn = turn @ matrix(angle)  # 3
"""


def anew(
    tmp_path: Path,
    loop: str,
    line: str = "state = self.cell(state)  # 2",
    below: tuple[str, ...] = WEIGHT,
    decorator: str = "",
) -> str:
    """Of a net's `forward`, which begins in line 3; the loop is in line 5."""
    text = TEXT.format(loop=loop, line=line, decorator=decorator)
    (tmp_path / "train.py").write_text(text)
    at = {one[-1]: n for n, one in enumerate(text.splitlines(), 1) if one[-3:-1] == "# "}
    below = tuple(one.replace("# 3", str(at["3"])) for one in below)
    way = (f"train (train.py:{at['1']})", NET, f"Net.forward (train.py:{at['2']})")
    return SourceStructure(SourceLines([tmp_path])).of((*way, *below)).anew


@pytest.mark.parametrize(
    ("loop", "line"),
    [
        ("for x in xs.unbind(1):", "state = self.cell(x.float(), state)  # 2"),
        ("for t in range(xs.size(1)):", "state = self.cell(xs[:, t].float(), state)  # 2"),
        ("for x in self.words(xs).unbind(1):", "state = self.cell(x, state)  # 2"),
        ("for _ in range(self.turns):", "state = self.cell(state)  # 2"),
        ("while (state - before).norm() > 1e-3:", "before, state = state, self.cell(state)  # 2"),
        ("if xs.is_cuda:", "state = stack([self.cell(x) for x in xs.unbind(1)])  # 2"),
        (
            "for t in range(xs.size(1)):",
            "for i in range(2):\n                state = self.cells[i](xs[t], state)  # 2",
        ),
    ],
)
@pytest.mark.parametrize("below", [WEIGHT, OLDER], ids=["parametrized", "older hooks"])
def test_a_loop_that_calls_one_layer_again_and_again(
    tmp_path: Path, loop: str, line: str, below: tuple[str, ...]
) -> None:
    at = 5 + line.count("\n") + 1
    assert anew(tmp_path, loop, line, below) == f"Net.forward (train.py:{at})"
    assert anew(tmp_path, loop, line, (NET, "Linear.forward (torch/nn/modules/linear.py:9)")) == ""


@pytest.mark.parametrize(
    ("loop", "line"),
    [
        ("if self.training:", "state = self.cell(state)  # 2"),
        ("for layer in self.layers:", "state = layer(state)  # 2"),
        ("for layer in blocks:", "state = layer(state)  # 2"),
        ("for i in range(len(self.layers)):", "state = self.layers[i](state)  # 2"),
        ("for i in range(4):", "state = self.layers[i].attend(state)  # 2"),
        ("for i in range(4):", "layer = blocks[i]\n            state = layer(state)  # 2"),
        ("for i in range(4):", "state = checkpoint(self.layers[i], state)  # 2"),
        ("for i in range(4):", 'state = getattr(self, f"layer{i}")(state)  # 2'),
        ("for i, (a, b) in enumerate(zip(self.a, self.b)):", "state = a.inner(state)  # 2"),
        ("for block in self.blocks.values():", "state = block.attend(state)  # 2"),
        ("if xs.is_cuda:", "state = sum(layer(xs) for layer in self.layers)  # 2"),
        ("for x in self.cell(xs):  # 2", "state = x"),
    ],
)
def test_layer_after_layer_is_computed_once_each(tmp_path: Path, loop: str, line: str) -> None:
    assert anew(tmp_path, loop, line) == ""


def test_what_is_kept_for_the_forward_is_computed_once(tmp_path: Path) -> None:
    kept = "with parametrize.cached():\n          for x in xs.unbind(1):"
    assert anew(tmp_path, kept) == ""
    assert anew(tmp_path, "for x in xs.unbind(1):", decorator="@parametrize.cached()") == ""
    assert anew(tmp_path, "for x in xs.unbind(1):", decorator="@timed()")


@pytest.mark.parametrize(
    ("line", "found"), [("self.layers[i](x)", False), ("self.layers[0](x.float())", True)]
)
def test_a_method_may_call_another_layer_each_time(tmp_path: Path, line: str, found: bool) -> None:
    text = f"""
class Net:
    def forward(self, x):
        for i in range(4):
            x = self.layer_of(i, x)
        return x

    def layer_of(self, i, x):
        return {line}
"""
    (tmp_path / "train.py").write_text(text)
    way = ("train (main.py:9)", NET, "Net.forward (train.py:5)", "Net.layer_of (train.py:9)")
    seen = SourceStructure(SourceLines([tmp_path])).of((*way, *WEIGHT)).anew
    assert bool(seen) is found


def test_a_loop_of_the_parametrization_itself_is_no_turn(tmp_path: Path) -> None:
    below = (*WEIGHT[:-1], "Rotations.forward (train.py:# 3)")
    assert anew(tmp_path, "if self.training:", below=below) == ""
