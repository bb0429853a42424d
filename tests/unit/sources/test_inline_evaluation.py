"""An evaluation within the training's own loop, by its text."""

from pathlib import Path

import pytest

from gpuwatch.tui.sources.source_text.files import SourceLines
from gpuwatch.tui.sources.source_text.structure import SourceStructure

NET = "Module._wrapped_call_impl (torch/nn/modules/module.py:1778)"
TEST_IN_EACH_STEP = """
def train():
    for step in range(2_000):
        loss = mse(net.derivative(x), dx)
        loss.backward() ; optimizer.step() ; optimizer.zero_grad()
        test_loss = mse(net.derivative(test_x), test_dx)  # ASKED
        stats["train"].append(loss.item())
        stats["test"].append(test_loss.item())
"""
INLINE = """
for itr in range(2_000):
    loss = mae(odeint(func, y0, t), y)
    loss.backward()
    optimizer.step()
    meter.update(loss.item())
    if itr % 20 == 0:
        with torch.no_grad():
            pred = odeint(func, true_y0, t)  # ASKED
            loss = mae(pred, true_y)
            print(itr, loss.item())
            ii += 1
"""
TEACHER = """
for x in loader:
    with torch.no_grad():
        soft = teacher(x)  # ASKED
    loss = distance(student(x), soft)
    loss.backward()
    optimizer.step()
"""
STALE_TARGETS = """
while True:
    loss = distance(student(x), soft)
    loss.backward()
    optimizer.step()
    if step % 100 == 0:
        with torch.no_grad():
            soft = teacher(x)  # ASKED
"""
ACTION = """
while True:
    seen, reward = env.step(action)
    loss = critic(seen, reward)
    loss.backward()
    optimizer.step()
    action = policy(seen)  # ASKED
"""
REPLAY = """
while True:
    batch = replay.sample()
    loss = error(net(batch))
    loss.backward()
    optimizer.step()
    scores = net(batch)  # ASKED
    replay.reorder(scores)
"""
KL_STOPS = """
for epoch in range(5):
    loss = clipped(net(states), old)
    loss.backward()
    optimizer.step()
    kl = divergence(old, net(states))  # ASKED
    if kl > target:
        break
"""
GENERATOR_NEXT = """
for real in loader:
    loss_d = critic(real)
    loss_d.backward()
    fake = net(noise)  # ASKED
    loss_g = judge(fake)
    loss_g.backward()
    optimizer.step()
"""
UPDATE_ELSEWHERE = """
for x in loader:
    optimizer.zero_grad()
    loss = net(x)  # ASKED
    update(loss, optimizer)
"""
SECOND_UPDATE_ELSEWHERE = """
for x in loader:
    loss = net(x)
    loss.backward()
    optimizer.step()
    other = critic(x)  # ASKED
    learn_from(other)
"""
UPDATE_OF_AN_AGENT = SECOND_UPDATE_ELSEWHERE.replace("learn_from(other)", "agent.update(other)")
LOOKED_AT_ELSEWHERE = SECOND_UPDATE_ELSEWHERE.replace("learn_from(other)", "log_it(other)")
STATISTICS = """
for x in loader:
    loss = net(x)
    loss.backward()
    optimizer.step()
    net(x)  # ASKED
"""

RATE_BY_DISTANCE = """
for x in loader:
    loss = clipped(net(x), old)
    loss.backward()
    optimizer.step()
    kl = divergence(old, net(x))  # ASKED
    for group in optimizer.param_groups:
        group["lr"] = rate(kl)
"""
SAMPLED_TOKENS = """
for prompts in loader:
    ids = prompts
    with torch.no_grad():
        for t in range(32):
            token = policy(ids)  # ASKED
            ids = torch.cat([ids, token], 1)
    loss = reward(policy(ids))
    loss.backward()
    optimizer.step()
"""
SEVERAL_TEACHERS = """
for x in loader:
    with torch.no_grad():
        soft = [teacher(x) for teacher in teachers]  # ASKED
    loss = distance(student(x), soft)
    loss.backward()
    optimizer.step()
"""
ROLLOUT = """
for update in range(99):
    kept = []
    with torch.no_grad():
        for t in range(32):
            action = policy(seen)  # ASKED
            seen, reward = env.step(action)
            kept.append((seen, reward))
    loss = surprise(policy, kept)
    loss.backward()
    optimizer.step()
"""
VALIDATED_IN_A_LOOP = """
for step, (x, y) in enumerate(loader):
    with autocast():
        loss = error(net(x), y)
    loss.backward()
    optimizer.step()
    if step % 100 == 0:
        errors = []
        with torch.no_grad():
            for x, y in held_out:
                loss = error(net(x), y)  # ASKED
                errors.append(loss.item())
        print(sum(errors))
"""
VALIDATED_EACH_EPOCH = """
for epoch in range(9):
    for x in loader:
        loss = error(net(x))
        loss.backward()
        optimizer.step()
    with torch.no_grad():
        for x in held_out:
            loss = error(net(x))  # ASKED
    if loss < best:
        break
"""


