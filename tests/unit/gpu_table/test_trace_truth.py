"""What a trace says of the exposed wait, on traces written by hand (microseconds)."""

from typing import Any

import pytest

from tests.gpu.trace_truth import Activity, Fetch, exposed_by_step_ns, exposed_us


@pytest.mark.parametrize(
    ("done", "exposed"),
    [
        ([], 100.0),
        ([Activity(10, 50)], 100.0),
        ([Activity(10, 130)], 70.0),
        ([Activity(10, 250)], 0.0),
        ([Activity(10, 110), Activity(20, 160)], 40.0),
        ([Activity(10, 160), Activity(20, 110)], 40.0),
        ([Activity(10, 110), Activity(201, 900)], 90.0),
    ],
    ids=[
        "nothing ever ran",
        "the device was done before the fetch",
        "busy for the first part",
        "busy all the time: hidden",
        "a gap between queued kernels is not the fetch's",
        "another stream is done later",
        "what is enqueued after the fetch does not count",
    ],
)
def test_exposed_wait_of_a_fetch(done: list[Activity], exposed: float) -> None:
    assert exposed_us([Fetch(100, 200)], sorted(done)) == [exposed]


def event(cat: str, name: str, ts: float, dur: float, correlation: int | None = None) -> Any:
    args = {} if correlation is None else {"correlation": correlation}
    return {"ph": "X", "cat": cat, "name": name, "ts": ts, "dur": dur, "args": args}


def test_a_trace_of_two_steps() -> None:
    trace = {
        "traceEvents": [
            {"ph": "i", "name": "marker", "ts": 0},
            event("user_annotation", "gpuwatch fetch 0", 0, 20),
            event("gpu_user_annotation", "gpuwatch fetch 0", 5, 500),
            event("cuda_runtime", "cudaLaunchKernel", 22, 3, 7),
            # Enqueued before the second fetch, begun after it: the device was not free.
            event("cuda_runtime", "cudaLaunchKernel", 26, 3, 8),
            event("kernel", "gemm", 30, 40, 7),
            event("kernel", "gemm", 71, 60, 8),
            event("user_annotation", "gpuwatch fetch 1", 40, 100),
            event("cuda_runtime", "cudaMemcpyAsync", 145, 3, 9),
            event("gpu_memcpy", "HtoD", 150, 5, 9),
        ]
    }
    assert exposed_by_step_ns(trace) == {0: 20_000.0, 1: 9_000.0}


def test_an_activity_without_its_call_was_enqueued_when_it_began() -> None:
    trace = {
        "traceEvents": [
            event("kernel", "lost", 10, 40),
            event("user_annotation", "gpuwatch fetch 3", 20, 80),
        ]
    }
    assert exposed_by_step_ns(trace) == {3: 50_000.0}
