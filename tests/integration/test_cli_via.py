"""A link through a command that stands for ssh."""

from pathlib import Path

from tests.processes.command_line import gpuwatch, toy


def test_the_verdict_through_a_shell(tmp_path: Path) -> None:
    with toy(tmp_path) as target:
        done = gpuwatch("attach", "--via", "sh -c", str(target.pid), "--once")
    assert done.returncode == 0, done.stderr
    assert "HOST-BOUND" in done.stdout
