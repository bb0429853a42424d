"""Daydream in small: the steps of a window run again on the clocks of host and GPU."""

from tui.verdict.forecast.course import Course


def replay(course: Course) -> float:
    """Mean length of a step on the GPU's clock, ns.

        host   += its own work, and waits where it did, or where the launch queue is full
        device  = max(device + its work, host): nothing runs before it is issued

    Played twice, and the second time counted: what the run was before has left the queue by then.
    """
    _, lag_ns = _play(course, course.lag_ns)
    total_ns, _ = _play(course, lag_ns)
    return total_ns / sum(count for count, _ in course.steps)


def _play(course: Course, lag_ns: float) -> tuple[float, float]:
    """The GPU's time for all the steps, ns, and its lag after them."""
    host, device, total = 0.0, lag_ns, 0.0
    for count, stretches in course.steps:
        began = device
        for _, host_ns, device_ns, idle_ns, waits in stretches:
            host += host_ns
            device = max(device + idle_ns + device_ns, host)
            host = max(host, device if waits else device - course.ahead_ns)
        total += count * (device - began)
    return total, device - host
