"""What is shown of a process before all that looks at it is loaded."""

from dataclasses import dataclass

from gpuwatch.tui.errors import NoProcessError
from gpuwatch.tui.model.snapshot import unseen
from gpuwatch.tui.session.live import AwaitedPicture
from tests.tui.fake_run import FakeRun

FIRST = unseen(48213, "train.py", 0, 1.8e9)


@dataclass
class Recorded(FakeRun):
    """Says when somebody wants it recorded."""

    def toggle_recording(self) -> None:
        self.news = "recording to run.gpuwatch"


def test_the_real_one_comes_with_the_frame_after_the_start_and_its_news_are_heard() -> None:
    run = Recorded()
    awaited = AwaitedPicture(FIRST, lambda: run)
    awaited.toggle_recording()
    assert (awaited.snapshot(), awaited.news) == (FIRST, "")
    awaited.start()
    assert (run.started, awaited.news) == (0, "")
    assert awaited.snapshot() == run.snapshot()
    awaited.toggle_recording()
    assert awaited.news == "recording to run.gpuwatch"
    awaited.close()
    assert (run.started, run.closed) == (1, 1)


def test_a_process_that_has_gone_meanwhile_is_shown_as_gone() -> None:
    def make() -> Recorded:
        raise NoProcessError("no process 48213")

    awaited = AwaitedPicture(FIRST, make)
    awaited.start()
    shown = awaited.snapshot()
    assert shown.status.state == "ended"
    assert awaited.snapshot() == shown, "and is not tried again"
    assert awaited.news == ""
    awaited.close()
