"""A result in one line, for who waits."""

from suite.result import OURS, Result


def line_of(result: Result) -> str:
    """What is true, what was said, and whether that is right."""
    true = f"{result.kinds[0]}/{result.sub}" if result.sub else result.kinds[0]
    gain = "by construction" if result.truth.by_construction else f"gain {result.truth.gain:.2f}"
    ours = result.tools.get(OURS)
    if ours is None:
        return f"{result.name:32} {true:22} {gain:16} said nothing"
    said = f"{ours.kind}/{ours.sub}" if ours.sub else ours.kind
    forecast = f" {ours.forecast_is} {ours.forecast:.2f}" if ours.forecast else ""
    right = "right" if ours.right else "WRONG"
    doubt = "" if result.truth.agrees else f"  truth: {result.truth.label}"
    return f"{result.name:32} {true:22} {gain:16} {right}  {said}{forecast}{doubt}"
