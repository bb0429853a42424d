"""install, uninstall, nesting, and what others patched over."""

import multiprocessing
import pickle
import subprocess
import sys
from collections.abc import Iterator
from threading import Event, Thread, get_ident
from typing import Any

import pytest
import torch
from torch.utils.data import DataLoader

import probe
from gpuwatch.probe import api, installed
from gpuwatch.probe.hooks import Detach, backward, checkpoint
from gpuwatch.probe.installed import Installed
from gpuwatch.probe.recorder import Recorder
from gpuwatch.probe.wire.marks import BACKWARD_ENTER, FETCH_ENTER
from tests.processes.monitored import LIMIT_S
from tests.unit.probe.patched import held


@pytest.fixture(autouse=True)
def clean() -> Iterator[None]:
    yield
    while api._installed is not None:
        probe.uninstall()


def test_uninstall_puts_the_very_objects_back() -> None:
    before = held()
    probe.install()
    during = held()
    assert all(
        during[name] is not before[name] for name in ("next", "graph", "autograd", "zipfile")
    )
    assert probe.uninstall() == ()
    after = held()
    assert all(after[name] is before[name] for name in ("next", "init", "reset", "graph", "save"))
    assert after == before


def test_installed_twice_is_once() -> None:
    probe.install()
    once = held()
    probe.install()
    assert held()["next"] is once["next"]
    probe.uninstall()
    assert held()["next"] is once["next"]
    probe.uninstall()
    assert api._installed is None


def test_a_patch_on_top_of_ours_is_left_and_named() -> None:
    module: Any = torch.serialization
    bare = module._legacy_save
    probe.install()
    ours = module._legacy_save

    def theirs(*args: Any, **kwargs: Any) -> Any:
        return ours(*args, **kwargs)

    module._legacy_save = theirs
    try:
        assert probe.uninstall() == ("torch.serialization._legacy_save",)
        assert module._legacy_save is theirs
    finally:
        module._legacy_save = bare


def test_a_save_that_was_bound_before_is_the_same_function_and_is_timed() -> None:
    from torch import save

    probe.install()
    assert torch.save is save
    assert pickle.loads(pickle.dumps(save)) is save
    assert pickle.loads(pickle.dumps(torch.save)) is save


def test_wrap_keeps_length_attributes_and_items() -> None:
    probe.install()
    rows: Any = [1, 2, 3, 4]
    loader: DataLoader[Any] = DataLoader(rows, batch_size=2)
    wrapped = probe.wrap(loader)
    assert len(wrapped) == 2
    assert wrapped.batch_size == 2
    assert [batch.tolist() for batch in wrapped] == [[1, 2], [3, 4]]
    assert list(probe.wrap(iter("ab"))) == ["a", "b"]
    assert next(probe.wrap("xy")) == "x"


def test_everything_works_without_install() -> None:
    with probe.phase("named"):
        probe.step()
    assert list(probe.wrap([1, 2])) == [1, 2]
    assert probe.uninstall() == ()


def test_who_reads_the_wire_loads_nothing_that_trains() -> None:
    code = "import sys, gpuwatch.tui.messages; assert 'gpuwatch.probe.api' not in sys.modules"
    subprocess.run([sys.executable, "-c", code], check=True)


def test_an_unknown_name_is_no_part_of_the_probe() -> None:
    with pytest.raises(AttributeError, match="no attribute 'instal'"):
        probe.instal  # noqa: B018


def test_two_threads_that_install_at_once_install_one(monkeypatch: pytest.MonkeyPatch) -> None:
    installing, go_on = Event(), Event()
    make = Installed
    made = []

    def slowly() -> Installed:
        made.append(get_ident())
        if len(made) == 1:
            installing.set()
            go_on.wait(LIMIT_S)
        return make()

    monkeypatch.setattr(api, "Installed", slowly)
    first = Thread(target=probe.install)
    first.start()
    assert installing.wait(LIMIT_S)
    probe.install()
    go_on.set()
    first.join()
    assert made == [first.ident]
    probe.uninstall()
    assert api._installed is not None, "the other's is not undone"
    probe.uninstall()
    assert api._installed is None


def test_a_hook_is_in_place_only_when_the_process_is_armed(monkeypatch: pytest.MonkeyPatch) -> None:
    # Installed from another thread, beside a loop that trains: the first hook that is reached
    # would arm as well, and the process had two pages and two publishers.
    armed = []
    attach = backward.attach

    def attach_and_look(recorder: Recorder) -> Detach:
        armed.append(recorder.armed)
        return attach(recorder)

    monkeypatch.setattr(backward, "attach", attach_and_look)
    probe.install()
    assert armed == [True]


def test_an_install_that_was_interrupted_leaves_nothing_and_the_next_one_installs(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """In a notebook somebody runs the cell again."""
    before = held()

    def interrupted(_: Recorder) -> Detach:
        raise KeyboardInterrupt

    with monkeypatch.context() as once:
        once.setattr(checkpoint, "attach", interrupted)
        with pytest.raises(KeyboardInterrupt):
            probe.install()
    assert held() == before
    probe.install()
    assert held()["next"] is not before["next"]
    probe.uninstall()
    assert held() == before


@pytest.mark.parametrize("is_spawned", [True, False])
@pytest.mark.parametrize("loads", [True, False])
def test_a_daemon_is_watched_unless_it_is_a_loaders_worker(
    monkeypatch: pytest.MonkeyPatch, is_spawned: bool, loads: bool
) -> None:
    """Learners that end with their parent are daemons as well: they had no page, and no reason."""
    process: Any = multiprocessing.current_process()
    monkeypatch.setitem(process._config, "daemon", True)
    monkeypatch.setattr(installed, "_is_being_spawned", lambda: is_spawned)
    if loads:
        monkeypatch.setattr(torch.utils.data._utils.worker, "_worker_info", object())
    probe.install()
    assert api._installed is not None
    recorder = api._installed.recorder
    recorder.mark(FETCH_ENTER)
    assert recorder.armed is (not loads and not is_spawned), "it has not trained yet"
    recorder.mark(BACKWARD_ENTER)
    assert (recorder.armed, recorder.on) == (not loads, not loads)
