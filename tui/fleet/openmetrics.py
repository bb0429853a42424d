"""Metrics as text: OpenMetrics 1.0, and Prometheus' own format 0.0.4 for who does not ask for it.

Both are a dozen rules; `tests/unit/fleet/test_openmetrics.py` has the reference client read them.
"""

import math
from collections.abc import Iterator, Sequence
from itertools import accumulate
from typing import Final

from ..steps import STEP_BOUNDS_S, StepHistogram
from .metrics import Family, Labels, Sample

OPENMETRICS: Final = "application/openmetrics-text; version=1.0.0; charset=utf-8"
PLAIN: Final = "text/plain; version=0.0.4; charset=utf-8"
_ESCAPES: Final = str.maketrans({"\\": "\\\\", "\n": "\\n", '"': '\\"'})


def content_type(accept: str) -> str:
    """The format to answer with, by what a request says that it accepts."""
    return OPENMETRICS if "application/openmetrics-text" in accept else PLAIN


def rendered(families: Sequence[Family], kind: str) -> str:
    """The page in the format of this content type."""
    lines: list[str] = []
    for family in families:
        lines += _family(family, kind == OPENMETRICS)
    if kind == OPENMETRICS:
        lines.append("# EOF")
    return "\n".join(lines) + "\n"


def _family(family: Family, openmetrics: bool) -> Iterator[str]:
    metric = family.metric
    name = metric.family if openmetrics else metric.name
    known = metric.type if openmetrics or metric.type != "info" else "gauge"
    yield f"# TYPE {name} {known}"
    if openmetrics and metric.unit:
        yield f"# UNIT {name} {metric.unit}"
    yield f"# HELP {name} {metric.help.translate(_ESCAPES)}"
    for sample in family.samples:
        if isinstance(sample.value, StepHistogram):
            yield from _histogram(metric.name, sample, sample.value)
        else:
            yield f"{metric.name}{_labels(sample.labels)} {number(sample.value)}"


def _histogram(name: str, sample: Sample, value: StepHistogram) -> Iterator[str]:
    bounds = (*map(str, STEP_BOUNDS_S), "+Inf")
    for bound, steps in zip(bounds, accumulate(value.counts), strict=True):
        yield f"{name}_bucket{_labels((*sample.labels, ('le', bound)))} {steps}"
    yield f"{name}_sum{_labels(sample.labels)} {number(value.sum_s)}"
    yield f"{name}_count{_labels(sample.labels)} {value.steps}"


def _labels(labels: Labels) -> str:
    if not labels:
        return ""
    return "{" + ",".join(f'{name}="{value.translate(_ESCAPES)}"' for name, value in labels) + "}"


def number(value: float) -> str:
    """ "0.57", "1204", "+Inf"."""
    if math.isnan(value):
        return "NaN"
    if math.isinf(value):
        return "+Inf" if value > 0 else "-Inf"
    return repr(int(value)) if float(value).is_integer() else repr(float(value))
