"""What to do where the system refuses: root is not told to become root."""

import pytest

from gpuwatch.tui.discovery import access


def test_root_is_told_of_the_container_and_others_of_sudo(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("os.geteuid", lambda: 0)
    assert "sudo" not in access.with_rights("gpuwatch attach 1")
    assert "--cap-add=SYS_PTRACE" in access.with_rights("gpuwatch attach 1")
    assert access.refused_because("Its owner alone.") == "The system refuses it to root too."
    monkeypatch.setattr("os.geteuid", lambda: 1000)
    assert access.with_rights("gpuwatch attach 1") == "Try: sudo $(which gpuwatch) attach 1"
    assert access.refused_because("Its owner alone.") == "Its owner alone."
