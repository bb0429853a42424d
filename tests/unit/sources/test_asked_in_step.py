"""A function without gradients in a reinforcement learner: a target is the step's, a plan acts."""

from pathlib import Path

import pytest

from gpuwatch.tui.model.observations import StackCount
from gpuwatch.tui.session.stack_phases.classify import phase_of
from gpuwatch.tui.sources.source_text.files import SourceLines
from gpuwatch.tui.sources.source_text.structure import SourceStructure
from tests.unit.sources.test_source_structure import NET, structure
from tests.unit.sources.test_training_values import GRPO

TARGET = """
class Agent:
    @torch.no_grad()
    def target(self, seen, reward):
        return reward + 0.99 * self.critic(seen)  # 3

    def update(self, batch):
        loss = 0
        for t in range(5):
            wanted = self.target(batch.seen[t], batch.reward[t])  # 2
            loss += mse(self.net(batch.seen[t]), wanted)
        loss.backward()
        self.optimizer.step()

for step in range(9999):
    agent.update(buffer.sample())  # 1
"""
OF_A_SET = """
@torch.no_grad()
def features(net, batch):
    return net(batch)  # 2

known = []
for batch in everything:
    known.append(features(teacher, batch))  # 1
for batch, wanted in zip(everything, known):
    loss = mse(net(batch), wanted)
    loss.backward()
    optimizer.step()
"""
ONCE_AN_EPOCH = """
@torch.no_grad()
def features(net, batch):
    return net(batch)  # 2

for epoch in range(90):
    known = features(teacher, everything)  # 1
    for at in range(0, 9999, 32):
        loss = mse(net(everything[at:at + 32]), known[at:at + 32])
        loss.backward()
        optimizer.step()
    scheduler.step()
"""
MICRO_BATCHES = ONCE_AN_EPOCH.replace("scheduler", "optimizer")
GENERATES = """
class Net:
    def generate(self, init, events):
        outputs = []
        for step in range(200):
            output, hidden = self.forward(event, hidden)  # 2
            outputs.append(output)
            event = events[step].unsqueeze(0)
        return torch.cat(outputs, 0)

for events in batches:
    outputs = model.generate(torch.randn(64, 32), events)  # 1
    loss = loss_function(outputs.view(-1, 240), events.view(-1))
    loss.backward()
    optimizer.step()
"""
LOOKS = GENERATES.replace("loss = loss_function(outputs", "show(outputs")
ROLLOUT = """
def rollout(x, steps):
    states = []
    for _ in range(steps):
        x = x + 0.1 * f(x); states.append(x)  # 2
    return torch.stack(states, 1)

while True:
    pred = rollout(traj[:, 0], 20)  # 1
    loss = mse_loss(pred, traj[:, 1:]); opt.zero_grad(); loss.backward(); opt.step()
"""
GAN = """
class GAN:
    def generate(self, n):
        return G(torch.randn(n, 64))  # 3

    def d_step(self):
        od.zero_grad(); loss = bce(D(self.generate(256).detach())); loss.backward(); od.step()  # 2

while True:
    gan.d_step()  # 1
"""
BESIDE = """
def evaluate(net):
    return net(held_out).mean()  # 2

while True:
    evaluate(net); loss = net(x).mean(); loss.backward(); opt.step()  # 1
"""
PLANS = """
class Agent:
    @torch.no_grad()
    def value(self, seen, actions):
        total = 0
        for action in actions:
            seen, reward = self.model(seen, action)  # 3
            total = total + reward
        return total

    @torch.no_grad()
    def plan(self, seen):
        mean = zeros(5)
        for turn in range(6):
            actions = mean + randn(64, 5)
            best = topk(self.value(seen, actions), 8)  # 2
            mean = actions[best].mean(0)
        return mean[0]

seen = env.reset()
for step in range(9999):
    action = agent.plan(seen)  # 1
    seen, reward, done, _ = env.step(action.numpy())
    agent.update(buffer.sample())
"""
FROZEN = """
def to_latent(now, then):
    with torch.no_grad():
        now, then = [vae(x)[1] for x in (now, then)]  # 2
    return now, then

for batch in loader:
    now, then = to_latent(*batch)  # 1
    loss = net(now, then)
    loss.backward()
    optimizer.step()
"""
UPDATES = ("<module>", "Agent.update", "Agent.target")


