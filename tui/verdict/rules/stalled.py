"""Nothing moves: the training thread is where it was, for far longer than this run ever takes."""

from probe.wire.messages import Step
from tui.verdict import policy
from tui.verdict.bound import plain
from tui.verdict.figures import ms, percent
from tui.verdict.findings import Evidence, Finding
from tui.verdict.places import spot, worker_places
from tui.verdict.spent import pace_of
from tui.verdict.standing_workers import look_at, shows, where
from tui.verdict.window import OpenStep, Window

_NO_STEP = ("starting", "training over")
"""Phases in which there is no step to come to an end."""
_NEEDS = {
    "data": "see what the loader waits for: a lock, a server without a timeout, a dead worker",
    "loader start-up": "see what the workers import or open when they start",
    "backward": "a collective that waits for another rank ends here: look at the other ranks",
    "optimizer": "a collective that waits for another rank may end here: look at the other ranks",
    "checkpoint": "see whether the disk or the network file system still answers",
}


def stalled(window: Window) -> Finding | None:
    """No mark for max(10 s, 10 times the 95th percentile of a step), longer for what is long.

    The age is that of the last mark, not of the step: an evaluation that fetches makes progress.
    """
    now = window.open_step
    if now is None or window.ended or now.phase in _NO_STEP or now.age_s <= policy.STALL_S:
        return None  # no limit is below this one, and as a rule nothing stands so long
    limit_s = limit_of(now, window.all_recent)
    if now.age_s <= limit_s:
        return None
    age = ms(now.age_s * 1e9)
    text = f"the last mark came {age} ago, in {now.phase}"
    if window.all_recent:
        text += f"; 95% of steps took less than {ms(_percentile_95(window.all_recent))}"
    waits = now.phase in ("data", "loader start-up")
    workers = now.workers if waits else ()
    evidence = [Evidence(text, "hook", now.age_s, "s"), *shows(workers)]
    if now.stack:
        way = " → ".join(now.stack)
        evidence.append(Evidence(f"the main thread: {way}", now.seen_by))
    elif now.frame:
        evidence.append(Evidence(f"the main thread is in {now.frame}", now.seen_by))
    if waits and not workers:
        for place in worker_places(window)[:1]:
            text = f"{percent(place.share)} of worker samples are in {spot(place)}"
            evidence.append(Evidence(text, "py-spy", place.share))
    held = where(workers)
    here = f", {held}" if held else f" in {now.frame}" if now.frame else ""
    usual = _NEEDS.get(now.phase, f"look at what the main thread waits for{here}")
    advice = look_at(held) if held else usual
    headline = f"nothing for {age}: {now.phase}{here}"
    return plain("stalled", None, "critical", headline, tuple(evidence), (advice,))


def is_near(now: OpenStep, recent: tuple[Step, ...], ended: bool) -> bool:
    """Whether half of that time has passed: who is asked where everyone is needs seconds. `ended`:
    no mark is to come, though the process may live on."""
    if ended or now.phase in _NO_STEP or now.age_s <= policy.STALL_S / 2:
        return False
    return now.age_s > limit_of(now, recent) / 2


def limit_of(now: OpenStep, recent: tuple[Step, ...]) -> float:
    """Seconds in the open phase from which the run counts as stalled."""
    known = sum(row.count for row in recent) >= policy.STALL_KNOWN_STEPS
    limit_s = policy.STALL_FIRST_S
    if known:
        limit_s = max(policy.STALL_S, policy.STALL_STEPS * _percentile_95(recent) / 1e9)
    longest_ns = 0
    if now.phase == "checkpoint":
        limit_s = max(limit_s, policy.STALL_CHECKPOINT_S)
        longest_ns = max((row.checkpoint_ns for row in recent), default=0)
    elif now.phase == "compile":
        limit_s = max(limit_s, policy.STALL_COMPILE_S)
    elif now.phase == "loader start-up":
        limit_s = max(limit_s, policy.STALL_STARTUP_S)
        longest_ns = max((row.startup_ns for row in recent), default=0)
    elif now.evaluating or now.phase == "evaluation":
        # How long one batch of it takes is not known, how long all of it took is.
        longest_ns = max((row.evaluation_ns for row in recent), default=0)
    elif now.phase == "other":
        longest_ns = max((row.other_ns for row in recent), default=0)
    elif now.phase not in ("data", "forward", "backward", "optimizer"):
        limit_s = max(limit_s, policy.STALL_NAMED_S)
        longest_ns = max((row.phases.get(now.phase, 0) for row in recent), default=0)
    return max(limit_s, policy.STALL_LONGEST * longest_ns / 1e9)


def _percentile_95(rows: tuple[Step, ...]) -> float:
    paces = sorted(pace_of(row) for row in rows)
    return paces[min(len(paces) - 1, int(0.95 * len(paces)))]
