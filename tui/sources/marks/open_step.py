"""The step that is being built: nanoseconds by phase, and what was counted on the way."""

from typing import Final

from ...steps import Open, Step

DATA: Final = 0
STARTUP: Final = 1
FORWARD: Final = 2
BACKWARD: Final = 3
OPTIMIZER: Final = 4
OTHER: Final = 5
EVALUATION: Final = 6
CHECKPOINT: Final = 7
COMPILE: Final = 8
PHASE_NAMES: Final = (
    "data",
    "startup",
    "forward",
    "backward",
    "optimizer",
    "other",
    "evaluation",
    "checkpoint",
    "compile",
)
"""By number, in the order of `messages.Step`'s fields."""


class OpenStep:
    """Everything since the last step boundary. The phases partition it: their sum is its length."""

    __slots__ = ("backwards", "data_max_ns", "evaluation_data_ns", "evaluation_startup_ns",
                 "fetches", "ns", "optimized", "optimizer_steps", "phases", "ready", "samples",
                 "started_ns")  # fmt: skip

    def __init__(self, started_ns: int) -> None:
        self.started_ns = started_ns
        self.ns = [0] * len(PHASE_NAMES)
        self.phases: dict[str, int] = {}
        """User phases by name, ns."""
        self.fetches = 0
        self.backwards = 0
        self.optimizer_steps = 0
        self.samples: int | None = None
        self.ready: int | None = None
        self.data_max_ns = 0
        self.evaluation_startup_ns = 0
        self.evaluation_data_ns = 0
        self.optimized = False
        """An optimizer has stepped, so the next fetch is a new step's."""

    def fetched(self, waited_ns: int, samples: int | None) -> None:
        """A batch of so many samples came after that wait; None: nobody looked at its size."""
        self.fetches += 1
        self.data_max_ns = max(self.data_max_ns, waited_ns)
        if samples is not None:
            self.samples = (self.samples or 0) + samples

    def fetched_for_evaluation(self, fetches: int, samples: int) -> None:
        """So many of the batches turn out to be an evaluation's, whose time has moved."""
        self.fetches = max(0, self.fetches - fetches)
        self.samples = max(0, (self.samples or 0) - samples) or None
        self.data_max_ns = min(self.data_max_ns, self.ns[DATA])
        self.ready = None  # it was counted before the first of them

    def closed(self, number: int, count: int, end_ns: int, inference: bool) -> Step:
        """The completed step (`count` of them, where several could not be separated)."""
        data, startup, forward, backward, optimizer, other, evaluation, checkpoint, compiling = (
            self.ns
        )
        return Step(
            number,
            count,
            self.started_ns,
            end_ns,
            data,
            startup,
            forward,
            backward,
            optimizer,
            other,
            evaluation,
            checkpoint,
            compiling,
            self.phases,
            self.fetches,
            self.backwards,
            self.optimizer_steps,
            self.samples,
            self.ready,
            self.data_max_ns,
            inference,
            self.evaluation_startup_ns,
            self.evaluation_startup_ns if startup else 0,
            self.evaluation_data_ns,
        )

    def so_far(self, kind: int, since_ns: int, user_phase: str | None, evaluating: bool) -> Open:
        """The open step as a monitor sees it."""
        return Open(
            kind,
            since_ns,
            self.started_ns,
            self.ns[DATA] + self.ns[STARTUP],
            self.ns[FORWARD],
            self.ns[BACKWARD],
            self.ns[OPTIMIZER],
            self.ns[OTHER],
            self.ns[EVALUATION],
            self.ns[CHECKPOINT],
            self.ns[COMPILE],
            user_phase,
            evaluating,
        )
