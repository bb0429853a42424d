"""`gpuwatch export`: on real processes, read as Prometheus does."""

import re
import subprocess
import time
import urllib.error
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import pytest

from tests.integration.rank_processes import DDP_RANK, free_port, launched
from tests.processes.command_line import gpuwatch, started, toy

LIMIT_S = 40.0


@dataclass
class Exporter:
    """One that runs, and where it is read."""

    process: "subprocess.Popen[str]"
    url: str

    def page(self) -> list[str]:
        """The samples. Where it has ended, what it wrote is what fails the test."""
        try:
            with urllib.request.urlopen(self.url, timeout=10) as answer:
                lines = answer.read().decode().splitlines()
        except urllib.error.URLError:
            if self.process.poll() is not None:
                pytest.fail(f"it ended with {self.process.returncode}: {self._wrote()}")
            raise
        return [line for line in lines if not line.startswith("#")]

    def _wrote(self) -> str:
        assert self.process.stderr is not None
        return self.process.stderr.read()

    def until(self, *patterns: str) -> list[str]:
        """The page, once every pattern is found in some sample."""
        deadline = time.monotonic() + LIMIT_S
        while True:
            page = self.page()
            found = [any(re.search(pattern, line) for line in page) for pattern in patterns]
            if all(found):
                return page
            assert time.monotonic() < deadline, "\n".join(page)
            time.sleep(0.1)


@contextmanager
def exporting(*arguments: str) -> Iterator[Exporter]:
    """On a port that the kernel chooses."""
    with started("export", *arguments, "--prometheus", "0") as process:
        assert process.stderr is not None
        line = process.stderr.readline()
        assert "metrics at http://127.0.0.1:" in line
        yield Exporter(process, line.split()[-1])


def test_a_process_its_verdict_and_its_end(tmp_path: Path) -> None:
    with toy(tmp_path) as target, exporting(str(target.pid)) as exporter:
        labels = rf'run="toy.py",rank="0",hostname="[^"]+",pid="{target.pid}"'
        page = exporter.until(
            rf"^gpuwatch_target_up{{{labels}}} 1$",
            rf'^gpuwatch_verdict_info{{{labels},kind="host",sub="[^"]*",severity="critical"}} 1$',
            rf'^gpuwatch_phase_ratio{{{labels},phase="load",clock="host"}} 0\.[678]',
            rf"^gpuwatch_step_seconds_count{{{labels}}} [1-9]",
        )
        assert len(page) < 100, "series of one rank and of the exporter"
        target.kill()
        target.wait()
        exporter.until(rf'^gpuwatch_target_state{{{labels},state="ended"}} 1$')
        assert not any("verdict" in line for line in exporter.page())


@pytest.mark.slow
def test_all_ranks_of_a_job_from_one_of_them(tmp_path: Path) -> None:
    with (
        launched(tmp_path, 2, 2, free_port(), DDP_RANK) as job,
        exporting(str(job.pids[0]), "--run", "mine", "--no-stacks") as exporter,
    ):
        exporter.until(
            rf'target_up{{run="mine",rank="0",.*pid="{job.pids[0]}"}} 1',
            rf'target_up{{run="mine",rank="1",.*pid="{job.pids[1]}"}} 1',
            r'job_verdict_info{run="mine",rank="0",.*kind="straggler",.*late_rank="1"} 1',
            r'late_ratio{run="mine",rank="1",',
            r'communication_ratio{run="mine",rank="0",.*part="waiting"}',
        )


def test_every_process_of_the_host_that_comes(tmp_path: Path) -> None:
    with exporting("--no-stacks") as exporter, toy(tmp_path) as target:
        exporter.until(rf'target_up{{.*pid="{target.pid}"}} 1')


@pytest.mark.parametrize(
    ("arguments", "output"),
    [
        ((), "export to where?"),
        (("--prometheus", "0.0.0.0:9479"), "needs --tls-cert FILE, --tls-key FILE, --token-file"),
        (("--token-file", "x"), "belong to --prometheus"),
        (("--otlp", "localhost:4318"), "no URL of a collector"),
    ],
)
def test_what_cannot_be_is_refused_before_anything_is_watched(
    arguments: tuple[str, ...], output: str
) -> None:
    done = gpuwatch("export", *arguments)
    assert done.returncode == 2
    assert output in done.stderr
    assert len(done.stderr.splitlines()) <= 3


def test_a_process_that_is_not_there() -> None:
    done = gpuwatch("export", "2147483646", "--prometheus", "0")
    assert done.returncode == 3
    assert "no process 2147483646" in done.stderr
