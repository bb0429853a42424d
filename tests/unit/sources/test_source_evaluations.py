"""A net that runs without learning, by the source of the functions that lead to it."""

from pathlib import Path

import pytest

from gpuwatch.tui.sources.source_text.files import SourceLines
from gpuwatch.tui.sources.source_text.structure import SourceStructure, Structure
from tests.unit.sources.test_source_structure import NET, structure

VALIDATION = """
for epoch in range(9):
    for batch in loader:
        net(batch).backward()
    with torch.no_grad():
        for batch in held_out:  # 2
            right += (net(batch).argmax(1) == batch.y).sum().item()  # 1
"""
BY_A_FUNCTION = """
def loss_on(batch):
    with torch.inference_mode():
        return net(batch).mean()  # 2

def check():
    return [loss_on(batch) for batch in held_out]  # 1
"""
TEACHER = """
for batch in loader:
    with torch.no_grad():
        wanted = teacher(batch)  # 1
    (net(batch) - wanted).square().mean().backward()
"""
TEACHER_IN_A_FUNCTION = """
def learn(batch):
    with torch.no_grad():
        wanted = teacher(batch)  # 2
    (net(batch) - wanted).square().mean().backward()

for batch in loader:
    learn(batch)  # 1
"""
EVAL_MODE = """
def epoch():
    net.train()
    for batch in loader:
        net(batch).backward()
    net.eval()
    for batch in held_out:
        losses.append(net(batch).item())  # 1
"""
TRAIN_MODE = """
def epoch():
    net.eval()
    net.train()
    for batch in loader:
        losses.append(net(batch))  # 1
"""
EPOCHS = """
def train():
    net.train()
    for batch in loader:
        net(batch).backward()  # 2

def test():
    net.eval()
    for batch in held_out:
        losses.append(net(batch).item())  # 4

for epoch in range(9):
    train()  # 1
    test()  # 3
"""
_THE_OTHER = str.maketrans("1234", "3412")
GRAD_ON = """
for batch in loader:
    with torch.set_grad_enabled(phase == "train"):
        out = net(batch)  # 1
"""
ROLLOUT = """
def play():
    with torch.no_grad():
        for _ in range(128):
            seen = env.step(net(seen).argmax())  # 1
"""


@pytest.mark.parametrize(
    ("text", "functions", "evaluates"),
    [
        (VALIDATION, ("<module>",), True),
        (BY_A_FUNCTION, ("check", "loss_on"), True),
        (TEACHER, ("<module>",), False),
        (TEACHER_IN_A_FUNCTION, ("<module>", "learn"), False),
        (EVAL_MODE, ("epoch",), True),
        (TRAIN_MODE, ("epoch",), False),
        (EPOCHS, ("<module>", "train"), False),
        (EPOCHS.translate(_THE_OTHER), ("<module>", "test"), True),
        (GRAD_ON, ("<module>",), False),
        (ROLLOUT, ("play",), True),
    ],
)
def test_a_net_that_runs_without_learning(
    tmp_path: Path, text: str, functions: tuple[str, ...], evaluates: bool
) -> None:
    assert structure(tmp_path, text, *functions).evaluates is evaluates


def test_the_batches_of_an_evaluation_are_its_own_once_its_net_was_seen(tmp_path: Path) -> None:
    (tmp_path / "train.py").write_text(VALIDATION)
    source = SourceStructure(SourceLines([tmp_path]))
    fetch = ("<module> (train.py:6)", "__next__ (torch/utils/data/dataloader.py:701)")
    assert not source.of(fetch).evaluates
    assert source.of(("<module> (train.py:7)", NET)).evaluates
    assert source.of(fetch).evaluates
    assert not source.of(("<module> (train.py:3)", fetch[1])).evaluates


LAYERS = """
def gnn(vectors):
    for layer in layers:
        vectors = vectors + matrix @ layer(vectors)  # 3
    return vectors

def forward(batch, train):
    if train:
        return loss(gnn(batch))
    with torch.no_grad():
        return gnn(batch)  # 2

def test(rows):
    for batch in rows:
        error += forward(batch, False)  # 1

def learn(rows):
    for batch in rows:
        optimizer.zero_grad()
        forward(batch, True).backward()
        optimizer.step()
"""


