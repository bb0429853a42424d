"""Where the GPU's time goes: all of it, each part once.

The GPU's clock says in which phase it idled, its counters how much of the time anything ran, the
marks' lag where it can have run dry, and stack samples what the host did meanwhile. What none of
them explains is "unexplained", and no cause may claim it.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import Final, Literal, get_args

from ..steps import GpuStep, Step
from .allocations import asked_of_device, empties_in_loop
from .busy_parts import BUSY, BusyPart, busy_parts
from .code_places import (
    copies_to_gpu,
    empties_cache,
    evaluates,
    fetches,
    frees_batch,
    is_users,
    leaves_step,
    main_places,
    reads,
    share_seen,
    waits_for_gpu,
    works_on_host,
)
from .cpu_wait import asleep, seen_before_the_net
from .exposed_wait import exposed_wait, loader_ends, worker_ends
from .findings import EvidenceSource
from .gpu_clock import (
    computed_in_trace,
    computing,
    copies,
    crossing,
    too_long_to_launch,
    unmeasured,
)
from .on_device import OnDevice, counted_by, idle_of, on_device, paired
from .pauses import epoch_parts, shared_starts
from .reading_functions import reads_results
from .statistics import Share, at_most
from .step_time import between_of, host_phases, issued_of, named_ns, spent
from .thresholds import causes
from .thresholds import gpu as limits
from .thresholds.hysteresis import CONTRIBUTOR
from .traced_places import shown, traced_forward
from .unmarked_evaluation import evaluating_pauses
from .window import RunFacts, StepWindow

IdlePart = Literal[
    "input",
    "pauses",
    "copies",
    "allocator",
    "sync",
    "host",
    "launch",
    "unexplained",
]
"""Nothing runs: the step waits for data; a checkpoint, an evaluation or a compilation; a copy from
the host; the allocator asks the device; the host has waited for the GPU; it runs Python between the
phases, sleeps, or computes itself; it launches too slowly; nobody knows."""
IDLE: Final[tuple[IdlePart, ...]] = get_args(IdlePart)
Part = BusyPart | IdlePart


@dataclass(frozen=True, slots=True)
class IdleLedger:
    """Parts of the GPU's time over the window. They add up to 1."""

    shares: Mapping[Part, float]
    """Every part, 0 to 1."""
    source: EvidenceSource
    """Of how much of the time it was busy: "event" where no counter shows it."""
    computed: float = 0.0
    """Of the host's part what is computed on the CPU within the phases, for a net on the GPU."""

    @property
    def dry(self) -> float:
        """Part of the time in which it had nothing to do within the phases, whoever was late."""
        return self.shares["launch"] + self.computed

    @property
    def busy(self) -> float:
        """Part of the time in which anything ran."""
        return sum(self.shares[part] for part in BUSY)

    @property
    def unexplained(self) -> float:
        """Part of the time in which it was idle, and nothing says why."""
        return self.shares["unexplained"]


class _Account:
    """Time that is left to explain. Nothing is given away twice."""

    def __init__(self, idle: float) -> None:
        self.left = idle
        self.taken: dict[Part, float] = dict.fromkeys((*BUSY, *IDLE), 0.0)

    def take(self, part: Part, amount: float) -> float:
        """As much of it as is left."""
        got = min(self.left, max(0.0, amount))
        self.taken[part] += got
        self.left -= got
        return got


@lru_cache(maxsize=4)
def idle_ledger(window: StepWindow) -> IdleLedger | None:
    """None without the GPU's clock. Worked out once a window."""
    device = on_device(window)
    if device is None or not window.steps or not device.step_ns:
        return None
    activity = window.activity
    known = activity is not None and activity.busy is not None
    idle = idle_of(window) if known else _idle_by_marks(window, device)
    account, on_host = _Account(min(1.0, idle)), 0.0
    account.take("input", exposed_wait(window) + loader_ends(window).mean)
    unmarked = _pauses(account, window)
    if not window.sees_loading:
        within = max(0.0, account.left - _between(window, device))
        account.take("input", _fetched(window, within))
    moved = copies(window)
    account.take("copies", 0.0 if moved is None else moved.share)
    if empties_in_loop(window):
        account.take("allocator", share_seen(window, empties_cache).mean)
    _host(account, window, device, unmarked)
    account.take("allocator", asked_of_device(window) or 0.0)
    if known and (main_places(window) or keeps_up(device)):
        dry = min(starved(window, device), _issued(window, device))
        # A sleep at a line of the user's is known: beside it the thread launches.
        sleeps = share_seen(window, lambda one: is_users(one) and reads(one) and not fetches(one))
        within = _asleep_beside_fetches(window) - max(_between(window, device), sleeps.mean)
        if within < causes.ASLEEP_AWAKE * min(dry, account.left):
            # A thread that launches runs all through the phases; one without a core waits for those
            # that do.
            beside: IdlePart = "input" if crowded(window) else "launch"
            by_lines = too_long_to_launch(window, min(dry, account.left)).mean
            computed = max(crossing(window), by_lines, _computed(account, window))
            on_host = account.take("host", min(dry, computed))
            account.take(beside, dry - on_host)
    account.take("unexplained", 1.0)
    busy = max(0.0, 1.0 - sum(account.taken.values()))
    for part, amount in busy_parts(busy, activity if known else None, window).items():
        account.taken[part] = amount
    source = counted_by(activity) if known and activity is not None else "event"
    return IdleLedger(account.taken, source, on_host)


