"""Nothing moves: the training thread is where it was, for far longer than this run ever takes."""

from collections.abc import Sequence
from dataclasses import replace
from typing import Final

from ...steps import Step
from ..code_places import worker_places
from ..findings import Evidence, EvidenceSource, Finding
from ..format import ms, percent
from ..place_names import place_name
from ..scoring import state
from ..stack_samples import WorkersAt
from ..step_time import pace_of
from ..thresholds import causes as limits
from ..window import OpenStep, RunFacts, StepWindow
from .standstill import among_ranks

# Where the loader's workers stand while the training thread waits for their batch.

NAMED = 2
"""Pids that are named; more are counted."""


def stuck_worker(workers: Sequence[WorkersAt]) -> str:
    """ "worker 48231 in answer (stalled.py:88)" of those that make a batch; "" where none does or
    it is unknown."""
    making = [one for one in workers if not one.wait_for_work]
    return f"{_who(making[0], plain=True)} in {making[0].way[-1]}" if making else ""


def stuck_worker_advice(held: str) -> str:
    """What to do about workers that stand there (`where`)."""
    return f"see what holds {held}: a lock, a disk, a server without a timeout"


def workers_evidence(workers: Sequence[WorkersAt]) -> tuple[Evidence, ...]:
    """Their way there, the innermost frame first: a narrow screen cuts the end."""
    if not workers:
        return ()
    if all(one.wait_for_work for one in workers):
        count = sum(len(one.pids) for one in workers)
        have = f"all its {count} workers wait" if count > 1 else "its worker waits"
        return (Evidence(f"{have} for work: none makes the batch that it waits for", "py-spy"),)
    first, *others = workers
    text = f"{_who(first)}: {' ← '.join(reversed(first.way))}"
    if others:
        rest = sum(len(one.pids) for one in others)
        waits = "waits for work" if rest == 1 else "wait for work"
        text += f"; {rest} more {waits if others[0].wait_for_work else 'elsewhere'}"
    return (Evidence(text, "py-spy"),)


def _who(workers: WorkersAt, plain: bool = False) -> str:
    pids = workers.pids
    if len(pids) == 1:
        return f"worker {pids[0]}"
    if plain or len(pids) > NAMED:
        return f"{len(pids)} workers"
    return f"workers {' and '.join(str(pid) for pid in pids)}"


IDLE: Final = "idle"
STOPPED: Final = "stopped"
"""A sub of `stalled`: the kernel holds the process."""
_NEEDS = {
    "data": "see what the loader waits for: a lock, a server without a timeout, a dead worker",
    "loader start-up": "see what the workers import or open when they start",
    "backward": "a collective that waits for another rank ends here: look at the other ranks",
    "optimizer": "a collective that waits for another rank may end here: look at the other ranks",
    "checkpoint": "see whether the disk or the network file system still answers",
}


def stalled(window: StepWindow) -> Finding | None:
    """No mark for max(10 s, 10 times the 95th percentile of a step), longer for what is long.

    The age is that of the last mark, not of the step: an evaluation that fetches makes progress.
    """
    if (by_kernel := stopped(window)) is not None:
        return by_kernel
    now = window.open_step
    if now is None or window.ended or not now.ends or now.age_s <= LEAST_S:
        return None  # no limit is below this one, and few phases last so long
    limit_s = _limit_in_job(window, now)
    if now.age_s <= limit_s:
        return None
    if now.at_prompt:
        return notebook_idle(now.age_s)
    age = ms(now.age_s * 1e9)
    text = f"the last mark came {age} ago, in {now.phase}"
    if window.all_recent:
        text += f"; 95% of steps took less than {ms(_percentile_95(window.all_recent))}"
    waits = now.phase in ("data", "loader start-up")
    workers = now.workers if waits else ()
    evidence = [Evidence(text, "hook", now.age_s, "s"), *workers_evidence(workers)]
    if now.stack:
        way = " → ".join(now.stack)
        evidence.append(Evidence(f"the main thread: {way}", now.seen_by))
    elif now.frame:
        evidence.append(Evidence(f"the main thread is in {now.frame}", now.seen_by))
    if waits and not workers:
        for place in worker_places(window)[:1]:
            text = f"{percent(place.share)} of worker samples are in {place_name(place)}"
            evidence.append(Evidence(text, "py-spy", place.share))
    among = None if window.job is None else among_ranks(window.job, now.age_s)
    if among is not None:
        evidence = [*among.evidence, *evidence]
        return state("stalled", "ranks", "critical", among.headline, tuple(evidence), among.advice)
    held = stuck_worker(workers)
    here = f", {held}" if held else f" in {now.frame}" if now.frame else ""
    usual = _NEEDS.get(now.phase, f"look at what the main thread waits for{here}")
    advice = stuck_worker_advice(held) if held else usual
    headline = f"no progress for {age}: {now.phase}{here}"
    return state("stalled", None, "critical", headline, tuple(evidence), (advice,))


LEAST_S: Final = min(limits.STALL_S, limits.STALL_RANKS_S, limits.STALL_DEAD_S)


