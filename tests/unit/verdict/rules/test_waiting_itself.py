"""Batches that the training process loads itself, and that wait instead of computing."""

from dataclasses import replace
from typing import Any

import pytest

from gpuwatch.tui.verdict.findings import Finding
from gpuwatch.tui.verdict.rules.input import input_bound
from gpuwatch.tui.verdict.stack_samples import FrameShare, Stacks
from gpuwatch.tui.verdict.window import HostUse
from tests.unit.verdict.windows import loader, waiting

READ = FrameShare(0.9, "__getitem__ (remote.py:9)", None, "reply = client.get(key)", "data", 180)


def found(ran: float, queued: float = 0.0, **fields: Any) -> Finding:
    """Of 110 ms a step 96 wait for data, on two cores, of which the thread runs so much."""
    host = HostUse(main_cpu_percent=100 * ran, thread_cpu=ran, run_delay=queued)
    seen = waiting(0, 96, stacks=Stacks(200, (READ,), 0, (), None), **fields)
    finding = input_bound(replace(seen, host=host))
    assert finding is not None
    return finding


def test_more_workers_than_cores_where_batches_wait() -> None:
    """A dataset that asks a server, 1 ms a sample: "num_workers 0 → 1, 1.03x" without a probe and
    "make it cheaper" with one, where eight workers on two cores gave 3.0x."""
    waits = found(0.15)
    assert waits.sub == "serial"
    assert waits.advice[0].startswith("num_workers 0 → 6, about 6.9x: who waits needs no core")
    assert waits.forecast is not None
    assert waits.forecast.speedup == pytest.approx(110 / 16, rel=0.05)
    reported = [one.text for one in waits.evidence]
    assert "num_workers=0, at 15% of a core: its batches wait" in reported
    assert "__getitem__ (remote.py:9)" in waits.advice[1]


def test_what_others_take_of_the_cores_is_not_what_it_uses() -> None:
    """9% of a core by /proc, and "at 25% of a core" beside it, on a machine that others use."""
    waits = found(0.09, queued=0.16)
    assert "num_workers=0, at 9% of a core: its batches wait" in [
        one.text for one in waits.evidence
    ]


def test_who_computes_a_batch_needs_a_core() -> None:
    computes = found(0.95)
    assert any("num_workers 0 → 2" in advice for advice in computes.advice)
    assert "who waits" not in " ".join(computes.advice)


def test_others_on_the_cores_do_not_make_a_sleep_work_nor_work_a_sleep() -> None:
    """Beside a busy neighbour "num_workers 0 → 6: who waits needs no core" became "make it cheaper"
    and back."""
    for ran, queued in ((0.1, 0.0), (0.06, 0.4), (0.04, 0.6)):
        assert "who waits needs no core" in found(ran, queued).advice[0]
    for ran, queued in ((0.95, 0.0), (0.4, 0.6), (0.3, 0.65), (0.0, 1.0)):
        assert "who waits" not in " ".join(found(ran, queued).advice)


@pytest.mark.parametrize(
    ("kind", "split"), [("stream", True), ("_SingleProcessDataLoaderIter", False)]
)
def test_a_stream_has_to_be_split_among_workers(kind: str, split: bool) -> None:
    """An iterable dataset of 12 samples gave 96 to eight workers. A sampler whose length nobody
    knows makes none of it."""
    stream = (loader(0, kind=kind, batches=None),)
    for ran in (0.15, 0.95):
        advice = " ".join(found(ran, loaders=stream).advice)
        assert ("get_worker_info()" in advice) is split
