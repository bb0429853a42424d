"""What goes from a step with each cause."""

from collections.abc import Callable
from typing import Final

from tui.verdict import policy
from tui.verdict.copies import copies
from tui.verdict.device import idle_of
from tui.verdict.findings import Kind
from tui.verdict.forecast.course import ISSUING, Course, Removal
from tui.verdict.places import (
    copies_to_gpu,
    empties_cache,
    main_places,
    share_where,
    steps_one_by_one,
    waits_for_gpu,
)
from tui.verdict.window import FrameShare, Window

_WORKING: Final = (*ISSUING, "other")


def removal_of(kind: Kind, window: Window, course: Course) -> Removal | None:
    """None for what no replay can take away."""
    found = _REMOVALS.get(kind)
    return found(window, course) if found is not None else None


def _input(_: Window, __: Course) -> Removal:
    """Every batch lies ready."""
    return _gone("data")


def _host(_: Window, __: Course) -> Removal:
    """Python between the phases; a wait for the GPU there is no Python."""
    return Removal(host={"other": 0.0})


def _optimizer(window: Window, _: Course) -> Removal:
    """All of it, or what a fused one leaves of a loop over the parameters."""
    looped = any(map(steps_one_by_one, main_places(window)))
    return _gone("optimizer", policy.FUSED_LEFT if looped else 0.0)


def _launch(window: Window, course: Course) -> Removal:
    """The same kernels, issued at once; copies and emptying the cache take what they took."""
    moved = copies(window)
    kept = share_where(main_places(window), empties_cache)
    kept += moved.share if moved is not None else 0.0
    issued = course.host_ns(ISSUING)
    left = min(1.0, kept * course.step_ns / issued) if issued else 1.0
    return Removal(host=dict.fromkeys(ISSUING, left))


def _sync(window: Window, course: Course) -> Removal:
    """The host never waits for the GPU. Lines that copy wait for it too: those are the copies'."""
    moved = copies(window)
    copying = moved is not None and moved.share >= policy.CONTRIBUTOR

    def waits(place: FrameShare) -> bool:
        return waits_for_gpu(place) and not (copying and copies_to_gpu(place))

    return _without_waits(share_where(main_places(window), waits), course)


def _h2d(window: Window, course: Course) -> Removal:
    """No copy that the host sits in, and none that the GPU has to wait for."""
    moved = copies(window)
    if moved is None:
        return Removal()
    gone = _without_waits(max(moved.on_lines, moved.share), course)
    worked = course.device_ns(ISSUING)
    if not worked:
        return gone
    # What the counters call idle is all that copies can hold on the GPU's side.
    held = worked + course.device_ns(("other", "wait")) - (1 - idle_of(window)) * course.step_ns
    cut = min(moved.share * course.step_ns, max(0.0, held))
    return gone.joined(Removal(device=dict.fromkeys(ISSUING, max(0.0, 1 - cut / worked))))


def _allocator(window: Window, course: Course) -> Removal:
    return _without_waits(share_where(main_places(window), empties_cache), course)


def _without_waits(share: float, course: Course) -> Removal:
    """This part of the host's time gone, its waits for the GPU first."""
    if not share:
        return Removal()
    taken_ns = share * course.step_ns
    host_ns = course.host_ns(_WORKING)
    blocked_ns = max(0.0, course.step_ns - host_ns - course.host_ns(("data",)))
    left = 1.0 - max(0.0, taken_ns - blocked_ns) / host_ns if host_ns else 1.0
    return Removal(host=dict.fromkeys(_WORKING, max(0.0, left)), waits=True)


def _gone(name: str, left: float = 0.0) -> Removal:
    return Removal(host={name: left}, device={name: left})


_REMOVALS: Final[dict[Kind, Callable[[Window, Course], Removal]]] = {
    "input": _input,
    "host": _host,
    "optimizer": _optimizer,
    "launch": _launch,
    "sync": _sync,
    "h2d": _h2d,
    "allocator": _allocator,
    "checkpoint": lambda _, __: _gone("checkpoint"),
    "evaluation": lambda _, __: _gone("evaluation"),
    "recompile": lambda _, __: _gone("compile"),
}
