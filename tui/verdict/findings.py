"""The verdict: findings with their evidence, as immutable values."""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Literal

Kind = Literal[
    "warming-up",
    "incomplete",
    "stalled",
    "healthy",
    "input",
    "h2d",
    "communication",
    "launch",
    "sync",
    "compute",
    "memory-bandwidth",
    "padding",
    "optimizer",
    "host",
    "checkpoint",
    "evaluation",
    "recompile",
    "allocator",
    "straggler",
    "imbalance",
    "contention",
    "throttled",
    "memory-growth",
]
Severity = Literal["info", "warning", "critical"]
EvidenceSource = Literal[
    "hook", "event", "gpm", "nvml", "py-spy", "probe", "proc", "burst", "collectives"
]
Signal = Literal[
    "probe",
    "feed",
    "page",
    "process",
    "torch",
    "nvml",
    "gpm",
    "gpu clock",
    "gpu lag",
    "run delay",
    "stacks",
    "worker stacks",
    "source lines",
    "dump",
    "ranks",
    "collectives",
]
"""What the monitor can see of a run; most are named by the source that delivers them."""


@dataclass(frozen=True, slots=True)
class MissingSignal:
    """A signal that could not be had."""

    signal: Signal
    why: str
    fix: str = ""
    """What mends it; "" where nothing does."""
    instead: str = ""
    """What stands in for it; "" where nothing does."""

    @property
    def reason(self) -> str:
        """Why, what stands in for it, and what mends it."""
        why = f"{self.why}; {self.instead}" if self.instead else self.why
        return f"{why}. {self.fix}" if self.fix else why

    @property
    def text(self) -> str:
        """ "nvml: no NVIDIA driver. install the driver", as JSON and reports have it."""
        return f"{self.signal}: {self.reason}"


def find_missing(missing: Iterable[MissingSignal], signal: Signal) -> MissingSignal | None:
    """The one of that name; None where the signal is there."""
    return next((one for one in missing if one.signal == signal), None)


@dataclass(frozen=True, slots=True)
class Evidence:
    """One number that a finding rests on, so that it can be checked rather than believed."""

    text: str
    source: EvidenceSource
    value: float | None = None
    unit: str | None = None


ForecastKind = Literal["estimate", "bound", "at-least"]


@dataclass(frozen=True, slots=True)
class Forecast:
    """What an action gives, as steps a second after over before: nine times in ten `low` to
    `high`."""

    speedup: float
    low: float
    high: float | None
    """None where nothing measured here bounds it: the remedy is another algorithm."""

    @property
    def kind(self) -> ForecastKind:
        """Of `speedup`: the middle of an interval, its upper end, or its lower one."""
        if self.high is None:
            return "at-least"
        return "bound" if self.high <= self.speedup and self.low <= 1.0 else "estimate"


@dataclass(frozen=True, slots=True)
class Finding:
    """One cause, as one rule sees it."""

    kind: Kind
    sub: str | None
    severity: Severity
    share: float | None
    """Part of the wall time of the window's steps that this cause holds, 0 to 1."""
    share_low: float | None
    """Lower end of its 90 % interval (batch means)."""
    share_high: float | None
    speedup: float | None
    """What removing it alone would give: steps a second after over before."""
    speedup_is: Literal["estimate", "bound"] | None
    headline: str
    """One clause for people: "waiting for data takes 57% of each step"."""
    evidence: tuple[Evidence, ...]
    advice: tuple[str, ...]
    """First actions, the first first, concrete for this run."""
    forecast: Forecast | None = None
    """What the first action gives, where that is less than removing the cause gives, or known in
    another way; else see `forecast.interval.forecast_of`."""
    goes_on: float = 1.0
    """How likely it goes on as it was, 0 to 1: below 1 of what came once or twice so far."""
    view: str = ""
    """Which of several judges of its kind found it, where they share a sub. Nothing shows it."""


@dataclass(frozen=True, slots=True)
class Note:
    """A setting that costs or could gain something, and is not what holds the run back."""

    text: str
    """What is set, and what to write instead."""
    cost: str | None
    """What it costs in this run as far as that was measured: "0.4 ms of each step"."""
    source: EvidenceSource
    urgent: bool = False
    """It is worth more than what holds the run back: it is on every view, below the headline."""
    gain: float | None = None
    """Steps a second after over before, where that is forecast."""


@dataclass(frozen=True, slots=True)
class Verdict:
    """What holds the run back now."""

    finding: Finding
    confidence: float
    """0 to 1."""
    since_step: int | None
    since_ns: int | None
    """When it became the verdict, of a stall when it began (monitor's perf_counter_ns)."""
    contributors: tuple[Finding, ...]
    """Other findings worth mentioning, the largest first; memory growth is among them."""
    missing: tuple[MissingSignal, ...]
    either: tuple[Kind, ...] = ()
    """Causes that hide each other with the finding's own: removing any one of them gives what is
    forecast, removing both hardly more."""
    notes: tuple[Note, ...] = ()
    """Settings worth changing; none of them is the verdict."""
