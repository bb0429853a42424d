"""What the probe itself saw holds until the next mark, and never counts as samples."""

import msgspec
import pytest

from gpuwatch.probe.wire import marks
from gpuwatch.tui.model.observations import (
    AnyObservation,
    DumpSeen,
    Greeted,
    Link,
    Missing,
    StackCount,
    StacksSeen,
    ThreadRole,
)
from gpuwatch.tui.model.snapshot import Snapshot
from gpuwatch.tui.session.session import Session
from gpuwatch.tui.session.stacks import StackStore
from gpuwatch.tui.verdict.engine import Engine
from gpuwatch.tui.verdict.thresholds.causes import STALL_FIRST_S
from gpuwatch.tui.wording.stacks import notes, title, why_not_idle
from tests.tui.fake_run import HELLO
from tests.unit.session.making import S, delivered, judged, open_at

WAY = ("<module> (train.py:19)", "take (train.py:11)")
HOLDER = ("run (threading.py:982)", "hold (train.py:9)")


def stack(role: ThreadRole, frames: tuple[str, ...]) -> StackCount:
    return StackCount(role=role, pid=1, thread=role, frames=frames, count=1, line="with lock:")


def dump(taken_ns: int) -> DumpSeen:
    stacks = (stack("main", WAY), stack("other", HOLDER))
    return DumpSeen(t_ns=taken_ns + 1, taken_ns=taken_ns, stacks=stacks, left_out=0)


def test_it_shows_where_the_thread_is_until_the_next_mark() -> None:
    store = StackStore()
    assert store.where(0, None).frame is None
    store.dumps.seen(dump(5 * S))
    assert store.where(60 * S, 4 * S)[:3] == (WAY[-1], WAY, "probe")
    assert store.where(60 * S, 6 * S)[:3] == (None, (), "py-spy")


def test_samples_show_more() -> None:
    store = StackStore()
    store.dumps.seen(dump(5 * S))
    sampled = StackCount(role="main", pid=1, thread="", frames=("f (a.py:1)",), count=9)
    store.seen(StacksSeen(t_ns=6 * S, started_ns=5 * S, samples=9, stacks=(sampled,)))
    assert store.where(7 * S, 4 * S)[:3] == ("f (a.py:1)", ("f (a.py:1)",), "py-spy")


REFUSED = Missing(t_ns=0, source="stacks", reason="py-spy may not look")


def session_of(*seen: AnyObservation) -> Session:
    session = Session(1, "train.py", 0, Engine())
    for observation in seen:
        session.ingest(observation)
    return session


def at(session: Session, seconds: float) -> Snapshot:
    return judged(session, round(seconds * S), 0.0)


MARK = delivered([], 1_000, open=open_at(1_000, kind=marks.BACKWARD_LEAVE))
LATE_S = 2 + STALL_FIRST_S


def test_the_probe_is_asked_where_nothing_moves_and_py_spy_is_refused() -> None:
    session = session_of(MARK, REFUSED)
    at(session, LATE_S - 10)
    assert not session.lacks_stacks(), "it may still move"
    assert at(session, LATE_S).verdict.finding.kind == "stalled"
    assert session.lacks_stacks()
    session.ingest(dump(round(LATE_S * S)))
    at(session, LATE_S + 2)
    assert not session.lacks_stacks(), "it has them"


@pytest.mark.parametrize("seen", [(MARK,), (REFUSED,)])
def test_otherwise_it_is_not(seen: tuple[AnyObservation, ...]) -> None:
    session = session_of(*seen)
    at(session, LATE_S)
    assert not session.lacks_stacks()


def test_everyone_is_asked_for_before_it_is_reported_that_nothing_moves() -> None:
    session = session_of(MARK)
    at(session, 50)
    assert not session.nearly_stalled()
    assert at(session, LATE_S - 10).verdict.finding.kind != "stalled"
    assert session.nearly_stalled()
    moved = round((LATE_S - 9) * S)
    session.ingest(delivered([], moved, open=open_at(moved, kind=marks.BACKWARD_LEAVE)))
    at(session, LATE_S - 8)
    assert not session.nearly_stalled()


def test_after_a_good_bye_nobody_is_asked_for_however_long_the_process_lives_on() -> None:
    session = session_of(MARK, Link(t_ns=2 * S, state="left", detail="exiting"))
    at(session, LATE_S - 10)
    assert not session.nearly_stalled()


def test_it_is_evidence_with_its_source_and_no_sample() -> None:
    session = session_of(MARK, REFUSED, dump(2 * S))
    seen = at(session, LATE_S)
    assert "in take (train.py:11)" in seen.verdict.finding.headline
    (text,) = [one.text for one in seen.verdict.finding.evidence if one.source == "probe"]
    assert text == "the main thread: <module> (train.py:19) → take (train.py:11)"
    assert seen.stacks is None
    assert seen.trees is not None
    assert seen.trees.sorted_by == "dump"
    assert [tree.role for tree in seen.trees.all.trees] == ["main", "threads"]


def test_its_words() -> None:
    trees = at(session_of(MARK, REFUSED, dump(2 * S)), LATE_S).trees
    assert trees is not None
    assert title("all", trees.sorted_by) == "Stacks, dumped once by the probe"
    assert title("idle", trees.sorted_by, short=True) == "Stacks, by the probe"
    assert notes(trees, "all") == ["2 threads", "py-spy not permitted"]
    assert why_not_idle(trees) == ""


def test_once_it_moves_again_it_is_removed() -> None:
    session = session_of(MARK, REFUSED, dump(2 * S))
    at(session, LATE_S)
    later = LATE_S * 1_000 + 500
    session.ingest(delivered([], later, open=open_at(later, kind=marks.FETCH_ENTER)))
    assert at(session, LATE_S + 2).trees is None


LOOP = ("<module> (ipykernel_launcher.py:18)", "start (tornado/platform/asyncio.py:211)")
CELL = (*LOOP, "InteractiveShell.run_code (IPython/core/interactiveshell.py:3577)", *WAY)
KERNEL = Greeted(
    t_ns=0, hello=msgspec.structs.replace(HELLO, argv=["/v/lib/ipykernel_launcher.py", "-f", "k"])
)


def main_at(frames: tuple[str, ...]) -> DumpSeen:
    dumped_ns = round(LATE_S * S)
    stacks = (stack("main", frames),)
    return DumpSeen(t_ns=dumped_ns, taken_ns=dumped_ns, stacks=stacks, left_out=0)


def test_a_notebook_between_two_cells_is_idle_and_one_that_hangs_in_a_cell_is_stalled() -> None:
    session = session_of(MARK, KERNEL, REFUSED)
    assert at(session, LATE_S).verdict.finding.sub == "idle"
    assert session.lacks_stacks(), "the probe is asked whether it hangs in a cell"
    dumped = round(LATE_S * S)
    session.ingest(
        DumpSeen(t_ns=dumped, taken_ns=dumped, stacks=(stack("main", LOOP),), left_out=0)
    )
    assert at(session, LATE_S + 2).verdict.finding.sub == "idle"
    session.ingest(
        DumpSeen(t_ns=dumped, taken_ns=dumped, stacks=(stack("main", CELL),), left_out=0)
    )
    assert at(session, LATE_S + 4).verdict.finding.kind == "stalled"
