"""A job on the command line: by its ranks, or by one of them and its hosts."""

import argparse
from pathlib import Path

import pytest

from gpuwatch.tui.cli.job import HERE, HostNamed, JobNamed, job_named
from gpuwatch.tui.cli.main import parser
from gpuwatch.tui.cli.remote import with_via
from gpuwatch.tui.errors import UsageError
from gpuwatch.tui.remote.places import Place

N1, N2 = Place("node1"), Place("node2")


def named(*words: str) -> JobNamed | None:
    """As `gpuwatch attach` takes these words."""
    arguments: argparse.Namespace = parser().parse_args(["attach", *words])
    return job_named(arguments, with_via(arguments.pid, arguments.via))


def test_ranks_of_several_hosts() -> None:
    found = named("--job", "node1:7", "node2:9", "--json")
    assert found == JobNamed(HostNamed(N1, (7,)), (HostNamed(N2, (9,)),))


def test_hosts_beside_one_rank_are_the_same() -> None:
    found = named("node1:7", "--hosts", "node1,node2")
    assert found == JobNamed(HostNamed(N1, (7,)), (HostNamed(N2),))
    assert named("--job", "node1:7", "--hosts", "node2") == found


def test_a_rank_of_this_machine_and_hosts_of_a_file(tmp_path: Path) -> None:
    file = tmp_path / "hosts"
    file.write_text("node2 slots=8\n")
    found = named("--job", "7", "node1:9", "--hostfile", str(file))
    assert found == JobNamed(HostNamed(HERE, (7,)), (HostNamed(N1, (9,)), HostNamed(N2)))


def test_several_ranks_of_a_host_share_an_agent() -> None:
    found = named("--job", "node1:7", "node1:8", "node2:9", "node2:7")
    assert found == JobNamed(HostNamed(N1, (7, 8)), (HostNamed(N2, (9, 7)),))


def test_the_job_may_name_its_hosts() -> None:
    assert named("7", "--hosts", "auto") == JobNamed(HostNamed(HERE, (7,)), (), asks_job=True)


def test_one_process_is_no_job() -> None:
    assert named("node1:7") is None


@pytest.mark.parametrize(
    ("words", "shown"),
    [
        (["7", "--job", "node1:7"], "names the processes itself"),
        (["--via", "sh -c", "--job", "7"], "names the processes itself"),
        (["--job", "node1:", "node2:7"], "which process?"),
        (["--hosts", "node1"], "which process?"),
        (["7", "--hosts", ""], "names no host"),
        (["7", "--hosts", "node[5-3]"], "names no hosts"),
    ],
)
def test_words_that_name_no_job(words: list[str], shown: str) -> None:
    with pytest.raises(UsageError, match=shown.replace("?", r"\?")):
        named(*words)
