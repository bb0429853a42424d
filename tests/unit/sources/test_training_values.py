"""What a training learns from, and what an environment answers, by the source."""

from pathlib import Path

import pytest

from gpuwatch.tui.sources.source_text.files import SourceLines
from gpuwatch.tui.sources.source_text.structure import SourceStructure
from tests.unit.sources.test_source_structure import NET, structure

TEACHERS = """
@torch.no_grad()
def soft_targets(teachers, x):
    out = 0
    for teacher in teachers:
        out = out + teacher(x).softmax(-1)  # 2
    return out / len(teachers)

for x, y in loader:
    wanted = soft_targets(teachers, x)  # 1
    loss = kl(student(x).log_softmax(-1), wanted)
    loss.backward()
    optimizer.step()
"""
MIXMATCH = """
def label_guess(net, views):
    with torch.no_grad():
        guesses = []
        for view in views:
            guesses.append(net(view).softmax(-1))  # 2
    return sharpen(sum(guesses) / len(guesses))

def train(loader):
    for x, y, views in loader:
        q = label_guess(net, views)  # 1
        loss = criterion(net(x), y, q)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
"""
ENCODERS = """
def encode_prompt(ids_of, text_encoders):
    with torch.no_grad():
        embeds = []
        for ids, encoder in zip(ids_of, text_encoders):
            embeds.append(encoder(ids, output_hidden_states=True).hidden_states[-2])  # 2
    return torch.cat(embeds, dim=-1)

for batch in loader:
    embeds = encode_prompt(batch["ids"], text_encoders)  # 1
    loss = mse(unet(noisy, t, embeds), noise)
    accelerator.backward(loss)
    optimizer.step()
"""
SOLVER = """
class Distiller:
    @torch.no_grad()
    def solve(self, x, t):
        for _ in range(self.steps):
            x = x + self.dt * self.teacher(x, t)  # 3
        return x

    def loss(self, x, t):
        target = self.solve(x, t)  # 2
        return (self.student(x, t) - target).square().mean()

    def fit(self, loader):
        for x in loader:
            loss = self.loss(x, draw(x))  # 1
            self.optimizer.zero_grad()
            loss.backward()
            self.optimizer.step()
"""
FRAMES = """
@torch.no_grad()
def features(vit, clip):
    return torch.stack([vit(frame) for frame in clip.unbind(1)], 1)  # 2

for clip, y in loader:
    loss = criterion(head(features(vit, clip)), y)  # 1
    loss.backward()
    optimizer.step()
"""
BY_A_STEP = """
def train_step(x, wanted):
    loss = kl(student(x), wanted)
    loss.backward()
    optimizer.step()

@torch.no_grad()
def targets(x):
    kept = {}
    for name, teacher in teachers.items():
        kept[name] = teacher(x)  # 2
    yield kept

for x in loader:
    for wanted in targets(x):  # 1
        if args.sharp:
            wanted = sharpen(wanted)
        train_step(x, wanted)
"""
SCHEDULED = """
@torch.no_grad()
def denoised(x):
    for t in scheduler.timesteps:
        eps = teacher(x, t)  # 2
        x = scheduler.step(eps, t, x).prev_sample
    return x

for x in loader:
    with autocast():
        loss = distance(student(x), denoised(x))  # 1
    scaler.scale(loss).backward()
    scaler.step(optimizer)
"""


@pytest.mark.parametrize(
    ("text", "functions"),
    [
        (TEACHERS, ("<module>", "soft_targets")),
        (MIXMATCH, ("train", "label_guess")),
        (ENCODERS, ("<module>", "encode_prompt")),
        (SOLVER, ("Distiller.fit", "Distiller.loss", "Distiller.solve")),
        (FRAMES, ("<module>", "features")),
        (BY_A_STEP, ("<module>", "targets")),
        (SCHEDULED, ("<module>", "denoised")),
    ],
    ids=["teachers", "MixMatch", "SDXL", "solver", "frozen ViT", "a step", "scheduler"],
)
def test_what_a_helper_returns_to_a_step_is_no_evaluation(
    tmp_path: Path, text: str, functions: tuple[str, ...]
) -> None:
    """MixMatch: "evaluation takes 40%: evaluate less often: label_guess (train.py:6)"."""
    assert not structure(tmp_path, text, *functions).evaluates


HELD_OUT = """
@torch.no_grad()
def evaluate(net):
    losses = []
    for x, y in held_out:
        loss = error(net(x), y)  # 2
        losses.append(loss.item())
    return sum(losses) / len(losses)

def train(net, loader):
    for x, y in loader:
        loss = error(net(x), y)
        loss.backward()
        optimizer.step()

best, losses = 1e9, []
for epoch in range(9):
    for x, y in loader:
        loss = error(net(x), y)
        loss.backward()
        optimizer.step()
    train(net, loader)
    loss = evaluate(net)  # 1
    losses.append(loss)
    scheduler.step(loss)
    if loss < best:
        best = loss
        for group in optimizer.param_groups:
            group["lr"] *= 0.5
"""
LOOKS = """
@torch.no_grad()
def generate(model, idx, n):
    for _ in range(n):
        logits = model(idx[:, -block:])  # 2
        idx = torch.cat((idx, torch.multinomial(logits[:, -1].softmax(-1), 1)), 1)
    return idx

for step in range(5000):
    loss = loss_of(model, batch())
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    if step % 100 == 0:
        print(decode(generate(model, start, 200)))  # 1
"""