def _limit_in_job(window: StepWindow, now: OpenStep) -> float:
    """`limit_of`, which is shorter where counters and stacks of the ranks show who is waited for
    and that it does nothing else, and as long as such a rank may take for what it does."""
    recent, job = window.all_recent, window.job
    limit_s = limit_of(now, recent)
    if job is None or sum(row.count for row in recent) < limits.STALL_KNOWN_STEPS:
        return limit_s
    if job.ended and now.phase in _MEETING:
        return max(limits.STALL_DEAD_S, limits.STALL_STEPS * _percentile_95(recent) / 1e9)
    if job.pending is None:
        return limit_s
    late = [job.doing[rank] for rank in job.pending.outside if rank in job.doing]
    long_s = [limit_of(replace(now, phase=one.phase), recent) for one in late if one.phase in _LONG]
    # Whoever is still in a collective waits for the one that has ended, in whatever phase it is.
    for_the_dead = bool(job.ended and job.pending.inside and not job.pending.outside)
    if job.pending.is_sure or for_the_dead:
        limit_s = max(limits.STALL_RANKS_S, limits.STALL_STEPS * _percentile_95(recent) / 1e9)
    longest_ns = max((row.end_ns - row.start_ns for row in recent if row.count == 1), default=0)
    return max(limit_s, limits.STALL_LONGEST * longest_ns / 1e9, *long_s)


_MEETING: Final = ("forward", "backward", "optimizer")
"""Phases in which ranks meet; a run that ends in order is in none of them."""
_LONG: Final = ("checkpoint", "compile", "loader start-up", "evaluation")
"""Phases of a late rank that may last."""


def stopped(window: RunFacts) -> Finding | None:
    """Somebody stopped the process: nothing in it is wrong."""
    if not window.stopped or window.ended:
        return None
    evidence = (Evidence("the kernel lists it in state T", "proc"),)
    advice = ("if it should go on: kill -CONT its pid, or let the debugger go on",)
    headline = "the process is stopped: a signal (SIGSTOP, Ctrl-Z) or a debugger holds it"
    return state("stalled", STOPPED, "info", headline, evidence, advice)


def notebook_idle(age_s: float, source: EvidenceSource = "hook") -> Finding:
    """A notebook whose loop has ended waits for a person."""
    age = ms(age_s * 1e9)
    evidence = (Evidence(f"no step for {age}", source, age_s, "s"),)
    return state(
        "healthy", IDLE, "info", f"the notebook is idle: no cell trains for {age}", evidence
    )


def is_near(now: OpenStep, recent: tuple[Step, ...], ended: bool) -> bool:
    """Whether half of that time has passed: who is asked where everyone is needs seconds. `ended`:
    no mark is to come, though the process may live on."""
    if ended or not now.ends or now.age_s <= limits.STALL_S / 2:
        return False
    return now.age_s > limit_of(now, recent) / 2


def limit_of(now: OpenStep, recent: tuple[Step, ...]) -> float:
    """Seconds in the open phase from which the run counts as stalled."""
    known = sum(row.count for row in recent) >= limits.STALL_KNOWN_STEPS
    limit_s = limits.STALL_FIRST_S
    if known:
        limit_s = max(limits.STALL_S, limits.STALL_STEPS * _percentile_95(recent) / 1e9)
    longest_ns = 0
    if now.phase == "checkpoint":
        limit_s = max(limit_s, limits.STALL_CHECKPOINT_S)
        longest_ns = max((row.checkpoint_ns for row in recent), default=0)
    elif now.phase == "compile":
        limit_s = max(limit_s, limits.STALL_COMPILE_S)
    elif now.phase == "loader start-up":
        limit_s = max(limit_s, limits.STALL_STARTUP_S)
        # Whose workers start is not known yet.
        starts = (max(row.startup_ns, row.evaluation_startup_ns) for row in recent)
        longest_ns = max(starts, default=0)
    elif now.evaluating or now.phase == "evaluation":
        # How long one batch of it takes is not known, how long all of it took is.
        longest_ns = max((row.evaluation_ns for row in recent), default=0)
    elif now.phase == "other":
        longest_ns = max((row.other_ns for row in recent), default=0)
    elif now.phase not in ("data", "forward", "backward", "optimizer"):
        limit_s = max(limit_s, limits.STALL_NAMED_S)
        longest_ns = max((row.phases.get(now.phase, 0) for row in recent), default=0)
    return max(limit_s, limits.STALL_LONGEST * longest_ns / 1e9)


def _percentile_95(rows: tuple[Step, ...]) -> float:
    paces = sorted(pace_of(row) for row in rows)
    return paces[min(len(paces) - 1, int(0.95 * len(paces)))]


# A run that hung and was ended keeps the verdict that it hung.

_AFTER_THE_LOOP = ("other", "evaluation", "checkpoint")
"""Phases in which a run that leaves in order may have had its last work to do."""


def ended_stalled(before: Finding, window: StepWindow) -> Finding | None:
    """The last finding, `before`, of a run that has ended; None where that was no stall, or the
    run may only have come to its end."""
    if not window.ended or before.kind != "stalled":
        return None
    now = window.open_step
    if not window.killed and (now is None or now.phase in _AFTER_THE_LOOP):
        return None
    hung = stalled(replace(window, ended=False)) or before
    end = ", then killed" if window.killed else ", then it ended"
    return replace(hung, headline=hung.headline.removesuffix(end) + end)
