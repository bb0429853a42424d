"""The stacks view: its trees at every size and of every kind of moment, walked and searched."""

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import replace
from pathlib import Path

import pytest
from textual.pilot import Pilot

from gpuwatch.tui.app import GpuwatchApp
from gpuwatch.tui.model.provider import SourceText
from gpuwatch.tui.model.snapshot import Snapshot
from gpuwatch.tui.model.stack_trees import StackTrees
from gpuwatch.tui.widgets.stacks.tree import source_rows
from gpuwatch.tui.widgets.text import text_of
from tests.tui import fake_stacks, states
from tests.tui.fake_run import FakeRun
from tests.tui.golden_text import assert_golden, picture_of, screen_text

SIZES = [(50, 20), (80, 24), (100, 30), (200, 60)]
LINES = (
    "def train_epoch(model, loader, optimizer):",
    "    model.train()",
    "    for images, labels in loader:",
    "        images = images.cuda(non_blocking=True)",
    "        labels = labels.cuda(non_blocking=True)",
    "        loss = criterion(model(images), labels)",
    "        optimizer.zero_grad()",
    "        loss.backward()",
    "        optimizer.step()",
)


def with_trees(trees: StackTrees | None) -> Callable[[Snapshot], Snapshot]:
    return lambda snapshot: replace(snapshot, trees=trees)


def source_of(frame: str, snapshot: Snapshot) -> SourceText:
    """As if the script were here."""
    if "train.py" not in frame:
        return SourceText("", 1, (), 0, "its files are on node7")
    return SourceText("/home/ana/resnet/train.py", 86, LINES, int(frame[-3:-1]))


def after(
    keys: list[str],
    do: Callable[[GpuwatchApp, Pilot[int]], Awaitable[None]] | None = None,
    size: tuple[int, int] = (100, 30),
) -> str:
    """The view after some keys, with the source lines that were asked for."""

    async def session() -> str:
        app = GpuwatchApp(FakeRun(), read_source=source_of)
        async with app.run_test(size=size) as pilot:
            await app.begun.wait()
            await pilot.pause()
            await pilot.press("5", *keys)
            await app.workers.wait_for_complete()
            if do is not None:
                await do(app, pilot)
            app.frame()
            await pilot.pause()
            return screen_text(app)

    return asyncio.run(session())


@pytest.mark.parametrize("size", SIZES)
def test_while_the_gpu_is_idle(size: tuple[int, int]) -> None:
    text = picture_of(size, keys=["5"])
    assert all(len(line) <= size[0] for line in text.splitlines())
    assert_golden(f"stacks_{size[0]}x{size[1]}", text)


@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize(("kind", "presses"), [("busy", 1), ("all", 2)])
def test_of_other_moments(kind: str, presses: int, size: tuple[int, int]) -> None:
    text = picture_of(size, keys=["5", *["i"] * presses])
    assert ("GPU busy" in text or "GPU is busy" in text) is (kind == "busy")
    assert_golden(f"stacks_{kind}_{size[0]}x{size[1]}", text)


def test_i_comes_round_and_holds_in_the_overview() -> None:
    assert picture_of((100, 30), keys=["5", "i", "i", "i"]) == picture_of((100, 30), keys=["5"])
    assert "Stacks while the GPU is busy" in picture_of((100, 30), keys=["i"])


@pytest.mark.parametrize("size", SIZES)
def test_searched(size: tuple[int, int]) -> None:
    text = picture_of(size, keys=["5", "slash", *"resize"])
    assert "workers 11%" in text
    assert "ImageFile" not in text.partition("Places that hold most")[0]
    assert_golden(f"stacks_searched_{size[0]}x{size[1]}", text)


def test_keys_are_text_while_one_types_and_keys_again_after() -> None:
    typed = after(["slash", *"q1p", "backspace"])
    assert " / q1▏" in typed
    kept = after(["slash", *"resize", "enter", "down"])
    assert " / resize  " in kept
    assert "▏  enter" not in kept
    assert after(["slash", *"resize", "escape"]) == after([])
    assert after(["slash", *"resize", "enter", "escape"]) == after([])
    assert "no frame has 'xyz' in it" in after(["slash", *"xyz"])


@pytest.mark.parametrize("size", SIZES)
def test_source_lines(size: tuple[int, int]) -> None:
    text = after(["right", "enter"], size=size)
    assert "▸88      for images, labels in loader:" in text
    assert_golden(f"stacks_source_{size[0]}x{size[1]}", text)


def test_a_line_that_shows_something_else_than_it_did_is_not_marked() -> None:
    source = SourceText("train.py", 86, LINES, 88)
    ran = [text_of(one) for one in source_rows(source, 60, 9, "for images, labels in loader:")]
    assert "as it is now" in ran[0]
    assert any(one.startswith("▸88") for one in ran)
    edited = [text_of(one) for one in source_rows(source, 60, 9, "for batch in loader:")]
    assert "changed since it ran" in edited[0]
    assert not any("▸" in one for one in edited)


def test_the_source_follows_the_cursor_and_goes_with_esc() -> None:
    assert "its files are on node7" in after(["right", "enter", "down"])
    assert "▸93          loss.backward()" in after(["right", "enter", "down", "down"])
    assert after(["right", "enter", "escape"]) == after(["right"])


def test_walked() -> None:
    assert_golden("stacks_walked_80x24", after(["down", "left", *["j"] * 9, "k"], size=(80, 24)))


@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize(
    ("name", "change"),
    [
        ("refused", states.incomplete),
        ("none", with_trees(None)),
        ("never_idle", with_trees(fake_stacks.NEVER_IDLE)),
        ("untimed", with_trees(fake_stacks.UNTIMED)),
        ("on_host", with_trees(fake_stacks.ON_HOST)),
    ],
)
def test_where_not_all_is_known(
    name: str, change: Callable[[Snapshot], Snapshot], size: tuple[int, int]
) -> None:
    assert_golden(f"stacks_{name}_{size[0]}x{size[1]}", picture_of(size, change, ["5"]))


@pytest.mark.parametrize(
    ("trees", "why"),
    [
        (fake_stacks.NEVER_IDLE, "while the GPU was surely idle"),
        (fake_stacks.UNTIMED, "no sample times"),
    ],
)
def test_a_kind_without_samples_shows_why(trees: StackTrees, why: str) -> None:
    text = picture_of((100, 30), with_trees(trees), ["5", "i"])
    assert why in text


def test_copied_stacks_are_in_a_file_too(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    copied: list[str] = []

    async def do(app: GpuwatchApp, pilot: Pilot[int]) -> None:
        monkeypatch.setattr(app, "copy_to_clipboard", copied.append)
        await pilot.press("slash", *"decode", "enter", "escape", "s")
        await pilot.pause()

    after([], do)
    (path,) = tmp_path.glob("*.stacks.txt")
    lines = path.read_text().splitlines()
    assert copied == [path.read_text()]
    assert lines[0].startswith("workers;_worker_loop (torch/utils/data/_utils/worker.py:349);")
    assert lines[0].endswith(";ImageFile.load (PIL/ImageFile.py:300) 1011")
    assert len(lines) == 8


def test_only_what_is_shown_is_copied(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    after(["slash", *"resize", "enter", "s"])
    (path,) = tmp_path.glob("*.stacks.txt")
    assert len(path.read_text().splitlines()) == 1
