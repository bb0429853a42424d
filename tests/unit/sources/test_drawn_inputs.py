"""What a net is asked about is drawn anew at each call, by its source."""

from pathlib import Path

import pytest

from tests.unit.sources.test_source_structure import structure

DISTIL = """
def main():
    teacher = Bert.from_pretrained(args.teacher)
    order = torch.randperm(len(texts))
    for at in range(steps):
        rows = order[at * size : (at + 1) * size]
        ids = texts[rows]
        {made}
        with torch.no_grad():
            answers = teacher({asked})  # 1
        loss = mse(student(ids), answers)
        loss.backward()
        optimizer.step()
"""


def redrawn(folder: Path, made: str, asked: str) -> bool:
    found = structure(folder, DISTIL.format(made=made, asked=asked), "main")
    assert found.in_step
    return found.redrawn


@pytest.mark.parametrize(
    ("made", "asked"),
    [
        ("ids = ids.masked_fill(torch.rand(ids.shape) < 0.1, MASK)", "ids"),
        ("ids = augment(ids)", "ids"),
        ("noise = torch.randn_like(ids); noisy = ids + noise", "noisy"),
        ("t = torch.randint(0, 1000, (size,))", "diffusion.q_sample(ids, t), t"),
        ("mixed, labels = mixup(ids, labels)", "mixed"),
        ("pass", "F.dropout(ids, 0.1)"),
        ("ids.add_(torch.randn_like(ids) * 0.1)", "ids"),
        ("kept.bernoulli_(0.5)", "ids * kept"),
        ("if torch.rand(()) < 0.5: ids = ids.flip(-1)", "ids"),
        ("ids = ids.flip(-1) if random.random() < 0.5 else ids", "ids"),
        ("part = np.random.beta(1, 1); ids = part * ids + (1 - part) * ids.flip(0)", "ids"),
        ("pass", "self.aug(ids)"),
        ("ids = random_crop(ids)", "ids"),
        ("ids[torch.rand(len(ids)) < 0.1] = MASK; more = ids.clone()", "torch.bernoulli(more)"),
    ],
)
def test_noise_and_words_that_are_dropped_are_drawn(tmp_path: Path, made: str, asked: str) -> None:
    assert redrawn(tmp_path, made, asked)


@pytest.mark.parametrize(
    ("made", "asked"),
    [
        ("pass", "ids"),
        ("pass", "texts[torch.randint(0, len(texts), (size,))]"),
        ("other = augment(ids)", "ids"),
        ("ids = normalize(ids)", "ids"),
        ("random.shuffle(order)", "ids"),
        ("ids = F.normalize(ids); ids = center_crop(ids)", "ids"),
        ("if len(ids) < 4: ids = ids.repeat(4)", "ids"),
    ],
)
def test_which_samples_are_picked_is_no_part_of_what_is_asked(
    tmp_path: Path, made: str, asked: str
) -> None:
    assert not redrawn(tmp_path, made, asked)


def test_what_an_outer_function_draws_is_asked_below_it(tmp_path: Path) -> None:
    text = """
@torch.no_grad()
def answers(teacher, texts):
    return teacher(texts)  # 2

def main():
    for batch in loader:
        batch = add_noise(batch)
        loss = mse(student(batch), answers(teacher, batch))  # 1
        loss.backward()
        optimizer.step()
"""
    assert structure(tmp_path, text, "main", "answers").redrawn
