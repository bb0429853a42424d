"""What the doctor reads: from a kernel that was made up, and from this one."""

import os
from pathlib import Path

import pytest

from gpuwatch.tui.sources.surroundings import facts_of, ptrace_fact
from gpuwatch.tui.terminal import takes_clipboard


def proc_of(folder: Path, scope: str | None, effective: str) -> Path:
    """A /proc that says this of looking into processes."""
    (folder / "self").mkdir()
    (folder / "self" / "status").write_text(f"Name:\tx\nCapEff:\t{effective}\n")
    if scope is not None:
        yama = folder / "sys" / "kernel" / "yama"
        yama.mkdir(parents=True)
        (yama / "ptrace_scope").write_text(f"{scope}\n")
    return folder


@pytest.mark.parametrize(
    ("scope", "effective", "reported"),
    [
        (None, "0000000000000000", (None, False)),
        ("1", "0000000000000000", (1, False)),
        ("1", "0000000000080000", (1, True)),
        ("2", "000001ffffffffff", (2, True)),
        ("?", "00000000a80425fb", (None, False)),  # what Docker leaves
    ],
)
def test_ptrace(
    scope: str | None, effective: str, reported: tuple[int | None, bool], tmp_path: Path
) -> None:
    fact = ptrace_fact(proc_of(tmp_path, scope, effective))
    assert (fact.scope, fact.capable) == reported


def test_a_pod_is_a_container(tmp_path: Path) -> None:
    proc = proc_of(tmp_path, None, "0")
    (proc / "1").mkdir()
    (proc / "1" / "cgroup").write_text("0::/kubepods/burstable/pod1\n")
    assert ptrace_fact(proc).in_container


def test_this_machine() -> None:
    facts = facts_of(os.getpid())
    assert 0 < facts.cores.allowed <= facts.cores.machine
    assert 0 < facts.memory.available <= facts.memory.total <= facts.memory.machine
    assert bool(facts.driver.gpus) is not bool(facts.driver.fault)
    assert Path(facts.py_spy).name == "py-spy"
    assert next(name for name, _ in facts.versions) == "python"
    assert dict(facts.versions)["gpuwatch"] != "not installed"


@pytest.mark.parametrize(
    ("environ", "takes"),
    [
        ({"TERM": "xterm-256color"}, True),
        ({"TERM": "tmux-256color", "TMUX": "/tmp/tmux"}, True),
        ({"TERM": "linux"}, False),
        ({"TERM": "screen", "STY": "1.pts"}, False),
        ({"TERM": "xterm-256color", "TERM_PROGRAM": "Apple_Terminal"}, False),
    ],
)
def test_clipboards(environ: dict[str, str], takes: bool) -> None:
    assert takes_clipboard(environ) is takes
