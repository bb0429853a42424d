"""What the training thread does now: the newer of the probe's message and its state page.

The page's last mark is one word, a quarter of a second old at most, and it can be read when no
message comes any more: the process is held up in one call, or has been killed. The message knows
more.
"""

from ...probe.wire import marks
from ...probe.wire.page import STATE_DISARMED, STATE_UNINSTALLED
from ..model.observations import PageSeen
from ..steps import OPEN_PHASE, Batch, Open
from ..verdict.stack_samples import WorkersAt
from ..verdict.window import OpenStep, SeenBy
from .cpu_activity import PhaseSpan

WAITING = frozenset({marks.FETCH_ENTER, marks.ITERATION, marks.LOADER})
"""Last marks after which the training thread waits for a batch."""
FRAME_AGE_NS = 5_000_000_000
"""Stacks come in chunks of seconds: those of a younger mark show what was before it."""
HELD_UP_NS = 1_000_000_000
"""A probe that writes four times a second and is silent for so long cannot: what holds it up goes
on. Within that time hundreds of short steps may have ended of which nobody knows yet."""
NOT_MARKING = frozenset({STATE_DISARMED, STATE_UNINSTALLED})
"""States in which the last mark means nothing any more: the run goes on without us."""


class OpenStepStore:
    """What is known of the open step."""

    def __init__(self) -> None:
        self._open: Open | None = None
        self._sent_ns = 0
        self._steps = 0
        """Steps done when the message was sent."""
        self._page: PageSeen | None = None
        self.is_notebook = False

    def delivered(self, batch: Batch, steps: int) -> None:
        """A message came; `steps` are done by now."""
        self._open = batch.open
        self._sent_ns = batch.sent_ns
        self._steps = steps

    def page_seen(self, page: PageSeen) -> None:
        """The page was read."""
        self._page = page

    @property
    def marked_ns(self) -> int | None:
        """When the newest mark was made that is known."""
        mark = self._last_mark()
        return None if mark is None else mark[1]

    def at(
        self,
        now_ns: int,
        frame: str | None,
        stack: tuple[str, ...] = (),
        seen_by: SeenBy = "py-spy",
        workers: tuple[WorkersAt, ...] = (),
        at_prompt: bool | None = None,
    ) -> OpenStep | None:
        """The open step at a moment; None before the first mark."""
        mark = self._last_mark()
        if mark is None:
            return None
        kind, since_ns = mark
        message = self._open
        recent = now_ns - self._sent_ns <= HELD_UP_NS
        if kind == marks.PHASE_ENTER and message and message.kind and recent:
            # The page has no names: where it is ahead, what the message knew stands until the next.
            kind, since_ns = message.kind, message.since_ns
        evaluating = message is not None and message.evaluating
        phase = OPEN_PHASE.get(kind, "other")
        if (
            kind == marks.PHASE_ENTER
            and message
            and message.since_ns == since_ns
            and message.user_phase
        ):
            phase = message.user_phase
        elif evaluating and phase in ("data", "forward", "other"):
            phase = "evaluation"
        started_ns = self._started_ns()
        return OpenStep(
            phase=phase,
            age_s=max(0, now_ns - since_ns) / 1e9,
            step_age_s=max(0, now_ns - started_ns) / 1e9 if started_ns else None,
            step_lasted_s=max(0, self._known_ns() - started_ns) / 1e9 if started_ns else None,
            evaluating=evaluating,
            evaluated_s=self._evaluated_ns(phase, since_ns) / 1e9,
            frame=frame if now_ns - since_ns >= FRAME_AGE_NS else None,
            stack=stack if now_ns - since_ns >= FRAME_AGE_NS else (),
            seen_by=seen_by,
            workers=workers if now_ns - since_ns >= FRAME_AGE_NS else (),
            at_prompt=self.is_notebook if at_prompt is None else at_prompt,
        )

    def spans(self, now_ns: int) -> tuple[PhaseSpan, ...]:
        """The waits and the work of the open step, as far as they are known."""
        message, mark = self._open, self._last_mark()
        if message is None or mark is None or not message.started_ns:
            return ()
        kind, since_ns = mark
        waits = kind in WAITING and not message.evaluating
        known_ns = message.since_ns
        middle_ns = min(known_ns, message.started_ns + message.data_ns)
        spans = [(message.started_ns, middle_ns, 0.0), (middle_ns, known_ns, 1.0)]
        if since_ns == message.since_ns or since_ns > self._sent_ns:
            # What lies between the message's mark and a newer one on the page is not known yet.
            spans.append((since_ns, self._lasts_until(now_ns), 0.0 if waits else 1.0))
        return tuple(span for span in spans if span[0] < span[1])

    def _evaluated_ns(self, phase: str, since_ns: int) -> int:
        """Of the open step, with what goes on since the last mark."""
        message = self._open
        if message is None or not self._started_ns():
            return 0
        going_on_ns = max(0, self._known_ns() - since_ns) if phase == "evaluation" else 0
        return message.evaluation_ns + going_on_ns

    def _last_mark(self) -> tuple[int, int] | None:
        """Kind and time of the newest mark that is known."""
        message, page = self._open, self._page
        if page is not None and page.state in NOT_MARKING:
            return None
        seen = [(message.since_ns, message.kind)] if message and message.kind else []
        if page is not None and page.open_kind:
            seen.append((page.open_since_ns, page.open_kind))
        if not seen:
            return None
        # The page of an older probe may show that a device's event stands behind the same mark.
        since_ns, _, kind = max((since_ns, kind != marks.STAMPED, kind) for since_ns, kind in seen)
        return kind, since_ns

    def _lasts_until(self, now_ns: int) -> int:
        """Until when what the last mark began went on: as the probe has said, and on and on once
        it says nothing more."""
        page_ns = 0 if self._page is None else self._page.heartbeat_ns
        known_ns = max(self._sent_ns, page_ns)
        return now_ns if now_ns - known_ns > HELD_UP_NS else min(now_ns, known_ns)

    def _known_ns(self) -> int:
        """Until when the open step is known to be the same."""
        return max(self._sent_ns, 0 if self._page is None else self._page.t_ns)

    def _started_ns(self) -> int:
        """Start of the open step; 0 when the message that would say it has not come."""
        message, page = self._open, self._page
        if message is None or (page is not None and page.steps > self._steps):
            return 0
        return message.started_ns