def _computed(account: _Account, window: StepWindow) -> float:
    """What a traced step computes on the CPU, 0 to 1, but for as much as may be the host's
    between the phases, or of a batch that no mark shows to be made. Samples of the traced function
    that count as neither are none of it."""
    computed = computed_in_trace(window).mean
    other = account.taken["host"] + (0.0 if window.sees_loading else account.taken["input"])
    return max(0.0, computed - other, min(computed, _apart(window)))


def _apart(window: StepWindow) -> float:
    seen = traced_forward(window)
    if seen is None or seen.on_host is None:
        return 0.0
    function = shown(seen.on_host.place).rpartition(":")[0]
    apart = share_seen(
        window,
        lambda one: (
            shown(one.frame).rpartition(":")[0] == function
            and computing(one)
            and not works_on_host(one)
            and not fetches(one)
        ),
    )
    return apart.mean if apart.low >= CONTRIBUTOR else 0.0


def computed_for_gpu(window: StepWindow) -> Share:
    """Part of the time in which the GPU waits for what a traced step computes on the CPU."""
    ledger = idle_ledger(window)
    return at_most(computed_in_trace(window), 0.0 if ledger is None else ledger.computed)


def _fetched(window: StepWindow, idle: float) -> float:
    """Part of the time in which the GPU idles for a batch that the loop makes itself, by the
    samples; `idle` within the phases. Other Python of the step delays its launches as much: which
    of the two the GPU's queue outlasts is a matter of their order, so that they share what is idle.
    """
    making = share_seen(window, lambda place: fetches(place) and not frees_batch(place))
    fetched, python = making.mean, python_within(window)
    return fetched * min(1.0, idle / (fetched + python)) if fetched else 0.0


def _asleep_beside_fetches(window: StepWindow) -> float:
    """Part of the time, 0 to 1, in which the training thread sleeps and fetches nothing: where no
    mark shows the fetches, but for what samples show of them asleep."""
    slept = asleep(window) or 0.0
    if window.sees_loading:
        return slept
    fetched = share_seen(window, lambda place: fetches(place) and reads(place))
    return max(0.0, slept - fetched.mean)


def crowded(window: RunFacts) -> bool:
    """The loader's workers hold the cores that the training needs: more than one and a half for
    each core, which wait for one themselves."""
    workers, have = window.workers, window.cores
    if workers is None or workers.run_delay is None or not have:
        return False
    waits = workers.run_delay >= causes.QUEUES * (workers.cpu_percent or 0.0) / 100
    queue = waits and workers.count * workers.run_delay >= causes.LEAST_QUEUE
    return queue and workers.count > causes.OVERSUBSCRIBED * have


def of_the_loader(window: StepWindow, waits: Share) -> Share:
    """The wait for data, and what else the loader takes: starting and ending its workers is one
    cause, and so are workers that leave the training no core."""
    ledger = idle_ledger(window)
    beside = loader_ends(window).mean
    if epoch_parts(window) is not None:
        beside -= worker_ends(window).mean  # in the parts already
    if ledger is not None:
        beside = max(beside, ledger.shares["input"] - waits.mean)
    return Share(*(min(1.0, part + beside) for part in (waits.mean, waits.low, waits.high)))


def _pauses(account: _Account, window: StepWindow) -> float:
    """While a checkpoint is written or a graph compiled nothing runs on the GPU; an evaluation uses
    it about as much as the rest of the time does. Returns what those without a mark get."""
    whole = spent(window.steps).wall_ns
    if whole <= 0:
        return 0.0
    account.take("pauses", sum(row.checkpoint_ns + row.compile_ns for row in window.steps) / whole)
    evaluated_ns = sum(row.evaluation_ns for row in window.steps) - sum(shared_starts(window))
    evaluating = evaluated_ns / whole
    idle = account.left
    account.take("pauses", evaluating * idle)
    return account.take("pauses", evaluated_within(window) * idle)


@lru_cache(maxsize=4)
def evaluated_within(window: StepWindow) -> float:
    """Part of the time, 0 to 1, in evaluations and rollouts that no mark has: by the samples, or by
    the pauses that these show them to be. Worked out once a window: several removals ask."""
    if any(row.evaluation_ns for row in window.all_recent):
        return 0.0
    if (paused := evaluating_pauses(window)) is not None:
        return paused.share.mean
    seen = share_seen(window, evaluates)
    return seen.mean if seen.low >= CONTRIBUTOR else 0.0


