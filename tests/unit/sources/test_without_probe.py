"""A process without a probe: what is reported of that, and when."""

import gc
import os
from pathlib import Path

import pytest
import zmq

from gpuwatch.probe.identity import Identity
from gpuwatch.probe.state_page import StatePage
from gpuwatch.probe.wire import page
from gpuwatch.tui.discovery.state_page import pages_of
from gpuwatch.tui.discovery.targets import own_page
from gpuwatch.tui.model.observations import AnyObservation, Greeted, Missing, PageSeen
from gpuwatch.tui.sources import without_probe
from gpuwatch.tui.sources.without_probe import TORCH_NS, PageSource, WithoutProbe

S = 1_000_000_000
NOBODY = 2**22 + 1
"""No process has this pid."""
LIMIT_MS = 10_000


@pytest.fixture(autouse=True)
def no_page_of_other_tests() -> None:
    """Probes of earlier tests lie in cycles: until these are collected their pages are of this
    process, and found for the one that a test has made."""
    gc.collect()


def source(folder: Path, maps: str, python: tuple[int, int] | None = (3, 11)) -> WithoutProbe:
    (folder / str(NOBODY)).mkdir()
    (folder / str(NOBODY) / "maps").write_text(maps)
    made = WithoutProbe(NOBODY, python, folder)
    made.open()
    return made


def missing(seen: list[AnyObservation]) -> dict[str, Missing]:
    return {one.source: one for one in seen if isinstance(one, Missing)}


def test_it_shows_once_what_a_probe_would_add_and_how(tmp_path: Path) -> None:
    made = source(tmp_path, "/usr/lib/libtorch_cpu.so")
    reported = missing(made.poll(0))["probe"]
    assert "step times" in reported.reason
    assert "probe.install()" in reported.fix
    assert "gpuwatch run" in reported.fix
    assert made.poll(S) == []


def test_a_python_that_can_take_one_is_shown_how(tmp_path: Path) -> None:
    made = source(tmp_path, "/usr/lib/libtorch_cpu.so", (3, 14))
    fix = missing(made.poll(0))["probe"].fix
    assert fix.startswith(f"gpuwatch attach --inject {NOBODY}, or ")
    assert "gpuwatch run" in fix


def test_torch_may_come_late(tmp_path: Path) -> None:
    made = source(tmp_path, "/usr/bin/python3.11")
    assert "torch" not in missing(made.poll(0))
    assert "no torch loaded" in missing(made.poll(TORCH_NS))["torch"].reason
    assert made.poll(2 * TORCH_NS) == []
    (tmp_path / str(NOBODY) / "maps").write_text("/usr/lib/libtorch_python.so")
    assert missing(made.poll(3 * TORCH_NS))["torch"].reason == "", "taken back"
    assert made.poll(4 * TORCH_NS) == []


def test_where_nobody_may_look_nothing_is_claimed(tmp_path: Path) -> None:
    made = WithoutProbe(NOBODY, None, tmp_path)
    made.poll(0)
    assert made.poll(2 * TORCH_NS) == []


def test_a_probe_that_comes_later_is_not_listened_to_where_others_may_have_put_its_socket(
    tmp_path: Path,
) -> None:
    made = WithoutProbe(os.getpid(), None, tmp_path)
    endpoint = f"ipc://{tmp_path}/x.sock"
    tmp_path.chmod(0o755)
    held = StatePage(Identity(endpoint, None).as_json(page.HELLO_BYTES))
    try:
        with zmq.Context() as context, context.socket(zmq.ROUTER) as socket:
            socket.bind(endpoint)
            made.poll(0)
            reported = missing(made.poll(S))["feed"]
            assert reported.reason == f"{tmp_path} cannot be trusted"
            assert "Remove it: the probe makes it again" in reported.fix
            assert "feed" not in missing(made.poll(2 * S)), "once"
            assert not socket.poll(100), "nobody connects"
            tmp_path.chmod(0o700)
            made.poll(3 * S)
            made.poll(3 * S + 1)
            assert socket.poll(LIMIT_MS), "it was looked at again"
            made.close()
    finally:
        held.close(page.STATE_UNINSTALLED)


def test_a_probe_that_came_and_ended_at_once_is_no_fault_of_ours(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    made = WithoutProbe(NOBODY, None, tmp_path)
    held = StatePage(Identity(f"ipc://{tmp_path}/x.sock", None).as_json(page.HELLO_BYTES))
    try:
        opened = own_page(os.getpid())
        monkeypatch.setattr("gpuwatch.tui.sources.without_probe.own_page", lambda pid: opened)
        assert missing(made.poll(0))["probe"].reason == "", "there was one"
        made.close()
    finally:
        held.close(page.STATE_UNINSTALLED)


def test_a_probe_that_was_taken_out_and_is_back_is_read_anew(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A cell of a notebook that is run again."""
    identity = Identity(f"ipc://{tmp_path}/x.sock", None)
    first = StatePage(identity.as_json(page.HELLO_BYTES))
    opened = own_page(os.getpid())
    assert opened is not None
    source = PageSource(opened, os.getpid())
    source.poll(0)
    first.close(page.STATE_UNINSTALLED)
    for now_ns in (S, 2 * S):
        (seen,) = source.poll(now_ns)
        assert isinstance(seen, PageSeen)
        assert seen.state == page.STATE_UNINSTALLED
    identity.torch = "another"
    second = StatePage(identity.as_json(page.HELLO_BYTES))
    pages = pages_of(os.getpid())  # ours of the first one is among them, as we are its process
    (back,) = (one for one in pages if one.hello.torch == "another")
    monkeypatch.setattr(without_probe, "own_page", lambda pid: back)
    try:
        greeted, seen = source.poll(3 * S)
        assert isinstance(greeted, Greeted)
        assert greeted.hello.torch == "another"
        assert isinstance(seen, PageSeen)
        assert seen.state == page.STATE_ARMED
    finally:
        source.close()
        second.close(page.STATE_UNINSTALLED)
        for other in pages:
            if other is not back:
                other.close()
