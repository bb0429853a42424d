"""The overview at every size and in every state, as golden text."""

import asyncio
import random
import re
from dataclasses import replace

import pytest
from textual.geometry import Region

from gpuwatch.tui.app import GpuwatchApp
from gpuwatch.tui.model.snapshot import Snapshot
from gpuwatch.tui.widgets.panel import Panel
from gpuwatch.tui.widgets.text import Charset
from tests.tui import states
from tests.tui.fake_run import FakeRun, S
from tests.tui.golden_text import assert_golden, picture_of, screen_text

SIZES = [(50, 20), (80, 24), (100, 30), (200, 60)]


@pytest.mark.parametrize("size", [*SIZES, (20, 5), (160, 45), (70, 50)])
def test_a_data_bound_run(size: tuple[int, int]) -> None:
    text = picture_of(size)
    assert all(len(line) <= size[0] for line in text.splitlines())
    assert_golden(f"data_bound_{size[0]}x{size[1]}", text)


@pytest.mark.parametrize("size", [(50, 20), (100, 30)])
@pytest.mark.parametrize(
    "state",
    ["connecting", "warming_up", "stalled", "ended", "incomplete", "healthy_without_gpu"],
)
def test_states(state: str, size: tuple[int, int]) -> None:
    text = picture_of(size, getattr(states, state))
    assert_golden(f"{state}_{size[0]}x{size[1]}", text)


@pytest.mark.parametrize("size", SIZES)
def test_counters_of_the_gpu(size: tuple[int, int]) -> None:
    text = picture_of(size, states.on_gpm)
    assert_golden(f"on_gpm_{size[0]}x{size[1]}", text)


@pytest.mark.parametrize("size", [(50, 20), (80, 24), (100, 30), (200, 60)])
def test_where_the_gpus_time_goes_is_a_line(size: tuple[int, int]) -> None:
    text = picture_of(size, states.with_ledger)
    [row] = [line for line in text.splitlines() if " GPU time " in line]
    figures = [int(one) for one in re.findall(r"(\d+)%", row.partition("GPU time")[2])]
    assert sum(figures[:6]) == 100
    assert_golden(f"ledger_{size[0]}x{size[1]}", text)


@pytest.mark.parametrize(
    ("size", "keys"), [((200, 60), []), ((100, 36), ["tab", "tab", "tab", "z"])]
)
def test_steps_too_short_to_have_teeth(size: tuple[int, int], keys: list[str]) -> None:
    text = picture_of(size, states.short_steps, keys)
    assert "one step, folded (141 steps)" in text
    assert_golden(f"short_steps_{size[0]}x{size[1]}", text)


@pytest.mark.parametrize("size", SIZES)
def test_what_was_reported_before_stands_in_the_heading_where_there_is_room(
    size: tuple[int, int],
) -> None:
    text = picture_of(size, states.after_others)
    assert ("before: compute/precision 4 min → host 48 s" in text) is (size[0] >= 100)
    if size == (100, 30):
        assert_golden("after_others_100x30", text)


@pytest.mark.parametrize("size", [(100, 30), (160, 45), (200, 60)])
def test_notes_stand_below_the_verdict_where_there_is_room(size: tuple[int, int]) -> None:
    text = picture_of(size, states.noted)
    assert "note   anomaly detection was left on" in text
    assert "+1 more" in text
    assert_golden(f"noted_{size[0]}x{size[1]}", text)


@pytest.mark.parametrize("size", [(50, 20), (80, 24)])
def test_notes_take_no_room_from_a_small_screen(size: tuple[int, int]) -> None:
    assert picture_of(size, states.noted) == picture_of(size)


def test_four_gpus() -> None:
    assert_golden("four_gpus_200x60", picture_of((200, 60), states.four_gpus))


def test_paused() -> None:
    text = picture_of((80, 24), keys=["space"], later_ns=37 * S)
    assert "PAUSED +37 s behind" in text
    assert_golden("paused_80x24", text)


def test_ascii() -> None:
    text = picture_of((80, 24), charset=Charset.ASCII)
    assert text.isascii()
    assert_golden("ascii_80x24", text)


