"""What steps and is no environment, by the source: validators, samplers, solvers, beams."""

from pathlib import Path

import pytest

from gpuwatch.tui.sources.source_text.files import SourceLines
from gpuwatch.tui.sources.source_text.structure import SourceStructure
from tests.unit.sources.test_source_structure import structure

VALIDATOR = """
class Validator:
    def reset(self):
        self.total = 0

    def step(self, {given}):
        with torch.no_grad():
            loss = self.{net}(*{given})  # 3
        self.total += loss.item()
        return loss, self.total

    def run(self):
        self.reset()
        for k in range(100):
            self.step(get_batch("val"))  # 2

for it in range(9000):
    train_step(model, optimizer)
    validator.run()  # 1
"""
DDIM = """
class DDIMSampler:
    def reset(self):
        self.at = 0

    def step(self, x):
        with torch.no_grad():
            eps = self.model(x, self.times[self.at])  # 3
        self.at += 1
        return {"x": self.update(x, eps)}

    def sample(self, n):
        self.reset()
        x = torch.randn(n, 3, 32, 32)
        for _ in range(50):
            x = self.step(x)  # 2
        return x

for epoch in range(9):
    save_image(sampler.sample(64), "look.png")  # 1
"""


@pytest.mark.parametrize(
    ("text", "owner", "runs"),
    [
        (VALIDATOR.format(given="batch", net="model"), "Validator", "run"),
        (VALIDATOR.format(given="given", net="judge"), "Validator", "run"),
        (DDIM, "DDIMSampler", "sample"),
    ],
    ids=["a validator", "by its stack", "a sampler"],
)
def test_what_calls_a_net_to_step_is_no_environment(
    tmp_path: Path, text: str, owner: str, runs: str
) -> None:
    """ "act for more environments in one batch" was said to a validation."""
    stack = ("<module>", f"{owner}.{runs}", f"{owner}.step")
    assert structure(tmp_path, text, *stack).acts is False


def test_what_it_does_beside_its_net_is_none_either(tmp_path: Path) -> None:
    text = VALIDATOR.format(given="given", net="judge")
    (tmp_path / "train.py").write_text(text)
    source = SourceStructure(SourceLines([tmp_path]))
    sums = ("<module> (train.py:19)", "Validator.run (train.py:15)", "Validator.step (train.py:9)")
    net = (*sums[:2], "Validator.step (train.py:8)", "_call_impl (torch/nn/modules/module.py:1)")
    source.of(net)
    assert source.of(sums).acts is False


WORLD = """
class {name}:
    def reset(self):
        return self.start()

    def step(self, {given}):
        self.at = self.move({given})  # 2
        {answer}

machine.step(drawn())  # 1
"""


@pytest.mark.parametrize(
    ("name", "given", "answer", "acts"),
    [
        ("Grid", "action", "return self.at, self.at == self.goal", True),
        ("Grid", "action", 'return {"at": self.at}', True),
        ("Grid", "action", "return self.at", False),
        ("GridEnv", "action", "return self.at", True),
        ("Grid", "action", "self.reward = self.pay(); return self.at", True),
        ("Beam", "logits", "return self.tokens, self.done", False),
    ],
    ids=["parts", "by name", "one", "an env", "a reward", "a beam"],
)
def test_an_environment_answers_in_parts_or_is_called_one(
    tmp_path: Path, name: str, given: str, answer: str, acts: bool
) -> None:
    text = WORLD.format(name=name, given=given, answer=answer)
    found = structure(tmp_path, text, "<module>", f"{name}.step", net=False)
    assert found.acts is acts


ASKS = """
@torch.no_grad()
def sample(net, x):
    {begins}
    for t in times:
        v = net(x, t)  # 2
        {asks}
    return x

for step in range(9000):
    train_step(net)
    look(sample(net, start))  # 1
"""


@pytest.mark.parametrize(
    ("begins", "asks", "acts"),
    [
        ("pass", "x = solver.step(v)", False),
        ("beam.reset(x)", "x, done = beam.step(v)", False),
        ("pass", "x, right = meter.step((v, y))", False),
        ("pass", "x, right = trainer.step(v)", False),
        ("pass", "x = world_model.step(v)", False),
        ("x = grid.reset()", "x, more = grid.step(v)", True),
        ("pass", "x, reward, done, _ = grid.step(v)", True),
        ("pass", "next_obs, more = grid.step(v); x = next_obs", True),
        ("pass", "x = self.envs[0].step(v)[0]", True),
    ],
)
def test_a_loop_acts_where_what_answers_shows_an_environment(
    tmp_path: Path, begins: str, asks: str, acts: bool
) -> None:
    """By what it is called, by what it answers, or because its `reset` gives what the net reads."""
    text = ASKS.format(begins=begins, asks=asks)
    assert structure(tmp_path, text, "<module>", "sample").acts is acts


def test_what_a_trainer_of_ones_own_is_handed_is_learned_from(tmp_path: Path) -> None:
    """A GAN's pictures for its discriminator: "evaluate less often"."""
    text = """
for x in loader:
    with torch.no_grad():
        fake = G(torch.randn(64, 100))  # 1
    d_loss, right = d_trainer.step(fake)
    g_loss = -D(G(z)).mean()
    g_loss.backward()
    opt_g.step()
"""
    found = structure(tmp_path, text, "<module>")
    assert (found.evaluates, found.acts) == (False, False)
    assert structure(tmp_path, text.replace("d_trainer.step", "d_meter.step"), "<module>").evaluates
