"""Traces that are none, or that somebody has made up: refused with a ValueError, never worse."""

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gpuwatch.tui.trace.events import read_trace
from gpuwatch.tui.trace.file import CATEGORY, file_of
from gpuwatch.tui.trace.profile import NothingRecordedError, Recorded, Window, profile_of

ANCHOR = (1, 1)


def window(events: list[Any], ends_ns: tuple[int, ...] = (0, 1_000, 2_000, 3_000)) -> Window:
    data = json.dumps({"traceEvents": events}).encode()
    return Window(Recorded(data, ends_ns, (), ANCHOR), None, (), ())


@pytest.mark.parametrize("data", [b"", b"[]", b"{", b'{"traceEvents": 3}', b'{"traceEvents": [3]}'])
def test_what_is_no_trace_is_refused(data: bytes) -> None:
    with pytest.raises(ValueError, match=r"."):
        read_trace(data, ANCHOR)


@pytest.mark.parametrize("ts", [1e300, -1e300])
def test_times_beyond_a_lifetime_are_refused(ts: float) -> None:
    event = {"ph": "X", "cat": "kernel", "name": "k", "ts": ts, "dur": 1.0}
    with pytest.raises(ValueError, match="an event at"):
        profile_of(window([event]))


def test_a_recording_without_the_devices_work_shows_it() -> None:
    with pytest.raises(NothingRecordedError):
        profile_of(window([]))
    one = {"ph": "X", "cat": "kernel", "name": "k", "ts": 1.5, "dur": 0.2}
    with pytest.raises(NothingRecordedError):
        profile_of(window([one]))


@given(
    st.lists(
        st.fixed_dictionaries(
            {
                "ph": st.just("X"),
                "cat": st.sampled_from(["kernel", "gpu_memcpy", "cuda_runtime", "cpu_op"]),
                "name": st.sampled_from(["k", "Memcpy HtoD (Pageable -> Device)", "cudaFree"]),
                "ts": st.floats(0, 4),
                "dur": st.floats(0, 2),
                "tid": st.integers(0, 2),
                "args": st.fixed_dictionaries({"correlation": st.integers(0, 4)}),
            }
        ),
        max_size=12,
    )
)
def test_parts_of_any_trace_add_up(events: list[Any]) -> None:
    try:
        found = profile_of(window(events))
    except NothingRecordedError:
        return
    parts = found.compute_ns_a_step + found.device_ns_a_step
    parts += sum(one.ns_a_step for one in found.patterns)
    assert parts == pytest.approx(found.step_ns, abs=2)


def joined(times: bytes, operators: bytes | None) -> list[Any]:
    """Kineto's events of the file."""
    recorded = Recorded(times, (0, 1_000, 2_000, 3_000), (), ANCHOR)
    named = None if operators is None else Recorded(operators, (0, 1_000), (), ANCHOR)
    made = json.loads(file_of(Window(recorded, named, (), ())))
    return [one for one in made["traceEvents"] if one["ph"] == "X" and one["cat"] != CATEGORY]


def test_files_that_do_not_belong_together_are_not_merged() -> None:
    event = {"ph": "X", "cat": "kernel", "name": "k", "ts": 1.5, "dur": 0.2}
    times = json.dumps({"baseTimeNanoseconds": 1, "traceEvents": [event]}).encode()
    other = json.dumps({"baseTimeNanoseconds": 2, "traceEvents": [event]}).encode()
    assert len(joined(times, times)) == 2
    assert joined(times, other) == joined(times, None) == [event]
    with pytest.raises(ValueError, match="no trace"):
        joined(times, b"[]")


@pytest.mark.parametrize("ts", [None, "1.5", True, []])
def test_a_file_is_made_of_events_with_odd_times(ts: Any) -> None:
    event = {"ph": "X", "cat": "kernel", "name": "k", "ts": ts, "dur": 0.2, "args": 3}
    data = json.dumps({"traceEvents": [event, 7, None]}).encode()
    recorded = Recorded(data, (0, 1_000), (), ANCHOR)
    try:
        file_of(Window(recorded, None, (), ()))
    except ValueError:
        pass  # what read_trace refuses


def test_arrows_that_lead_nowhere_are_left_out() -> None:
    arrows = [
        {"ph": ph, "cat": cat, "id": number, "name": "ac2g", "pid": 1, "tid": 2, "ts": 1.0}
        for ph, cat, number in [("s", "ac2g", 1), ("f", "ac2g", 1), ("f", "ac2g", 2), ("f", "x", 1)]
    ]
    data = json.dumps({"traceEvents": arrows}).encode()
    made = json.loads(file_of(Window(Recorded(data, (0, 1_000), (), ANCHOR), None, (), ())))
    assert [one for one in made["traceEvents"] if one["ph"] in "sf"] == arrows[:2]