def test_a_loop_over_layers_lies_within_that_of_the_evaluation(tmp_path: Path) -> None:
    """Of a net without a module around its layers most stacks show no call of one: 7 of 9 samples
    of a molecular graph network's evaluations were "forward"."""
    (tmp_path / "train.py").write_text(LAYERS)
    source = SourceStructure(SourceLines([tmp_path]))
    product = ("test (train.py:15)", "forward (train.py:11)", "gnn (train.py:4)")
    learned = ("learn (train.py:20)", "forward (train.py:9)", "gnn (train.py:4)")
    assert not source.of((*learned, NET)).evaluates
    assert not source.of(product).evaluates
    assert source.of((*product, NET)).evaluates
    assert source.of(product).evaluates
    assert not source.of(learned).evaluates


WHOLE_GRAPH = """
def train():
    optimizer.zero_grad()
    loss = of(net(graph))  # 2
    loss.backward()

@torch.no_grad()
def test():
    out = net(graph)  # 1
    return [(out[mask] == y[mask]).sum().item() for mask in masks]

for epoch in range(9):
    train()
    print(test())
"""


def test_a_function_that_evaluates_all_at_once_is_one_to_its_last_line(tmp_path: Path) -> None:
    """It has no loop of its own, and the one around it trains as well: of a graph network 39 % of
    the samples, which wait there for the evaluation's kernels, were "forward"."""
    (tmp_path / "train.py").write_text(WHOLE_GRAPH)
    source = SourceStructure(SourceLines([tmp_path]))
    whole = "<module> (train.py:14)"
    without_grad = "decorate_context (torch/utils/_contextlib.py:124)"
    counts = (whole, without_grad, "test (train.py:10)")
    assert not source.of(counts).evaluates
    assert source.of((whole, without_grad, "test (train.py:9)", NET)).evaluates
    assert not source.of(("<module> (train.py:13)", "train (train.py:4)", NET)).evaluates
    assert source.of(counts).evaluates
    assert not source.of(("<module> (train.py:13)", "train (train.py:3)")).evaluates
    assert not source.of((whole,)).evaluates


VALIDATES = """
@torch.inference_mode()
def test():
    net.eval()
    return [(of(graph)[mask] == y[mask]).sum().item() for mask in masks]

@torch.no_grad()
def average():
    for mean, now in zip(slow, fast):
        mean.mul_(0.9).add_(now)

for epoch in range(9):
    average(train())
    print(test())
"""


def test_what_is_decorated_without_gradients_and_sets_eval_is_an_evaluation(tmp_path: Path) -> None:
    """Also before its net was seen to run: on a GPU that takes microseconds."""
    (tmp_path / "train.py").write_text(VALIDATES)
    source = SourceStructure(SourceLines([tmp_path]))
    assert not source.of(("<module> (train.py:13)", "average (train.py:10)")).evaluates
    assert source.of(("<module> (train.py:14)", "test (train.py:5)")).evaluates
    assert not source.of(("<module> (train.py:13)", "average (train.py:10)")).evaluates


ACTING = """
for update in range(9):
    for step in range(128):
        with torch.no_grad():
            action = agent(seen)  # 1
        seen = env.step(action)
    agent(batch).backward()
"""
DISTILLED = """
for update in range(9):
    for step in range(128):
        with torch.no_grad():
            wanted = teacher(seen)  # 1
        losses.append(net(seen) - wanted)
        seen = draw()
    torch.stack(losses).sum().backward()
"""


def test_what_an_environment_does_between_two_actions_belongs_to_the_rollout(
    tmp_path: Path,
) -> None:
    (tmp_path / "train.py").write_text(ACTING)
    source = SourceStructure(SourceLines([tmp_path]))
    acts = ("<module> (train.py:6)", "TimeLimit.step (gym/wrappers/time_limit.py:17)")
    assert not source.of(acts).evaluates
    assert source.of(("<module> (train.py:5)", NET)).evaluates
    assert source.of(acts).evaluates
    assert not source.of(("<module> (train.py:7)", NET)).evaluates


