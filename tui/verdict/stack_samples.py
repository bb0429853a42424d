"""What stack samples of a run show: places in the code, and how much of the time each holds."""

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from typing import Literal

from .frameworks import Framework
from .statistics import Share, independent, of_samples

StackPhase = Literal[
    "data",
    "forward",
    "backward",
    "optimizer",
    "synchronisation",
    "waiting",
    "checkpoint",
    "evaluation",
    "compile",
    "starting",
    "other",
]
"""What the main thread does, by its stack."""


@dataclass(frozen=True, slots=True)
class FrameShare:
    """How much of a role's samples a place in the code holds."""

    share: float
    """0 to 1 of the role's samples."""
    frame: str
    """"function (file:line)", the innermost frame worth naming."""
    caller: str | None
    """The innermost frame of the user's own code above it; in the loader's stacks, below it."""
    line: str = ""
    """Text of that innermost line of the user's own code, where it could be read."""
    phase: StackPhase | None = None
    """Of the main thread's; None where it was not looked for."""
    samples: int = 0
    """Of the role, all together: what `share` is a part of. 0: not counted."""
    at: int = 0
    """Bits of the moments at which the main thread was there, as in `Stacks.taken`."""
    ends_workers: bool = False
    """The loader ends its workers there."""
    in_net: bool = False
    copies: bool = False
    """Below a call of a module, and below a function that takes a batch to the GPU."""
    evaluation: str = ""
    """In an evaluation the frame of the user's function that evaluates."""
    acts: bool | None = None
    """In an evaluation an environment is at work there, or answers what the net says there; None
    where neither the stack nor its source tells…"""
    feeds: bool = False
    """…and a training learns from what is asked there."""
    one_row: str = ""
    """In an evaluation the frame that asks the net for one state, and reads one number of its
    answer."""
    asked: str = ""
    """The frame that asks, in each step, a net which does not learn there: a frozen encoder…"""
    fixed: bool = False
    """…which nothing updates by its source, though nets of its class may learn elsewhere…"""
    redrawn: bool = False
    """…or which is asked about what is drawn anew each time."""
    beside: bool = False
    """By the source it is done when a step has made its update, and no training learns from it."""
    library: str = ""
    """Below a net, the folder of the library that has written it or layers of it, but PyTorch."""
    idle: bool = False
    """By the GPU's clock nothing is waited for there, whatever the line reads."""
    computes: bool = False
    """By its text the innermost line computes tensors."""
    in_parts: str = ""
    """The frame of the user's whose loop calls the net for parts of a batch one after the other…"""
    in_turns: str = ""
    """…or computes tensors of them and calls no net."""
    unpacked: bool = False
    """Below a net, and the user's source on the way packs no texts."""
    padded_again: bool = False
    """On texts that were packed for a layer, and are padded again behind it."""
    chooses: bool = False
    """In a loop that chooses from what the net says, as what its next turn begins with."""
    makes: bool = False
    """It makes a tensor of Python's numbers, which takes longer than the copy in the same line."""
    by_position: bool = False
    """In a layer whose time goes with the positions of a text: recurrent, attention, Conv1d."""
    anew: str = ""
    """A parametrized weight is computed there: the frame of the net's loop that does so in each
    turn."""
    pairs: bool | None = None
    """By its source it sums distances of all differences between two sets, or makes those for it;
    None where that was not read."""


@dataclass(frozen=True, slots=True)
class Stacks:
    """Samples over the window, by role."""

    main_samples: int
    main: tuple[FrameShare, ...]
    worker_samples: int
    workers: tuple[FrameShare, ...]
    worker_idle_share: float | None
    """Part of the workers' samples that wait for work (index queue)."""
    main_unplaced: float = 1.0
    """Part of the main thread's samples in the user's own Python or torch calls, outside the net,
    the loss, the backward and the update: it may make batches. All of it without phases."""
    starting: int = 0
    """Further samples of the main thread, while it imported."""
    threads: tuple[FrameShare, ...] = ()
    main_waits: float = 0.0
    """Where other threads of its process were that did not wait in a queue or a lock of Python's,
    and how often the main thread waited so: parts of the main thread's samples."""
    framework: Framework | None = None
    """Whose loop trains, where that is a library's."""
    loop_of: str = ""
    """The folder of any library whose loop trains."""
    workers_starting: int = 0
    """Further samples of its child processes, in no loader's loop: workers that begin are not in it
    yet."""
    streams: bool = False
    """The training thread, or a worker, makes batches of an iterable dataset."""
    taken: int = 0
    """Bits of the moments at which the main thread was sampled, the oldest lowest; where some time
    lies between two of them, so does a bit that is not set. 0 where the moments are not known."""

    def seen(self, places: Collection[FrameShare]) -> Share:
        """The part of the main thread's samples in these, with its 90 % interval."""
        part, at = 0.0, 0
        for place in places:
            part, at = part + place.share, at | place.at
        worth = float(self.main_samples)
        if self.taken.bit_count() == self.main_samples:
            worth = independent(at, self.taken)
        return of_samples(part, worth)


@dataclass(frozen=True, slots=True)
class WorkersAt:
    """Loader workers that were last seen at one place."""

    pids: tuple[int, ...]
    way: tuple[str, ...]
    """How they came there, outermost first; its last frame is where they are."""
    wait_for_work: bool
    """They have no batch to make."""


@dataclass(frozen=True, slots=True)
class Still:
    """The main thread's stack does not move."""

    age_s: float
    """Since the oldest of the samples in a row that show it there."""
    phase: str
    """As in `Sampled.shares`."""
    frame: str
    stack: tuple[str, ...]
    """The way there, outermost first."""
    thread_cpu: float | None
    """Part of that time in which the thread ran, 0 to 1."""
    beside_cores: float | None
    """Cores that the rest of its process tree used."""
    gpu_busy: float | None
    """Percent."""
    workers: tuple[WorkersAt, ...] = ()
    at_prompt: bool = False
    """These two as in `OpenStep`."""
    trains: bool = True
    """A backward was seen, be it long ago."""


@dataclass(frozen=True, slots=True)
class Sampled:
    """A run without a probe, by samples of its main thread's stack: no step of it is seen."""

    samples: int
    """Of the training; those of its start are left out."""
    shares: Mapping[str, Share]
    """By what the thread did (`stack_phases.table.PHASES`); each with its 90 % interval."""
    serial: float
    """Part of the samples in which it made a batch itself."""
    loading: tuple[FrameShare, ...]
    """Where it was in those that wait for data, or make it; shares are of all samples."""
    host: tuple[FrameShare, ...]
    """Where it was in those between the phases; likewise."""
    period_ns: float | None
    """Estimate of a step; None where steps are too short, or not alike."""
    still: Still | None
    waiting: tuple[FrameShare, ...] = ()
    """Where it was in those that wait for another thread, process or rank; likewise."""

    def share(self, phase: str) -> Share:
        """Of one phase."""
        return self.shares[phase]
