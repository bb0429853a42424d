"""A net that is of the class of the one that learns, and that nothing updates by its source."""

from pathlib import Path

import pytest

from tests.unit.sources.test_source_structure import structure

DISTIL = """
def main():
    teacher = Bert.from_pretrained(args.teacher)
    student = Bert(config)
    print(sum(p.numel() for p in teacher.parameters()))
    for p in teacher.parameters():
        p.requires_grad = False
    optimizer = Adam(student.parameters())
    teacher.eval()
    for batch in loader:
        with torch.no_grad():
            answers = teacher(batch)  # 1
        loss = mse(student(batch), answers)
        loss.backward()
        optimizer.step()
        torch.save(teacher.state_dict(), path)
"""
OF_A_CLASS = """
class Distiller:
    def __init__(self, student, net):
        self.net = net
        self.net.load_state_dict(torch.load(path))

    @torch.no_grad()
    def answers(self, batch):
        return self.net.encode(batch)  # 2

    def step(self, batch):
        loss = mse(self.student(batch), self.answers(batch))  # 1
        loss.backward()
        self.optimizer.step()
"""


def averaged(text: str) -> str:
    """With a line more at the end of the training's loop."""
    return DISTIL.replace("        torch.save(teacher.state_dict(), path)\n", text)


@pytest.mark.parametrize(
    ("text", "functions"),
    [(DISTIL, ("main",)), (OF_A_CLASS, ("Distiller.step", "Distiller.answers"))],
)
def test_a_teacher_from_before_the_training_is_fixed(
    tmp_path: Path, text: str, functions: tuple[str, ...]
) -> None:
    found = structure(tmp_path, text, *functions)
    assert found.in_step
    assert found.fixed


@pytest.mark.parametrize(
    "text",
    [
        averaged(
            "        for a, b in zip(teacher.parameters(), student.parameters()):\n"
            "            a.data.mul_(0.99).add_(b.data, alpha=0.01)\n"
        ),
        averaged("        update_ema(student, teacher)\n"),
        averaged("        teacher.load_state_dict(student.state_dict())\n"),
        averaged("        average(teacher_without_ddp, student)\n").replace(
            "teacher.eval()", "teacher_without_ddp = teacher.module"
        ),
        averaged(
            "        for a, b in zip(teacher_without_ddp.parameters(), student.parameters()):\n"
            "            a.data.mul_(0.99).add_(b.data)\n"
        ),
        averaged(
            "        for a, b in zip(teacher.parameters(), student.parameters()):\n"
            "            if b.requires_grad:\n"
            "                a.data = 0.99 * a.data + 0.01 * b.data\n"
        ),
        averaged("        model.update_teacher(0.99)\n"),
        averaged("        averager.step(student, teacher)\n"),
        averaged("        now = student.state_dict()\n        teacher.load_state_dict(now)\n"),
        DISTIL.replace("teacher", "net").replace("student(batch)", "net(batch)"),
        DISTIL.replace("Adam(student.parameters())", "Adam([*teacher.parameters()])"),
        DISTIL.replace("Bert.from_pretrained(args.teacher)", "copy.deepcopy(student)"),
        DISTIL.replace("teacher", "momentum_teacher"),
        DISTIL.replace("Bert.from_pretrained(args.teacher)", "Bert(config)").replace(
            "teacher", "other"
        ),
    ],
    ids=[
        "averaged", "by a function", "copied", "by its module", "the module's weights",
        "those that learn", "by another file", "by an object", "through a name", "goes on",
        "learns", "a copy", "named so", "of which nothing is known",
    ],
)  # fmt: skip
def test_a_net_that_may_follow_the_one_that_learns_is_not(tmp_path: Path, text: str) -> None:
    assert not structure(tmp_path, text, "main").fixed