@pytest.mark.parametrize(
    ("text", "function"), [(HELD_OUT, "evaluate"), (LOOKS, "generate")], ids=["held out", "a look"]
)
def test_what_no_step_reads_stays_an_evaluation(tmp_path: Path, text: str, function: str) -> None:
    """Its loss decides about the rate and the end, which nothing is learned from."""
    assert structure(tmp_path, text, "<module>", function).evaluates


ENVIRONMENT = """
class World:
    def reset(self):
        return self.start()

    def step(self, action):
        for wall in self.walls:
            self.hit(wall)  # 3
        return self.state, 0.0

def evaluate(world, net):
    while True:
        world.step(net.best())  # 2

evaluate(World(), net)  # 1
"""
ACTS = """
class World:
    def step(self, action):
        return self.move(action)  # 4

def act(net, seen):
    with torch.no_grad():
        return Categorical(logits=net(seen)).sample()  # 3

def rollout(seen):
    for step in range(128):
        action = act(net, seen)  # 2
        kept[step] = seen
        {asks}
        seen = torch.tensor(state)
    return seen

for update in range(99):
    seen = rollout(seen)  # 1
    learn_from(kept)
"""
MANY = "state = np.stack([env.step(int(a)) for env, a in zip(envs, action.cpu())])"
ONE = "state, reward, done, _ = env.step(action.item())"
DENOISES = "state = scheduler.step(action, step, seen).prev_sample"
OTHER = "state = draw(); counter.step(action)"


def test_a_class_that_steps_and_can_be_reset_is_an_environment(tmp_path: Path) -> None:
    stack = ("<module>", "evaluate", "World.step")
    assert structure(tmp_path, ENVIRONMENT, *stack, net=False).acts is True
    net = ENVIRONMENT.replace("class World:", "class World(nn.Module):")
    assert structure(tmp_path, net, *stack, net=False).acts is False
    only = ENVIRONMENT.replace("def reset(self):", "def start(self):")
    assert structure(tmp_path, only, *stack, net=False).acts is False


@pytest.mark.parametrize(
    ("asks", "acts"),
    [(MANY, True), (ONE, True), (DENOISES, False), (OTHER, False)],
    ids=["many", "one", "a scheduler of noise", "a counter"],
)
def test_a_loop_that_feeds_a_nets_actions_to_a_step_acts(
    tmp_path: Path, asks: str, acts: bool
) -> None:
    """Any method `step` was an environment's: a NoiseScheduler's, a meter's."""
    text = ACTS.format(asks=asks)
    where = ("<module>", "rollout", "act")
    assert structure(tmp_path, text, *where).acts is acts


def test_a_net_of_ones_own_that_steps_is_no_environment(tmp_path: Path) -> None:
    text = ACTS.format(asks="state, reward = machine.step(action)")
    where = ("<module>", "rollout", "act")
    assert structure(tmp_path, text, *where).acts is True
    text = text.replace("class World:", "class Machine(nn.Module):")
    assert structure(tmp_path, text, *where).acts is False


def test_what_an_environment_does_acts_once_its_net_was_seen(tmp_path: Path) -> None:
    (tmp_path / "train.py").write_text(ACTS.format(asks=MANY))
    source = SourceStructure(SourceLines([tmp_path]))
    outer = "<module> (train.py:19)"
    world = (outer, "rollout (train.py:14)", "World.step (train.py:4)")
    net = (outer, "rollout (train.py:12)", "act (train.py:8)", NET)
    assert source.of(world).acts is False
    assert source.of(net).acts is True
    assert source.of(world).acts is True
    assert source.of(("World.step (unknown.py:3)",)).acts is None


GRPO = """
@torch.no_grad()
def generate(model, ids, n):
    for _ in range(n):
        logits = model(ids)[:, -1]  # 2
        ids = torch.cat([ids, torch.multinomial(logits.softmax(-1), 1)], 1)  # 3
    return ids

for prompts in loader:
    texts = generate(model, prompts, 40)  # 1
    advantages = normed(rewards_of(texts))
    for _ in range(2):
        loss = -(log_probs(model, texts) * advantages).mean()
        loss.backward()
        optimizer.step()
"""
GRADED = GRPO.replace("@torch.no_grad()\n", "")


@pytest.mark.parametrize(("text", "feeds"), [(LOOKS, False), (GRPO, True), (GRADED, False)])
def test_texts_that_a_training_learns_from(tmp_path: Path, text: str, feeds: bool) -> None:
    """GRPO's are generation; samples that are printed now and then were called rollouts too."""
    assert structure(tmp_path, text, "<module>", "generate").feeds is feeds


def test_lines_of_a_function_that_feeds_a_training_do_too(tmp_path: Path) -> None:
    (tmp_path / "train.py").write_text(GRPO)
    source = SourceStructure(SourceLines([tmp_path]))
    calls, asks, draws = "<module> (train.py:10)", "generate (train.py:5)", "generate (train.py:6)"
    assert not source.of((calls, draws)).feeds
    assert source.of((calls, asks, NET)).feeds
    assert source.of((calls, draws)).feeds
