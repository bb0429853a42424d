"""The shipped schema allows more fields, as readers must; what we write must be in it exactly."""

import json
from importlib.resources import files
from typing import Any


def shipped() -> dict[str, Any]:
    """As it lies in the wheel."""
    schema: dict[str, Any] = json.loads(
        files("gpuwatch.tui.formats").joinpath("jsonlines.schema.json").read_text("utf-8")
    )
    return schema


def strict() -> dict[str, Any]:
    """With every field that it does not name forbidden."""
    schema = shipped()
    _close(schema)
    return schema


def _close(node: Any) -> None:
    if isinstance(node, dict):
        if node.get("additionalProperties") is True:
            node["additionalProperties"] = False
        for child in node.values():
            _close(child)
    elif isinstance(node, list):
        for child in node:
            _close(child)