@pytest.mark.parametrize(
    ("text", "functions", "in_step"),
    [
        (TARGET, UPDATES, True),
        (TARGET.replace("range(5)", "batches"), UPDATES, False),
        (OF_A_SET, ("<module>", "features"), False),
        (ONCE_AN_EPOCH, ("<module>", "features"), False),
        (MICRO_BATCHES, ("<module>", "features"), True),
        (GENERATES, ("<module>", "Net.generate"), True),
        (LOOKS, ("<module>", "Net.generate"), False),
        (ROLLOUT, ("<module>", "rollout"), True),
        (GAN, ("<module>", "GAN.d_step", "GAN.generate"), True),
        (BESIDE, ("<module>", "evaluate"), False),
        (GRPO, ("<module>", "generate"), False),
        (PLANS, ("<module>", "Agent.plan", "Agent.value"), False),
        (FROZEN, ("<module>", "to_latent"), True),
        (FROZEN.replace("in (now, then)]", "in batches]"), ("<module>", "to_latent"), False),
    ],
    ids=[
        "time steps",
        "a set's batches",
        "before the training",
        "once an epoch",
        "micro-batches",
        "outputs",
        "a look",
        "two statements of one line",
        "four of one line",
        "one that hands nothing on",
        "texts",
        "actions",
        "two that are written out",
        "a list of them",
    ],
)
def test_a_target_is_asked_for_in_each_step(
    tmp_path: Path, text: str, functions: tuple[str, ...], in_step: bool
) -> None:
    assert structure(tmp_path, text, *functions).in_step is in_step


def test_a_decorated_function_that_makes_targets_is_no_evaluation(tmp_path: Path) -> None:
    """A model-based learner's `_td_target`: 16 % of its time was an evaluation's."""
    frames = (
        "Agent.update (train.py:10)",
        "decorate_context (torch/utils/_contextlib.py:116)",
        "Agent.target (train.py:5)",
        "Module._call_impl (torch/nn/modules/module.py:1779)",
        "Linear.forward (torch/nn/modules/linear.py:134)",
    )
    found = structure(tmp_path, TARGET, *UPDATES)
    phases = [
        phase_of(
            StackCount(
                role="main", pid=1, thread="", frames=frames, count=1, in_step=in_step, line=""
            )
        )
        for in_step in (False, found.in_step)
    ]
    assert phases == ["evaluation", "forward"]


def test_what_plans_an_action_acts_in_whatever_loops(tmp_path: Path) -> None:
    """TD-MPC's planning was an evaluation, to be made less often."""
    functions = ("<module>", "Agent.plan", "Agent.value")
    assert structure(tmp_path, PLANS, *functions).acts is True
    scores = PLANS.replace("env.step(action.numpy())", "score(action.numpy())")
    assert structure(tmp_path, scores, *functions).acts is False


def test_lines_of_what_plans_act_once_its_net_was_seen(tmp_path: Path) -> None:
    (tmp_path / "train.py").write_text(PLANS)
    source = SourceStructure(SourceLines([tmp_path]))
    plans, own = "<module> (train.py:22)", "Agent.plan (train.py:17)"
    assert source.of((plans, own)).acts is False
    assert source.of((plans, "Agent.plan (train.py:16)", "Agent.value (train.py:7)", NET)).acts
    assert source.of((plans, own)).acts is True


def test_who_else_asks_what_plans_does_not_act(tmp_path: Path) -> None:
    """A validation that asks the policy for actions was a rollout, once one had been seen."""
    checks = "def check(states, wanted):\n    return [agent.plan(seen) for seen in states]\n"
    (tmp_path / "train.py").write_text(PLANS + checks)
    source = SourceStructure(SourceLines([tmp_path]))
    plans, own = "<module> (train.py:22)", "Agent.plan (train.py:17)"
    source.of((plans, "Agent.plan (train.py:16)", "Agent.value (train.py:7)", NET))
    check = f"check (train.py:{len(PLANS.splitlines()) + 2})"
    assert source.of((plans, own)).acts is True
    assert source.of(("<module> (train.py:24)", check, own)).acts is False


CHECKS = """
def validate(x, y):
    for row in x:
        assert torch.isfinite(row).all()  # 2

def step(x, y):
    validate(x, y)  # 1
    loss = mse(net(x), y)
    loss.backward()
    optimizer.step()
"""
SELDOM = CHECKS.replace(
    "    validate(x, y)  # 1", "    if n % 9 == 0:\n        validate(x, y)  # 1"
)
IN_LOOP = """
def validate(x, y):
    return [float(row) for row in x]  # 2

for x, y in loader:
    validate(x, y)  # 1
    loss = mse(net(x), y)
    loss.backward()
    optimizer.step()
"""
BY_EPOCH = """
def validate(x, y):
    return [float(row) for row in x]  # 2

for epoch in range(9):
    for x, y in loader:
        mse(net(x), y).backward()
    validate(x, y)  # 1
"""
BEFORE = """
def validate(x, y):
    return [float(row) for row in x]  # 2

def main():
    validate(x, y)  # 1
    for x, y in loader:
        mse(net(x), y).backward()
"""


