"""What a kineto trace says of the device's wait for data: the truth that the probe is held to.

All times are microseconds of the trace's own clock, on which kineto has put host and device.

A step's exposed wait is the time for which the device had nothing to do *because* the host sat in
the fetch. The host enqueues nothing while it sits there; so the device is idle for that reason from
the later of two moments, the fetch's begin and the end of the last activity that was enqueued
before the fetch's end, up to the fetch's end. What follows until the first activity of the forward
is the host's own work (launching), and gaps between queued activities before that moment are the
device's. Hence

    exposed = max(0, fetch end - max(fetch begin, end of what was enqueued before the fetch's end))

An activity is a kernel, a copy or a fill on any stream, enqueued when the runtime call with its
correlation began (when that is not in the trace: when the activity began).
"""

from bisect import bisect_left
from collections.abc import Iterable, Sequence
from itertools import accumulate
from typing import Any, Final, NamedTuple

FETCH: Final = "gpuwatch fetch "
"""Name of a fetch's range in the trace, followed by the step's number."""
ON_DEVICE: Final = frozenset({"kernel", "gpu_memcpy", "gpu_memset"})
BY_HOST: Final = frozenset({"cuda_runtime", "cuda_driver"})

Event = dict[str, Any]


class Activity(NamedTuple):
    """Something the device did."""

    enqueued_us: float
    end_us: float


class Fetch(NamedTuple):
    """The host in `next(loader)`."""

    begin_us: float
    end_us: float


def fetches(events: Iterable[Event]) -> dict[int, Fetch]:
    """By the number in the range's name. The device's copy of a range is not the host's."""
    found = {}
    for event in events:
        name = str(event.get("name", ""))
        if event.get("cat") == "user_annotation" and name.startswith(FETCH):
            found[int(name.removeprefix(FETCH))] = Fetch(event["ts"], event["ts"] + event["dur"])
    return found


def activities(events: Sequence[Event]) -> list[Activity]:
    """All that the device did, by when the host asked for it."""
    asked_us: dict[Any, float] = {
        event["args"]["correlation"]: event["ts"]
        for event in events
        if event.get("cat") in BY_HOST and "correlation" in event.get("args", {})
    }
    done = []
    for event in events:
        if event.get("cat") in ON_DEVICE:
            begin_us: float = event["ts"]
            correlation = event.get("args", {}).get("correlation")
            done.append(Activity(asked_us.get(correlation, begin_us), begin_us + event["dur"]))
    return sorted(done)


def exposed_us(fetch: Sequence[Fetch], done: Sequence[Activity]) -> list[float]:
    """For each fetch, how long the device had nothing to do because of it."""
    asked_us = [one.enqueued_us for one in done]
    last_us = list(accumulate((one.end_us for one in done), max))
    waits = []
    for one in fetch:
        before = bisect_left(asked_us, one.end_us)
        idle_us = max(one.begin_us, last_us[before - 1]) if before else one.begin_us
        waits.append(max(0.0, one.end_us - idle_us))
    return waits


def exposed_by_step_ns(trace: dict[str, Any]) -> dict[int, float]:
    """Step: exposed wait, ns. Several fetches of one number are not separated: use one a step."""
    events = [event for event in trace["traceEvents"] if event.get("ph") == "X"]
    by_step = fetches(events)
    waits = exposed_us(list(by_step.values()), activities(events))
    return {step: 1e3 * wait for step, wait in zip(by_step, waits, strict=True)}
