"""The two formats, read back by the reference client where it is installed."""

from collections.abc import Callable, Iterable
from typing import Any

import pytest

from gpuwatch.tui.fleet.openmetrics import OPENMETRICS, PLAIN, content_type, number, rendered
from tests.unit.faces.pictures import BY_GPM, GPU, picture
from tests.unit.fleet.making import HISTOGRAM, exported, watched

NASTY = 'C:\\new "run"\nx'


def test_a_request_gets_the_format_that_it_accepts() -> None:
    prometheus = "application/openmetrics-text;version=1.0.0,text/plain;version=0.0.4;q=0.5,*/*"
    assert content_type(prometheus) == OPENMETRICS
    assert content_type("*/*") == content_type("") == PLAIN


def test_counters_and_facts_lose_their_last_word_in_openmetrics_alone() -> None:
    found = exported(watched())
    new, old = rendered(found, OPENMETRICS).splitlines(), rendered(found, PLAIN).splitlines()
    assert "# TYPE gpuwatch_steps counter" in new
    assert "# TYPE gpuwatch_steps_total counter" in old
    assert "# TYPE gpuwatch_verdict info" in new
    assert "# TYPE gpuwatch_verdict_info gauge" in old
    assert "# UNIT gpuwatch_step_seconds seconds" in new
    assert (new[-1], old[-1] != "# EOF") == ("# EOF", True)
    assert [row for row in new if row[0] != "#"] == [row for row in old if row[0] != "#"]


def test_buckets_add_up() -> None:
    page = rendered(exported(watched()), PLAIN)
    rows = [row for row in page.splitlines() if row.startswith("gpuwatch_step_seconds_bucket")]
    counts = [int(row.rpartition(" ")[2]) for row in rows]
    assert counts == sorted(counts)
    assert 'le="+Inf"' in rows[-1]
    assert counts[-1] == HISTOGRAM.steps


def test_label_values_are_escaped() -> None:
    page = rendered(exported(watched(run='a"b\\c')), PLAIN)
    assert 'run="a\\"b\\\\c"' in page


@pytest.mark.parametrize(
    ("value", "text"),
    [(0.57, "0.57"), (1204.0, "1204"), (float("inf"), "+Inf"), (float("nan"), "NaN"), (1, "1")],
)
def test_numbers(value: float, text: str) -> None:
    assert number(value) == text


def test_the_reference_client_reads_both_formats_alike() -> None:
    pytest.importorskip("prometheus_client", reason="not installed: pip install prometheus-client")
    from prometheus_client.openmetrics import parser
    from prometheus_client.parser import text_string_to_metric_families as plain

    found = exported(watched(run=NASTY), watched(picture(gpus=(GPU,), activity=(BY_GPM,))))
    strict: Callable[[str], Iterable[Any]] = parser.text_string_to_metric_families
    new = {family.name: family for family in strict(rendered(found, OPENMETRICS))}
    assert new["gpuwatch_step_seconds"].type == "histogram"
    assert new["gpuwatch_verdict"].type == "info"
    read = [
        [
            (sample.name, sample.labels, sample.value)
            for family in every
            for sample in family.samples
        ]
        for every in (new.values(), plain(rendered(found, PLAIN)))
    ]
    assert read[0] == read[1]
