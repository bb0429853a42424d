"""Loops that compute tensors of one part of a batch after the other, by their source."""

from pathlib import Path

import pytest

from gpuwatch.tui.sources.source_text.files import SourceLines
from gpuwatch.tui.sources.source_text.structure import SourceStructure
from tests.unit.sources.test_source_structure import structure

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


OF_STEPS = {
    "a function": """
    for x, y in data:
        loss = error(net(x), y)  # 1
        optimize(loss)""",
    "a scaler that answers": """
    for x, y in data:
        loss = error(net(x), y)  # 1
        norm = loss_scaler(loss, optimizer, clip_grad=1.0)""",
    "an optimizer": """
    for x, y in data:
        loss = error(net(x), y)  # 1
        opt.minimize(loss)""",
    "an agent, in a branch": """
    for x, y in data:
        loss = error(net(x), y)  # 1
        losses.append(loss.item())
        if torch.isfinite(loss):
            agent.learn(loss)""",
    "a method of the same object": """
    for x, y in data:
        self.loss = error(net(x), y)  # 1
        self.optimize_parameters()""",
    "what is made of the loss": """
    for x, y in data:
        loss = error(net(x), y)  # 1
        slopes = gradients_of(loss, weights)
        apply_updates(weights, slopes)""",
    "a closure": """
    for x, y in data:
        loss = error(net(x), y)  # 1
        opt.step(lambda: loss)""",
    "in the same line": """
    for x, y in data:
        optimize(error(net(x), y))  # 1""",
    "a loader that is looked at": """
    for x, y in tqdm(held_out_loader):
        right += (net(x).argmax(1) == y).sum()  # 1""",
    "a loader of another name": """
    train, held_out = get_dataloaders()
    for x, y in held_out:
        right += (net(x).argmax(1) == y).sum()  # 1""",
    "one of several loaders": """
    for x, y in loaders["test"]:
        right += (net(x).argmax(1) == y).sum()  # 1""",
}
OF_PARTS = {
    "the graphs of a batch": """
    for graph in next(loader):
        loss = loss + net(graph)  # 1""",
    "the graphs of another": """
    for graph in self.batches[step]:
        loss = loss + net(graph)  # 1""",
    "an update behind the loop": """
    for x, y in loader:
        loss = 0
        for part in x.split(8):
            loss = loss + net(part).mean()  # 1
        optimize(loss)""",
    "an update behind a list": """
    for x in loader:
        optimize(sum([net(part) for part in x.split(8)]))  # 1""",
    "losses that are looked at": """
    for part in x.split(8):
        loss = net(part)  # 1
        meter.update(loss)
        self.log("loss", loss)
        print(loss)
        total = total + loss""",
    "outputs that are kept": """
    for name, part in x.items():
        out = net(part)  # 1
        kept.update({name: out})
        save_image(out, name)""",
}


@pytest.mark.parametrize("name", [*OF_STEPS, *OF_PARTS])
def test_a_loop_that_trains_by_what_another_file_holds_has_no_parts(
    tmp_path: Path, name: str
) -> None:
    """ "one call of the net for the whole batch, instead of one for each part of it, 4.5x" of the
    training's own loop."""
    found = structure(tmp_path, f"def fit(net, data):{(OF_STEPS | OF_PARTS)[name]}\n", "fit")
    assert bool(found.in_parts) is (name in OF_PARTS)


UPDATES = """
class Trainer:
    def loss_of(self, x):
        return error(self.net(x))  # 3

    def update(self, loss):
        self.scaler(loss, self.opt)

    def take(self, x):
        loss = self.loss_of(x)  # 2
        self.update(loss)

    def fit(self):
        for x in self.everything:
            self.take(x)  # 1
"""


def test_nor_has_one_around_a_function_that_trains_so(tmp_path: Path) -> None:
    functions = ("Trainer.fit", "Trainer.take", "Trainer.loss_of")
    assert not structure(tmp_path, UPDATES, *functions).in_parts
    looks = UPDATES.replace("self.scaler(loss, self.opt)", "self.kept.append(loss)")
    assert structure(tmp_path, looks, *functions).in_parts == "Trainer.fit (train.py:15)"


AROUND = """
def run(x, h):
    def turn(one):
        {bound}
        h = self.net(torch.cat([one, h]))  # 2
        return h
    return [turn(one) for one in x]  # 1
"""


@pytest.mark.parametrize(
    ("bound", "found"), [("nonlocal h", False), ("global h", False), ("h = first", True)]
)
def test_a_function_within_another_may_hand_a_state_on(
    tmp_path: Path, bound: str, found: bool
) -> None:
    text = AROUND.format(bound=bound)
    assert bool(structure(tmp_path, text, "run", "run.<locals>.turn").in_parts) is found