GUARDED = """
def save_checkpoint(step):
    if step % 1000 == 0:
        pickle.dump(net, file)  # 2

for step, x in enumerate(loader):
    loss = net(x)
    loss.backward()
    save_checkpoint(step)  # 1
"""
LEFT_EARLY = """
def evaluate(step):
    if step % 1000:
        return
    bleu(texts)  # 2

for step, x in enumerate(loader):
    loss = net(x)
    loss.backward()
    evaluate(step)  # 1
"""
SKIPPED = """
def evaluate(step):
    bleu(texts)  # 2

for step, x in enumerate(loader):
    net(x).backward()
    if step % 1000:
        continue
    evaluate(step)  # 1
"""


@pytest.mark.parametrize(
    ("text", "functions", "in_step"),
    [
        (CHECKS, ("step", "validate"), True),
        (GUARDED, ("<module>", "save_checkpoint"), False),
        (LEFT_EARLY, ("<module>", "evaluate"), False),
        (SKIPPED, ("<module>", "evaluate"), False),
        (IN_LOOP, ("<module>", "validate"), True),
        (SELDOM, ("step", "validate"), False),
        (BY_EPOCH, ("<module>", "validate"), False),
        (BEFORE, ("main", "validate"), False),
    ],
    ids=[
        "by a step",
        "guarded",
        "left early",
        "skipped",
        "in a loop",
        "now and then",
        "beside the steps",
        "before them",
    ],
)
def test_what_each_step_calls_is_its_own_whatever_its_name(
    tmp_path: Path, text: str, functions: tuple[str, ...], in_step: bool
) -> None:
    """`validate(x, y)`, which looks at a batch, was "evaluate less often: 2.6x"."""
    assert structure(tmp_path, text, *functions, net=False).in_step is in_step


def test_an_evaluation_in_each_step_is_one_once_its_net_was_seen(tmp_path: Path) -> None:
    """All of a small graph is one batch, and its held-out nodes are looked at behind each."""
    text = """
def evaluate(net):
    out = net(x)
    return score(out)

def score(out):
    return [float(row) for row in out]

for epoch in range(200):
    loss = mse(net(x), y)
    loss.backward()
    optimizer.step()
    evaluate(net)
"""
    (tmp_path / "train.py").write_text(text)
    source = SourceStructure(SourceLines([tmp_path]))
    evaluates, metrics = "evaluate (train.py:3)", "evaluate (train.py:4)"
    assert not source.of(("<module> (train.py:13)", evaluates, NET)).in_step
    assert not source.of(("<module> (train.py:13)", metrics, "score (train.py:7)")).in_step


def test_a_check_in_what_makes_the_loss_is_the_steps_too(tmp_path: Path) -> None:
    text = """
def validate(x):
    return [float(row) for row in x]

def loss_of(x, y):
    validate(x)
    return mse(net(x), y)

for x, y in loader:
    loss = loss_of(x, y)
    loss.backward()
"""
    (tmp_path / "train.py").write_text(text)
    source = SourceStructure(SourceLines([tmp_path]))
    assert source.of(("<module> (train.py:10)", "loss_of (train.py:7)", NET)).in_step
    checks = "loss_of (train.py:6)", "validate (train.py:3)"
    assert source.of(("<module> (train.py:10)", *checks)).in_step


def test_what_each_step_keeps_is_no_checkpoint() -> None:
    """A recurrent net's state in a dictionary was "checkpoints take 40% of the time"."""

    def phase(*frames: str, in_step: bool) -> str:
        return phase_of(
            StackCount(
                role="main", pid=1, thread="", frames=frames, count=1, in_step=in_step, line=""
            )
        )

    keeps = ("<module> (train.py:20)", "Memory.save_state (train.py:9)")
    writes = (*keeps, "save (torch/serialization.py:970)")
    assert phase(*keeps, in_step=True) == "other"
    assert phase(*keeps, in_step=False) == "checkpoint"
    assert phase(*writes, in_step=True) == "checkpoint"