def test_zoom() -> None:
    assert_golden("zoomed_80x24", picture_of((80, 24), keys=["z"]))
    step = picture_of((80, 30), keys=["tab", "tab", "tab", "z"])
    assert_golden("zoomed_step_80x30", step)


def test_the_verdict_is_never_dropped_and_no_size_breaks() -> None:
    sizes = [(1, 1), (5, 2), (20, 5), (39, 30), (40, 12), (45, 11), (300, 90), (60, 200)]
    chance = random.Random(7)
    sizes += [(chance.randrange(1, 220), chance.randrange(1, 70)) for _ in range(25)]
    run = FakeRun()

    async def session() -> None:
        app = GpuwatchApp(run)
        async with app.run_test(size=(100, 30)) as pilot:
            await app.begun.wait()
            for width, height in sizes:
                await pilot.resize_terminal(width, height)
                await pilot.pause()
                run.now_ns += S // 4
                app.frame()
                await pilot.pause()
                text = screen_text(app)
                assert "INPUT-BOUND"[: max(0, width - 4)] in text, (width, height)

    asyncio.run(session())


def test_only_rows_that_changed_are_painted(monkeypatch: pytest.MonkeyPatch) -> None:
    run = FakeRun()

    async def session() -> None:
        app = GpuwatchApp(run, frames_s=0.001)
        async with app.run_test(size=(100, 30)) as pilot:
            await app.begun.wait()
            await pilot.pause()
            app.frame()
            await pilot.pause()
            painted: list[Region] = []

            def refresh(panel: Panel, *regions: Region, **_: bool) -> Panel:
                painted.extend(regions)
                return panel

            monkeypatch.setattr(Panel, "refresh", refresh)
            app.frame()
            assert painted == []
            run.now_ns += S
            app.frame()
            assert 0 < len(painted) < 30

    asyncio.run(session())


def test_a_run_that_stands_still_has_no_rate() -> None:
    text = picture_of((100, 30), states.stalled)
    (heading,) = (line for line in text.splitlines() if "── Step " in line)
    assert "no step for 31 s" in heading
    assert "steps/s" not in heading


def test_advice_is_whole_where_rows_are_free() -> None:
    advice = " ".join(f"word{i}" for i in range(40))

    def advised(snapshot: Snapshot) -> Snapshot:
        finding = replace(snapshot.verdict.finding, advice=(advice, advice))
        return replace(snapshot, verdict=replace(snapshot.verdict, finding=finding))

    for size, keys in (((100, 30), ("enter",)), ((39, 11), ())):
        assert "word39" in picture_of(size, advised, keys=keys)
    assert "idle), then decode on the GPU" in picture_of((50, 20))


@pytest.mark.parametrize("key", ["1", "2", "3", "4", "5", "6"])
def test_a_long_headline_leaves_room_for_what_to_do_on_every_view(key: str) -> None:
    text = picture_of((80, 24), states.long_verdict, keys=[key])
    assert "GPU idle 79% of each step, waiting for data" in text
    assert "NEXT   num_workers 2 → 10, about 4.8x" in text
    verdict = text.splitlines()[1 : 6 if key == "1" else 3]
    assert not any("…" in line for line in verdict), verdict


def test_with_a_baseline_a_narrow_heading_keeps_the_usual_step_time() -> None:
    assert "p50 1.2 s" in picture_of((50, 20), keys=["b"])


def test_without_a_gpu_a_narrow_axis_shows_what_it_has_room_for() -> None:
    (axis,) = (
        line
        for line in picture_of((50, 20), states.healthy_without_gpu).splitlines()
        if "-10 s" in line
    )
    assert "a column is" in axis
    assert "…" not in axis


def test_what_is_missing_is_whole_where_rows_are_free() -> None:
    text = picture_of((80, 24), states.incomplete, keys=["enter"])
    assert "sudo -E gpuwatch attach 48213" in " ".join(text.split())
    assert "…" not in text


def test_a_gain_that_stands_beside_the_advice_is_not_reported_in_it() -> None:
    text = picture_of((100, 30), states.gains_about)
    assert 'NEXT   bf16: with torch.autocast("cuda", torch.bfloat16)  ' in text
    assert text.count("5.7x") == 1


def test_the_narrow_chart_shows_its_times() -> None:
    assert "-10 s" in picture_of((50, 20))
