"""Loops and modes that leave no frame, by the source of the user's own functions."""

from pathlib import Path

import pytest

from gpuwatch.tui.sources.source_text.files import SourceLines
from gpuwatch.tui.sources.source_text.structure import SourceStructure, Structure

NET = "Module._call_impl (torch/nn/modules/module.py:1779)"


def structure(tmp_path: Path, text: str, *functions: str, net: bool = True) -> Structure:
    """Of a stack through the lines that end in `# 1`, `# 2`, … outermost first."""
    (tmp_path / "train.py").write_text(text)
    lines = text.splitlines()
    at = [
        next(n for n, line in enumerate(lines, 1) if line.endswith(f"# {index}"))
        for index, _ in enumerate(functions, 1)
    ]
    frames = [f"{name} (train.py:{line})" for name, line in zip(functions, at, strict=True)]
    source = SourceStructure(SourceLines([tmp_path]))
    return source.of((*frames, NET) if net else frames)


PIECES = """
class Training:
    def forward(self, inputs):
        return torch.cat([self.model(part) for part in inputs.split(8)])  # 2

    def learn(self, batch):
        loss = self.loss(self.forward(batch))  # 1
        loss.backward()
"""
SUMMED = """
def step(net, batch):
    loss = 0
    for row in batch:
        row = row.to("cuda")
        loss += net(row).mean()  # 1
    loss.backward()
"""
LAYERS = """
def forward(self, x):
    for block in self.blocks:
        x = block(x)  # 1
    return x
"""
CELLS = """
def forward(self, words):
    state = None
    for word in words.unbind(1):
        state = self.cell(word, state)  # 1
    return state
"""
STEPS = """
def train(loader):
    for batch in loader:
        loss = net(batch)  # 1
        loss.backward()
        optimizer.step()
"""
STEPS_BY_A_FUNCTION = """
def learn(batch):
    net(batch).backward()  # 2

for batch in loader:
    learn(batch)  # 1
"""
EPOCHS = """
def train(epoch):
    for batch in loader:
        net(batch).backward()  # 2

for epoch in range(9):
    train(epoch)  # 1
"""
ACCUMULATED = """
def step(batch):
    for part in batch.chunk(4):
        (net(part) / 4).backward()  # 1
    optimizer.step()
"""
SUPPORTS = """
def forward(self, x, support):
    out = [x]
    for a in support:
        out.append(self.nconv(x, a))  # 1
    return torch.cat(out, dim=1)
"""
SAMPLED = """
def sample(x):
    for t in reversed(range(1000)):
        x = net(x, t)  # 1
    return x
"""


@pytest.mark.parametrize(
    ("text", "functions", "frame"),
    [
        (PIECES, ("Training.learn", "Training.forward"), "Training.forward (train.py:4)"),
        (SUMMED, ("step",), "step (train.py:6)"),
        (LAYERS, ("forward",), ""),
        (CELLS, ("forward",), ""),
        (STEPS, ("train",), ""),
        (STEPS_BY_A_FUNCTION, ("<module>", "learn"), ""),
        (EPOCHS, ("<module>", "train"), ""),
        (ACCUMULATED, ("step",), ""),
        (SAMPLED, ("sample",), ""),
        (SUPPORTS, ("forward",), ""),
    ],
)
def test_a_net_that_is_called_for_parts_of_a_batch(
    tmp_path: Path, text: str, functions: tuple[str, ...], frame: str
) -> None:
    assert structure(tmp_path, text, *functions).in_parts == frame


LISTED = "torch.cat([self.head({one}) for {one} in {over}])  # 1\n"