def _host(account: _Account, window: StepWindow, device: OnDevice, unmarked: float) -> None:
    """Idle time beside the phases, and what waits for the GPU cost within them.

    Where the host stands at a line that waits, the GPU still works off its lag; the rest of that
    time it has nothing to do. A host that had not waited would have launched meanwhile, so idle
    time within the phases is the wait's too, as far as the wait was long. `unmarked`: of the idle
    time what evaluations without a mark have by now, which may lie between the phases.
    """
    waits = share_seen(window, reads_results(window)).mean
    lag = 0.0 if device.lag_ns is None else device.lag_ns / device.step_ns
    whole, ended = _between(window, device), loader_ends(window).mean
    between = min(account.left + unmarked, whole)
    idle_waits = account.take("sync", min(between, max(0.0, waits - lag)))
    beside = idle_waits + ended + evaluated_within(window)
    seen = min(python_seen(window).mean, whole - beside)
    account.take("host", max(between - beside, seen))
    places = main_places(window)
    own = [one for one in places if is_users(one) and not copies_to_gpu(one)]
    mine = sum(one.share for one in own if not waits_for_gpu(one))
    slept = min(_asleep_beside_fetches(window), mine)
    account.take("host", max(slept - account.taken["host"], python_within(window)))
    account.take("sync", waits - idle_waits)


def python_seen(window: StepWindow) -> Share:
    """Part of the time in Python that launches nothing, by the samples: but for phases that the
    user has named as data or as the net's, which say what it is."""
    leaves = leaves_step(main_places(window))
    working = seen_before_the_net(window, lambda one: works_on_host(one) and not leaves(one))
    named = named_ns(window.steps) / max(1, spent(window.steps).wall_ns)
    return Share(*(max(0.0, part - named) for part in (working.mean, working.low, working.high)))


def python_within(window: StepWindow) -> float:
    """The part of it, 0 to 1, that the marks book as a phase: in a loop without a loader all from
    one step's end to the next backward is "forward"."""
    seen, named = python_seen(window), host_phases(window.steps)
    if seen.low < CONTRIBUTOR:
        return 0.0
    between = sum(named.values()) + sum(row.other_ns for row in window.steps)
    whole = spent(window.steps).wall_ns
    return max(0.0, seen.mean - between / whole) if whole > 0 else 0.0


def _between(window: StepWindow, device: OnDevice) -> float:
    """Part of the GPU's time between the phases: Python, where no kernel was left to run."""
    named = host_phases(window.steps)
    return _of_all_steps(window, device, lambda row: between_of(row, named))


def _issued(window: StepWindow, device: OnDevice) -> float:
    """Part of the GPU's time within the phases."""
    return _of_all_steps(window, device, issued_of)


def _of_all_steps(
    window: StepWindow, device: OnDevice, part: Callable[[Step | GpuStep], int]
) -> float:
    """A part of the GPU's time over the whole window, 0 to 1, though one step in ten is measured:
    what the host spends on it in all steps, by how long the GPU takes for it in those that both
    clocks have. Of a few steps a long one weighs too much, or is missing (ratio estimator)."""
    whole = spent(window.steps).wall_ns
    pairs = paired(window)
    by_host = sum(part(row) for row, _ in pairs)
    if whole <= 0 or not by_host:
        measured = sum(part(row) for row in device.rows)
        return unmeasured(window).left * measured / sum(row.wall_ns for row in device.rows)
    ratio = sum(part(row) for _, row in pairs) / by_host
    return min(1.0, ratio * sum(map(part, window.steps)) / whole)


def keeps_up(device: OnDevice) -> bool:
    """The GPU had caught up with the host at the end of every phase, in most steps."""
    return device.caught_up is not None and device.caught_up >= limits.CAUGHT_UP_STEPS


def starved(window: StepWindow, device: OnDevice) -> float:
    """The most of the time, 0 to 1, for which the GPU can have had nothing to run within the phases
    for want of launches.

    What is queued as a phase begins lasts for the lag there, and once the host has issued the last
    kernel of it nothing is short: so for the host's time of the phase less that lag.
    """
    if device.abstains:
        return 0.0
    short = launching = 0.0
    for issued, row in paired(window):
        launching += issued_of(issued)
        phases = (
            (issued.forward_ns, row.lag_data_ns),
            (issued.backward_ns, row.lag_forward_ns),
            (issued.optimizer_ns, row.lag_backward_ns),
        )
        short += sum(max(0.0, ns - (lag or 0) * row.count) for ns, lag in phases)
    whole = spent(window.steps).wall_ns
    if not launching or whole <= 0:
        return 0.0
    return min(1.0, short / launching * sum(map(issued_of, window.steps)) / whole)


def _idle_by_marks(window: StepWindow, device: OnDevice) -> float:
    """The most that the GPU can have idled: its waits, the time between the phases, and that in
    which it may have run dry within them."""
    whole = spent(window.steps).wall_ns
    paused = sum(row.checkpoint_ns + row.compile_ns for row in window.steps) / max(1, whole)
    dry = min(starved(window, device), _issued(window, device))
    return exposed_wait(window) + paused + _between(window, device) + dry
