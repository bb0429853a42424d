"""Environments in which a policy acts, by the source."""

import ast


def asks_environment(statement: ast.stmt) -> bool:
    """`obs, reward = env.step(action)`: one argument, and an answer. An optimizer's has none, that
    of a scheduler of noise, or of a decoder, more."""
    if not isinstance(statement, (ast.Assign, ast.AnnAssign)):
        return False
    return any(
        isinstance(one, ast.Call)
        and isinstance(one.func, ast.Attribute)
        and one.func.attr in ("step", "step_async")
        and len(one.args) + len(one.keywords) == 1
        for one in ast.walk(statement)
    )
