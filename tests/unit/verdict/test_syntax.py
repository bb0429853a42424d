"""The user's text as syntax."""

import ast
import warnings

from gpuwatch.tui.verdict.syntax import parsed, root_of, statements_in


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
