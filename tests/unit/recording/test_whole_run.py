"""What is read of a whole recording: every step once."""

from pathlib import Path

from gpuwatch.tui.recording.whole_run import read_whole
from tests.unit.recording.a_run import START
from tests.unit.recording.files import opened, recorded
from tests.unit.session.making import MS, delivered, steps
from tests.unit.verdict.on_gpu import gpu_step

START_MS = START / MS


def test_steps_that_came_twice_count_once_and_those_of_a_second_install_all(tmp_path: Path) -> None:
    """In a notebook each cell may install the probe and take it out again: numbers begin anew."""
    first = steps(100, start_ms=START_MS, forward_ms=10)
    second = steps(50, start_ms=START_MS + 3_000, forward_ms=30)
    seen = [
        delivered(made, at_ms, gpu_steps=[gpu_step(one) for one in made])
        for at_ms, made in (
            (START_MS + 1_001, first),
            (START_MS + 1_500, first[20:]),  # a monitor that connected again
            (START_MS + 5_000, second),
            (START_MS + 5_500, second),
        )
    ]
    recording = opened(tmp_path, recorded(seen))
    run = read_whole(recording)
    recording.close()
    assert [step.start_ns for step in run.steps] == [one.start_ns for one in (*first, *second)]
    assert [row.start_ns for row in run.gpu_steps] == [one.start_ns for one in (*first, *second)]
