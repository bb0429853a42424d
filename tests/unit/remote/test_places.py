"""What a person names: processes here, processes there, nothing that ssh takes for an option."""

import subprocess

import pytest

from gpuwatch.tui.errors import UsageError
from gpuwatch.tui.remote.places import Place, Target, search, target_of


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