def evaluates(folder: Path, text: str, *inner: str) -> bool:
    (folder / "train.py").write_text(text)
    line = next(at for at, one in enumerate(text.splitlines(), 1) if "# ASKED" in one)
    source = SourceStructure(SourceLines([folder]))
    return source.of((f"train (train.py:{line})", *inner, NET)).evaluates


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (TEST_IN_EACH_STEP, True),
        (INLINE, True),
        (TEACHER, False),
        (STALE_TARGETS, False),
        (ACTION, False),
        (REPLAY, False),
        (KL_STOPS, False),
        (GENERATOR_NEXT, False),
        (UPDATE_ELSEWHERE, False),
        (SECOND_UPDATE_ELSEWHERE, False),
        (UPDATE_OF_AN_AGENT, False),
        (LOOKED_AT_ELSEWHERE, True),
        (STATISTICS, False),
        (RATE_BY_DISTANCE, False),
        (SAMPLED_TOKENS, False),
        (SEVERAL_TEACHERS, False),
        (ROLLOUT, True),
        (VALIDATED_IN_A_LOOP, True),
        (VALIDATED_EACH_EPOCH, True),
    ],
)
def test_what_nothing_trained_on_reads_is_an_evaluation(
    tmp_path: Path, text: str, expected: bool
) -> None:
    """Hamiltonian nets test in each step, torchdiffeq's demo every 20: 1.4x and 2.0x without."""
    assert evaluates(tmp_path, text) is expected


def test_a_solver_may_call_the_net_and_work_between_its_calls(tmp_path: Path) -> None:
    (tmp_path / "train.py").write_text(INLINE)
    source = SourceStructure(SourceLines([tmp_path]))
    solver = "step (torchdiffeq/_impl/solvers.py:34)"
    asked, trained = "<module> (train.py:9)", "<module> (train.py:3)"
    assert not source.of((asked, solver)).evaluates  # no net was seen yet
    assert source.of((asked, solver, NET)).evaluates
    assert source.of((asked, solver)).evaluates
    assert not source.of((trained, solver, NET)).evaluates
    assert not source.of((trained, solver)).evaluates


ATTACK = """
def robust_loss(net, x, y):
    net.eval()
    moved = x + noise
    for _ in range(40):
        moved.requires_grad_()
        away = kl(net(moved), net(x))
        moved = moved + torch.autograd.grad(away, [moved])[0].sign()
    net.train()
    return kl(net(moved), y)

for x, y in loader:
    loss = robust_loss(net, x, y)
    {then}
"""


@pytest.mark.parametrize(
    ("then", "evaluates"), [("loss.backward()", False), ("losses.append(loss.item())", True)]
)
def test_an_attack_belongs_to_what_it_is_made_for(
    tmp_path: Path, then: str, evaluates: bool
) -> None:
    """TRADES attacks a net in eval() mode 40 times a step: that is no evaluation of 70 %."""
    (tmp_path / "train.py").write_text(ATTACK.format(then=then))
    source = SourceStructure(SourceLines([tmp_path]))
    frames = ("<module> (train.py:13)", "robust_loss (train.py:7)", NET)
    assert source.of(frames).evaluates is evaluates


SOLVED = """
for step in range(2000):
    optimizer.zero_grad()
    loss = (odeint(net, start, times) - wanted).abs().mean()
    loss.backward()
    optimizer.step()
    if step % 20 == 0:
        with torch.no_grad():
            seen = odeint(net, start, all_times)
            print((seen - truth).abs().mean().item())
    scheduler.step()
"""
SOLVER = ("odeint (torchdiffeq/_impl/odeint.py:80)", "rk4 (torchdiffeq/_impl/solvers.py:30)")