MANY_ENVIRONMENTS = """
class Environments:
    def step_wait(self):
        return [pipe.recv() for pipe in self.pipes]

for update in range(9):
    for step in range(5):
        with torch.no_grad():
            action = agent(seen)
        seen = envs.step(action)
    agent.update(storage)
"""


def test_a_loop_over_environments_belongs_to_the_rollout_around_it(tmp_path: Path) -> None:
    """ikostrikov's A2C: 33 % of an H200's time at `pipe.recv()` were Python between the phases."""
    (tmp_path / "train.py").write_text(MANY_ENVIRONMENTS)
    source = SourceStructure(SourceLines([tmp_path]))
    waits = ("<module> (train.py:10)", "Environments.step_wait (train.py:4)")
    assert source.of(("<module> (train.py:9)", NET)).evaluates
    assert source.of(waits).evaluates
    assert not source.of(("<module> (train.py:11)", "update (train.py:11)")).evaluates


LOOKS_AT_ALL = """
for epoch in range(9):
    for x, y in loader:
        train_step(x, y)
    with torch.no_grad():
        right = net(held_out).argmax(-1) == wanted
"""


def test_a_loop_within_that_of_an_evaluation_is_not_its_own(tmp_path: Path) -> None:
    """Below a library's frame (`@torch.autocast`) nobody sees that the step trains: its batches
    were an evaluation's, and to be fetched less often."""
    (tmp_path / "train.py").write_text(LOOKS_AT_ALL)
    source = SourceStructure(SourceLines([tmp_path]))
    source.of(("<module> (train.py:6)", NET))
    assert not source.of(("<module> (train.py:3)", "Pictures.__getitem__ (data.py:9)")).evaluates
    library = "decorate_autocast (torch/amp/autocast_mode.py:44)"
    assert not source.of(("<module> (train.py:4)", library, "train_step (data.py:9)")).evaluates


def test_a_loop_in_which_a_net_also_runs_with_gradients_is_no_evaluation(tmp_path: Path) -> None:
    (tmp_path / "train.py").write_text(DISTILLED)
    source = SourceStructure(SourceLines([tmp_path]))
    draws = ("<module> (train.py:7)", "draw (data.py:17)")
    assert not source.of(("<module> (train.py:5)", NET)).evaluates  # its outputs are learned from
    assert not source.of(("<module> (train.py:6)", NET)).evaluates
    assert not source.of(draws).evaluates


def test_averages_of_parameters_are_no_evaluation(tmp_path: Path) -> None:
    text = """
def update():
    with torch.no_grad():
        for mean, now in zip(slow, fast):
            mean.mul_(0.9).add_(now)  # 1
"""
    assert structure(tmp_path, text, "update", net=False) == Structure(acts=False, pairs=False)


AFTER_UPDATE = """
def train(epoch):
    model.train()
    optimizer.zero_grad()
    output = model(features)  # {learns}
    loss = F.nll_loss(output, labels)
    loss.backward()
    optimizer.step()
    if not fastmode:
        {net}.eval()
        output = {net}.encode(features)  # {asked}

for epoch in range(200):
    train(epoch)  # 1
"""


@pytest.mark.parametrize(
    ("net", "asked", "evaluates"), [("model", 2, True), ("model", 3, False), ("teacher", 2, False)]
)
def test_a_net_that_is_asked_again_after_its_update_is_evaluated(
    tmp_path: Path, net: str, asked: int, evaluates: bool
) -> None:
    """pygcn evaluates after each update, in the function that trains: 1.36x without."""
    text = AFTER_UPDATE.format(net=net, asked=asked, learns=5 - asked)
    assert structure(tmp_path, text, "<module>", "train").evaluates is evaluates
    assert not structure(tmp_path, text, "<module>", "train", net=False).evaluates
