"""A job over two nodes: one screen, one verdict, the late one named; a node's link cut and back."""

import json
import os
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

import pytest

from tests.integration.rank_processes import DDP_RANK
from tests.processes.command_line import gpuwatch, started
from tests.processes.monitored import until
from tests.processes.pseudo_terminal import PseudoTerminal
from tests.remote.nodes import Cluster, cluster, meeting
from tests.remote.servers import free_port

LATE = "late = 0.04 if dist.get_rank() == 1 else 0.0"
assert LATE in DDP_RANK
CUT_S = 20.0
Record = dict[str, Any]


@pytest.fixture(scope="module")
def nodes(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    """Both."""
    with cluster(tmp_path_factory.mktemp("nodes")) as found:
        yield found


@contextmanager
def job(nodes: Cluster, folder: Path, of_nodes: tuple[int, ...], late: str) -> Iterator[list[int]]:
    """Gloo ranks in the order of their nodes; yields their pids there. `late`: an expression over
    the rank, in seconds a sample."""
    script = folder / "train.py"
    script.write_text(DDP_RANK.replace(LATE, f"rank = dist.get_rank()\nlate = {late}"))
    meet = meeting(nodes, free_port())
    with ExitStack() as stack:
        pids = []
        for rank, node in enumerate(of_nodes):
            local = of_nodes[:rank].count(node)
            environment = {
                **meet,
                "RANK": str(rank),
                "LOCAL_RANK": str(local),
                "WORLD_SIZE": str(len(of_nodes)),
                "LOCAL_WORLD_SIZE": str(of_nodes.count(node)),
                "GLOO_SOCKET_IFNAME": f"{nodes.name}x{node}",
            }
            process = stack.enter_context(nodes.running(node, script, environment))
            assert process.stdout is not None
            pids.append(int(process.stdout.readline()))
        yield pids


def watched(nodes: Cluster, pid: int, until_line: Callable[[Record], bool]) -> Record:
    """The first line of `--json` of which this is true."""
    words = ("attach", f"node1:{pid}", "--hosts", "node1,node2", "--json")
    end_s = time.monotonic() + 50
    with started(*words, GPUWATCH_SSH=nodes.ssh) as monitor:
        assert monitor.stdout is not None
        while text := monitor.stdout.readline():
            line: Record = json.loads(text)
            if until_line(line) or time.monotonic() > end_s:
                return line
        assert monitor.stderr is not None
        raise AssertionError(monitor.stderr.read())


def is_named(line: Record) -> bool:
    """The job has a late rank by its collectives."""
    found = line["job"]
    return bool(found and found["collectives"] and found["verdict"]["kind"] == "straggler")


def until_written(terminal: PseudoTerminal, pattern: str) -> None:
    """Until a screen has it, since its output was last forgotten."""
    terminal.read_until(lambda: terminal.matches(pattern), seconds=30)


def probed(nodes: Cluster, ranks: int) -> None:
    """Until every rank has a probe."""

    def there() -> bool:
        counts = [
            gpuwatch("ls", f"node{node}", "--json", GPUWATCH_SSH=nodes.ssh).stdout.count('"rank"')
            for node in (1, 2)
        ]
        return sum(counts) >= ranks

    until(there)


@pytest.mark.slow
@pytest.mark.timeout(150)
def test_a_late_rank_on_the_other_node_is_named(nodes: Cluster, tmp_path: Path) -> None:
    with job(nodes, tmp_path, (1, 2), "0.04 if rank == 1 else 0.0") as pids:
        probed(nodes, 2)
        line = watched(nodes, pids[0], is_named)
    assert line["job"]["late_rank"] == 1
    assert line["job"]["verdict"]["sub"] == "data"
    assert "rank 1 (node2) waits for its loader" in line["job"]["verdict"]["headline"]
    assert [(one["rank"], one["host"]) for one in line["ranks"]] == [(0, None), (1, "node2")]


@pytest.mark.slow
@pytest.mark.timeout(150)
def test_a_key_shows_a_rank_of_the_other_node_with_its_own_verdict(
    nodes: Cluster, tmp_path: Path
) -> None:
    with job(nodes, tmp_path, (1, 2, 2), "0.04 if rank == 1 else 0.0") as pids:
        probed(nodes, 3)
        words = ("attach", f"node1:{pids[0]}", "--hosts", "node1,node2")
        environ = {"GPUWATCH_SSH": nodes.ssh}
        with PseudoTerminal(
            "gpuwatch.tui.cli.main", *words, size=(120, 40), environ=environ
        ) as terminal:
            until_written(terminal, rf"pid {pids[0]} on node1 .*[^f] 3 ranks")
            for key, rank, node in (b">", 1, 2), (b">", 2, 2), (b">", 0, 1), (b"<", 2, 2):
                terminal.output = b""
                os.write(terminal.master, key)
                until_written(terminal, f"pid {pids[rank]} on node{node} .*rank {rank}/3")
                if rank == 1:  # its own: the others' is that they wait for it
                    until_written(terminal, "INPUT-BOUND")
                until_written(terminal, "[^f] 3 ranks")
            os.write(terminal.master, b"q")
            assert terminal.wait() == 0


@pytest.mark.slow
@pytest.mark.timeout(150)
def test_a_node_whose_ranks_all_come_late_is_named(nodes: Cluster, tmp_path: Path) -> None:
    with job(nodes, tmp_path, (1, 1, 2, 2), "0.06 if rank >= 2 else 0.0") as pids:
        probed(nodes, 4)
        line = watched(nodes, pids[0], is_named)
    assert line["job"]["late_node"] == "node2", line["job"]
    assert line["job"]["verdict"]["headline"].startswith("node node2 waits for its loader")
    assert line["job"]["verdict"]["sub"] == "data"


@pytest.mark.slow
@pytest.mark.timeout(150)
def test_a_node_whose_link_is_cut_is_shown_and_comes_back(nodes: Cluster, tmp_path: Path) -> None:
    states: list[str] = []
    cut_s: float | None = None
    healed_s: float | None = None

    def seen(line: Record) -> bool:
        nonlocal cut_s, healed_s
        now_s = time.monotonic()
        ranks = line["ranks"] or []
        states.extend(one["state"] for one in ranks if one["rank"] == 1)
        if cut_s is None and len(ranks) == 2 and ranks[1]["steps"] > 20:
            cut_s = now_s
            nodes.cut(2, True)
        if cut_s is not None and healed_s is None and now_s - cut_s > CUT_S:
            healed_s = now_s
            nodes.cut(2, False)
        return healed_s is not None and states[-1] == "live"

    with job(nodes, tmp_path, (1, 2), "0.01") as pids:
        probed(nodes, 2)
        line = watched(nodes, pids[0], seen)
    assert "no link" in states
    assert states[-1] == "live"
    assert line["status"]["link"]["lost_s"] is None  # the first node's was never lost
    assert line["ranks"][1]["steps"] > 100
