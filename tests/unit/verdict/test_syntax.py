"""The user's text as syntax."""

import ast
import warnings

import pytest

from gpuwatch.tui.verdict.syntax import (
    compares_elements,
    parsed,
    root_of,
    selects_by_mask,
    statements_in,
)


def test_what_python_warns_of_in_the_users_text_is_not_shown_again() -> None:
    """A sampled line with "\\d" wrote a warning over the screen."""
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        (statement,) = statements_in('x = re.sub("\\d", "", y)')
    assert isinstance(statement, ast.Assign)
    assert root_of(statement.value) == "re"


def test_a_part_of_a_statement_is_none() -> None:
    assert statements_in("for x in loader:") == ()
    assert parsed("x = (1,") is None


def test_what_begins_with_no_name_has_no_root() -> None:
    (statement,) = statements_in("(a + b).mean()")
    assert isinstance(statement, ast.Expr)
    assert root_of(statement.value) == ""


@pytest.mark.parametrize(
    ("line", "found"),
    [
        ("subj_pos = [i for i in range(len_) if subj_pos[i] == 0]", True),
        ("n = sum(1 for at in range(n) if mask[at] != 0)", True),
        ("kept = [x[i] for i in range(n)]", False),
        ("kept = [one for one in seen if seen[one] is not None]", False),
        ('nouns = [at for at in ids if tags[at] == "NN"]', False),
        ("kept = [i for i in range(n) if i == 0]", False),
        ("kept = [word for word in words if counts[word] > least]", False),
        ("kept = [i for i in range(n) if x[0] == 0]", False),
        ("for i in range(n):", False),
    ],
)
def test_comparing_elements_one_by_one(line: str, found: bool) -> None:
    assert compares_elements(line) is found


@pytest.mark.parametrize(
    ("line", "found"),
    [
        ("loss = criterion(logits[valid_mask], labels[valid_mask])", True),
        ("kept = scores[labels != self.ignored]", True),
        ("x[~padding] = self.embed(tokens)", True),
        ("near = d[(d > 0) & (d < radius)]", True),
        ("last = out[:, mask]", True),
        ("x[mask] = 0.0", False),
        ("x[~padding] = -1e9", False),
        ("x[mask] = -float('inf')", False),
        ("x[mask] = -math.inf", False),
        ("x[mask] = y", True),
        ("row = x[i]", False),
        ("rows = x[order[:, None]]", False),
        ("part = batch['mask']", False),
        ("found = names[name is None]", False),
    ],
)
def test_selecting_elements_by_a_mask(line: str, found: bool) -> None:
    assert selects_by_mask(line) is found