def test_a_turn_that_asks_without_gradients_after_its_backward_evaluates(tmp_path: Path) -> None:
    """torchdiffeq's demo: a library's solver calls the net, and nothing else tells its test, 48 %
    of the time, from the training. The solver's own lines are the test's too."""
    (tmp_path / "train.py").write_text(SOLVED)
    source = SourceStructure(SourceLines([tmp_path]))
    test, learning = "<module> (train.py:9)", "<module> (train.py:4)"
    assert not source.of((test, *SOLVER)).evaluates
    assert not source.of((learning, *SOLVER, NET)).evaluates
    assert source.of((test, *SOLVER, NET)).evaluates
    assert source.of((test, *SOLVER)).evaluates
    assert source.of(("<module> (train.py:10)",)).evaluates
    assert not source.of((learning, *SOLVER)).evaluates
    assert not source.of(("<module> (train.py:6)", "step (torch/optim/adam.py:1)")).evaluates


GENERATOR = """
for real in loader:
    critic(real).mean().backward()
    with torch.no_grad():
        fake = generator(noise)
    critic(fake).mean().backward()
"""
FOLDS = """
def compute_loss(model, batch):
    with torch.no_grad():
        wanted = teacher(batch)
    return (model(batch) - wanted).square().mean()

for fold in range(5):
    trainer.train()
"""


STORED = """
for batch in loader:
    if stored:
        wanted = table[index]
    else:
        with torch.no_grad():
            wanted = teacher(batch).float()
    loss = (net(batch) - wanted).square().mean()
    loss.backward()
"""


def test_a_teacher_in_one_branch_of_a_condition_is_no_evaluation(tmp_path: Path) -> None:
    """What the other branch binds is bound instead, and `.float()` casts a tensor."""
    (tmp_path / "train.py").write_text(STORED)
    found = SourceStructure(SourceLines([tmp_path])).of(("<module> (train.py:7)", NET))
    assert found.in_step
    assert not found.evaluates


def test_what_a_later_backward_of_the_turn_learns_from_is_no_evaluation(tmp_path: Path) -> None:
    (tmp_path / "train.py").write_text(GENERATOR)
    source = SourceStructure(SourceLines([tmp_path]))
    assert not source.of(("<module> (train.py:5)", NET)).evaluates


RANKED = """
while True:
    loss(net(draw())).backward()
    optimizer.step()
    if epoch % 25 == 0:
        net.eval()
        with torch.no_grad():
            found = net(graph)
        with torch.no_grad():
            rank = ranks(found, held_out)
        net.train()
"""


def test_what_is_made_of_an_evaluations_answers_is_the_evaluations(tmp_path: Path) -> None:
    """R-GCN ranks triplets for 1 s each 25 steps, in a block of its own (half of its time)."""
    (tmp_path / "train.py").write_text(RANKED)
    source = SourceStructure(SourceLines([tmp_path]))
    ranking = ("<module> (train.py:10)", "ranks (train.py:40)")
    assert not source.of(ranking).evaluates
    assert source.of(("<module> (train.py:8)", NET)).evaluates
    assert source.of(ranking).evaluates
    assert not source.of(("<module> (train.py:3)", "draw (train.py:50)")).evaluates


def test_a_teacher_below_a_librarys_trainer_is_no_evaluation(tmp_path: Path) -> None:
    (tmp_path / "train.py").write_text(FOLDS)
    source = SourceStructure(SourceLines([tmp_path]))
    trainer = "Trainer.train (transformers/trainer.py:2000)"
    stack = ("<module> (train.py:8)", trainer, "compute_loss (train.py:4)")
    assert not source.of((*stack, NET)).evaluates
    assert not source.of((*stack, *SOLVER, NET)).evaluates


@pytest.mark.parametrize(
    "block",
    [
        "[q.mul_(.99).add_(p) for p, q in zip(net.parameters(), ema.parameters())]",
        "ema.update(net)",
        "update_bn(found, net)",
        "replay.fill(net)",
        "codes = refit(quantizer, x)",
    ],
)
def test_what_changes_something_beside_an_evaluation_is_none(tmp_path: Path, block: str) -> None:
    """In a block of its own without gradients, below the same condition."""
    (tmp_path / "train.py").write_text(RANKED.replace("rank = ranks(found, held_out)", block))
    source = SourceStructure(SourceLines([tmp_path]))
    assert source.of(("<module> (train.py:8)", NET)).evaluates
    assert not source.of(("<module> (train.py:10)", "updates (train.py:40)")).evaluates
