"""A net that a training asks without gradients once the turn of its loop has learnt."""

from pathlib import Path

from gpuwatch.tui.sources.source_code import SourceLines
from gpuwatch.tui.sources.source_structure import SourceStructure

NET = "Module._call_impl (torch/nn/modules/module.py:1779)"
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


def test_what_a_later_backward_of_the_turn_learns_from_is_no_evaluation(tmp_path: Path) -> None:
    (tmp_path / "train.py").write_text(GENERATOR)
    source = SourceStructure(SourceLines([tmp_path]))
    assert not source.of(("<module> (train.py:5)", NET)).evaluates


def test_a_teacher_below_a_librarys_trainer_is_no_evaluation(tmp_path: Path) -> None:
    (tmp_path / "train.py").write_text(FOLDS)
    source = SourceStructure(SourceLines([tmp_path]))
    trainer = "Trainer.train (transformers/trainer.py:2000)"
    stack = ("<module> (train.py:8)", trainer, "compute_loss (train.py:4)")
    assert not source.of((*stack, NET)).evaluates
    assert not source.of((*stack, *SOLVER, NET)).evaluates
