"""What gpuwatch says on a recording, look by look."""

from pathlib import Path

from gpuwatch.tui.cli.replay import tell
from gpuwatch.tui.model.snapshot import Snapshot
from gpuwatch.tui.recording.reader import Recording
from gpuwatch.tui.verdict.findings import Verdict
from suite.catalogue import GROWTH
from suite.track import Judgement


class Listener:
    """A face that writes down each verdict once."""

    def __init__(self) -> None:
        self.looks: list[Judgement] = []
        self._last: Verdict | None = None

    def show(self, snapshot: Snapshot) -> None:
        """A picture; its verdict is another object whenever the engine was asked."""
        if snapshot.verdict is not self._last:
            self._last = snapshot.verdict
            steps = snapshot.steps.total if snapshot.steps else 0
            self.looks.append(look_of(snapshot.verdict, snapshot.attached_s, steps))

    def last(self, snapshot: Snapshot) -> None:
        """The last picture."""
        self.show(snapshot)


def said_on(file: Path) -> list[Judgement]:
    """All verdicts of a replay."""
    listener = Listener()
    tell(Recording(file), listener, None)
    return listener.looks


def look_of(verdict: Verdict, at_s: float, step: int) -> Judgement:
    """A verdict of ours, in the words of the suite."""
    finding = verdict.finding
    return Judgement(
        at_s=at_s,
        step=step,
        kind=finding.kind,
        sub=finding.sub,
        asks=finding.severity != "info",
        confidence=verdict.confidence,
        share=finding.share,
        speedup=finding.speedup,
        speedup_is=finding.speedup_is,
        contributors=tuple(other.kind for other in verdict.contributors),
        leak=any(
            found.kind == GROWTH and found.sub == "leak"
            for found in (finding, *verdict.contributors)
        ),
        advice=finding.advice[0] if finding.advice else None,
    )
