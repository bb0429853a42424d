"""What to do where the system refuses: root is not advised to become root."""

import pytest

from gpuwatch.tui.discovery import state_page


def test_root_is_advised_of_the_container_and_others_of_sudo(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("os.geteuid", lambda: 0)
    assert "sudo" not in state_page.with_rights("gpuwatch attach 1")
    assert "--cap-add=SYS_PTRACE" in state_page.with_rights("gpuwatch attach 1")
    assert state_page.refused_because("Its owner alone.") == "The system refuses it to root too."
    monkeypatch.setattr("os.geteuid", lambda: 1000)
    assert state_page.with_rights("gpuwatch attach 1") == "Try: sudo $(which gpuwatch) attach 1"
    assert state_page.refused_because("Its owner alone.") == "Its owner alone."
