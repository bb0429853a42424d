"""The tree of processes: who stands below whom, in which order, and what a filter leaves."""

from dataclasses import replace
from typing import Any

import msgspec
import pytest

from gpuwatch.tui.model.observations import ProcessUse
from gpuwatch.tui.widgets.processes.panel import columns_for, line_row
from gpuwatch.tui.widgets.processes.tree import Line, Order, matching, tree_of
from gpuwatch.tui.widgets.text import first_seen, length
from gpuwatch.tui.wording.processes import cores_used, state_of
from tests.tui import process_states
from tests.tui.fake_run import FakeRun

RUN = process_states.launched(FakeRun().snapshot())


def shape(lines: list[Line]) -> list[tuple[int, str]]:
    return [(line.depth, line.name) for line in lines]


def test_the_launcher_is_above_its_ranks_and_they_above_theirs() -> None:
    assert shape(tree_of(RUN)) == [
        (0, "torchrun"),
        (1, "train.py rank 0"),
        (2, "pin thread"),
        *[(2, "worker")] * 4,
        (2, "g++"),
        (3, "cc1plus"),
        (1, "rank 1"),
    ]


def test_without_a_launcher_or_parents_all_stand_below_the_target() -> None:
    reported = FakeRun().snapshot()
    assert shape(tree_of(reported)) == [(0, "train.py"), *[(1, "worker")] * 4]


@pytest.mark.parametrize(
    ("order", "pids"),
    [("pid", [48231, 48232]), ("cpu", [48232, 48231]), ("memory", [48231, 48232]), ("io", [48232])],
)
def test_the_largest_come_first_below_each_parent(order: Order, pids: list[int]) -> None:
    change: dict[int, dict[str, Any]] = {
        48231: {"cpu_percent": 5.0, "pss_bytes": 900, "read_bytes_s": None, "write_bytes_s": None},
        48232: {"cpu_percent": 9.0, "pss_bytes": 800, "read_bytes_s": 5.0, "write_bytes_s": 70.0},
    }
    main = RUN.processes[0]
    workers = [
        msgspec.structs.replace(one, **change[one.pid])
        for one in RUN.processes[1:]
        if one.pid in change
    ]
    seen = tree_of(replace(RUN, processes=(main, *workers)), order)
    assert [line.pid for line in seen if line.name == "worker"][: len(pids)] == pids


def test_a_chain_of_any_length_and_a_ring_are_shown() -> None:
    main, child = RUN.processes[0], next(one for one in RUN.processes if one.role == "child")

    def below(parent: int, pid: int) -> ProcessUse:
        return msgspec.structs.replace(child, pid=pid, parent=parent)

    first = main.pid
    chain = [below(first + at, first + at + 1) for at in range(2_000)]
    run = replace(RUN, surroundings=None)
    seen = tree_of(replace(run, processes=(main, *chain)))
    assert seen[-1].depth == len(chain)
    assert length(line_row(seen[-1], columns_for(80, uses(seen)), 80)) <= 80
    ring = (below(first, 1), below(1, first))
    seen = tree_of(replace(run, processes=(main, *ring)))
    assert [line.pid for line in seen if line.use] == [first, 1, first]


def test_a_filter_wants_all_its_words() -> None:
    lines = tree_of(RUN)
    assert [line.pid for line in matching(lines, "worker 48233")] == [48233]
    assert [line.name for line in matching(lines, "PIN")] == ["pin thread"]
    assert matching(lines, "nobody") == []
    assert matching(lines, "") == lines


def uses(lines: list[Line]) -> list[ProcessUse]:
    return [line.use for line in lines if line.use is not None]


@pytest.mark.parametrize("width", [50, 79, 80, 99, 100, 135, 136, 200])
def test_every_line_has_room_for_its_state(width: int) -> None:
    lines = tree_of(RUN)
    cells = columns_for(width, uses(lines))
    for line in lines:
        assert length(line_row(line, cells, width)) <= width
    assert width - cells.all - 2 >= len("no core 31%")


@pytest.mark.parametrize(
    ("field", "columns"),
    [
        ("thread_cpu_percent", {"thread"}),
        ("run_delay_percent", {"delay"}),
        ("read_bytes_s", {"read"}),
        ("write_bytes_s", {"write"}),
    ],
)
def test_what_no_process_shows_has_no_column(field: str, columns: set[str]) -> None:
    reported = uses(tree_of(RUN))
    unreported = [msgspec.structs.replace(one, **{field: None}) for one in reported]
    full, less = (columns_for(136, those)._asdict() for those in (reported, unreported))
    assert {name for name in full if full[name] and not less[name]} == columns
    teller = next(one for one in reported if getattr(one, field) is not None)
    assert columns_for(136, [*unreported, teller])._asdict() == full


def test_eighty_columns_show_what_is_read_and_what_is_written() -> None:
    (use, *_) = RUN.processes
    busy = msgspec.structs.replace(use, read_bytes_s=12.34 * 2**20, write_bytes_s=0.41 * 2**20)
    half = msgspec.structs.replace(use, read_bytes_s=None, write_bytes_s=0.0)
    texts = []
    for one in (busy, half):
        row = line_row(Line(0, "train.py", one, 50.0), columns_for(80, [busy]), 80)
        texts.append("".join(span.text for span in row))
    assert "12.3/0.41" in texts[0]
    assert "-/0 " in texts[1]


def test_a_state_shows_what_it_waits_for() -> None:
    waits = [state_of(line.use) for line in tree_of(RUN) if line.name == "worker" and line.use]
    assert waits[1:3] == [("no core 31%", "warning"), ("disk wait", "warning")]
    assert waits[0] == ("on CPU", "dim")


def test_a_busy_process_is_on_its_cpu_whatever_it_did_at_that_instant() -> None:
    (use, *_) = RUN.processes
    reported = {
        (status, percent): state_of(
            msgspec.structs.replace(use, status=status, cpu_percent=percent, run_delay_percent=None)
        )[0]
        for status in "RS"
        for percent in (99.0, 3.0, None)
    }
    assert reported == {
        ("R", 99.0): "on CPU",
        ("S", 99.0): "on CPU",
        ("R", 3.0): "sleeping",
        ("S", 3.0): "sleeping",
        ("R", None): "running",
        ("S", None): "sleeping",
    }


def test_cores_in_use_are_the_trees_own() -> None:
    assert cores_used(RUN.processes) == pytest.approx(5.03)
    unknown = [msgspec.structs.replace(one, cpu_percent=None) for one in RUN.processes]
    assert cores_used(unknown) is None


@pytest.mark.parametrize(
    ("chosen", "first", "count", "room", "then"),
    [
        (0, 0, 5, 10, 0),
        (9, 0, 20, 10, 0),
        (10, 0, 20, 10, 1),
        (4, 7, 20, 10, 4),
        (19, 0, 20, 10, 10),
        (3, 15, 20, 10, 3),
        (2, 9, 4, 10, 0),
    ],
)
def test_the_chosen_line_stays_in_sight(
    chosen: int, first: int, count: int, room: int, then: int
) -> None:
    assert first_seen(chosen, first, count, room) == then