@pytest.mark.parametrize(
    ("text", "found"),
    [
        (LISTED.format(one="part", over="x.split(32)"), True),
        (LISTED.format(one="part", over="x.chunk(8)"), True),
        (LISTED.format(one="feature", over="features"), False),
        (LISTED.format(one="c", over="self.crops"), False),
        (LISTED.format(one="chunk", over="texts.split(32)"), False),
        ("torch.cat([fn(x[i:i + chunk]) for i in range(0, len(x), chunk)])  # 1\n", False),
        ("for i in range(0, n, self.chunk_size):\n    self.encoder(v[i:])  # 1\n", False),
        ("for part in x.split(8):\n    out += [checkpoint(self.net, part)]  # 1\n", False),
        ("for part in seq.split(35):\n    outs += [model(part, state)]  # 1\n", False),
        ("for part in ids.split(1):\n    model(part, past_key_values=cache)  # 1\n", False),
    ],
)
def test_levels_chunks_and_states_are_no_parts_of_a_batch(
    tmp_path: Path, text: str, found: bool
) -> None:
    """RetinaNet's levels and DINO's crops differ in size, NeRF's chunks are all that the memory has
    room for, and a state that is changed in place goes from one turn to the next."""
    assert bool(structure(tmp_path, text, "forward").in_parts) is found


def test_a_list_beside_the_call_of_the_net_is_no_loop_around_it(tmp_path: Path) -> None:
    """A GraphSAGE that looks its neighbours up in the line of its call was to call its net once."""
    for listed in ("int(one)", "neighbours.get(one)"):
        text = f"net(nodes, [{listed} for one in nodes])  # 1\n"
        assert not structure(tmp_path, text, "main").in_parts


def test_before_3_12_a_comprehension_has_a_frame_of_its_own(tmp_path: Path) -> None:
    text = PIECES.replace("  # 2", "  # 2 # 3").replace("# 2 # 3", "# 3")
    lines = text.replace("    def forward(self, inputs):", "    def forward(self, inputs):  # 2")
    functions = ("Training.learn", "Training.forward", "Training.forward.<locals>.<listcomp>")
    found = structure(tmp_path, lines, *functions)
    assert found.in_parts == "Training.forward (train.py:4)"


TREES = """
import torch

def forward(self, words, heads):
    trees = [tree_of(words[i], heads[i]) for i in range(len(words))]  # 1
    return torch.cat([self.embed(tree, words) for tree in trees])

def tree_of(words, heads):
    heads = heads.tolist()
    return [i for i in range(len(words)) if heads[i] == 0]  # 2
"""


@pytest.mark.parametrize(
    ("text", "found"),
    [
        (TREES, False),
        (TREES.replace("heads = heads.tolist()", "heads = torch.relu(heads)"), True),
        (TREES.replace("heads.tolist()", "heads.softmax(-1)[0].item()"), True),
    ],
    ids=["Python", "launches", "launches and reads"],
)
def test_python_for_each_part_within_a_net_is_no_call_of_it(
    tmp_path: Path, text: str, found: bool
) -> None:
    """C-GCN's trees were 82 % of a step on an H200, of which "one call of the net for the whole
    batch" was to be made, 9x at least: 3.4 to 4.8x by other means."""
    (tmp_path / "train.py").write_text(text)
    number = next(n for n, one in enumerate(text.splitlines(), 1) if one.endswith("# 2"))
    stack = ("update (train.py:4)", NET, "forward (train.py:5)", f"tree_of (train.py:{number})")
    seen = SourceStructure(SourceLines([tmp_path])).of(stack)
    assert bool(seen.in_parts) is found
    assert not seen.in_turns


def test_a_file_that_is_no_python_shows_nothing(tmp_path: Path) -> None:
    assert structure(tmp_path, "for x in:  # 1\n", "main") == Structure()


def test_a_file_of_a_program_is_read_without_a_word(
    tmp_path: Path, recwarn: pytest.WarningsRecorder
) -> None:
    text = 'pattern = "\\d"\nfor part in batch:\n    net(part)  # 1\n'
    assert structure(tmp_path, text, "main").in_parts == "main (train.py:3)"
    assert not recwarn.list


def test_an_expression_of_thousands_of_terms_shows_nothing(tmp_path: Path) -> None:
    text = "for part in batch:\n    x = " + "(" * 150 + "net(part)" + ")" * 150 + "  # 1\n"
    assert structure(tmp_path, text, "main").in_parts == "main (train.py:2)"
    deep = "x = " + "+".join(["1"] * 5_000) + "  # 1\n"
    assert structure(tmp_path, deep, "main") == Structure()
