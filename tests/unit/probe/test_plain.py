"""Whole steps at once: what `feed_all` takes in one go is what `feed` makes of the same marks."""

import random

import pytest

from gpuwatch.probe.wire import marks
from gpuwatch.tui.sources.marks.merging import merge_steps
from gpuwatch.tui.sources.marks.plain import Mark
from gpuwatch.tui.sources.marks.timeline import Timeline
from gpuwatch.tui.steps import Step

PLAIN = (
    marks.FETCH_LEAVE,
    marks.BACKWARD_ENTER,
    marks.BACKWARD_LEAVE,
    marks.OPTIMIZER_ENTER,
    marks.OPTIMIZER_LEAVE,
)
ODD = (
    marks.ITERATION,
    marks.FETCH_END,
    marks.FETCH_FAILED,
    marks.STEP,
    marks.OPTIMIZER_INSIDE,
    marks.CHECKPOINT_ENTER,
    marks.CHECKPOINT_LEAVE,
    marks.COMPILE_ENTER,
    marks.COMPILE_LEAVE,
    *PLAIN,
)


class Loop:
    """Marks of a loop that is mostly plain."""

    def __init__(self, seed: int, counted: float = 0.7) -> None:
        """`counted`: chance that batches that lie ready are counted in a step."""
        self._counted = counted
        self._random = random.Random(seed)
        self._number = 0
        self._t_ns = 1_000
        self.marks: list[Mark] = []

    def put(self, kind: int, detail: object = None, lost: int = 0) -> None:
        self._number += 1 + lost
        self._t_ns += self._random.randrange(1, 1_000)
        self.marks.append((self._number, kind, self._t_ns, detail))

    def steps(self, count: int, oddness: float = 0.0) -> None:
        for _ in range(count):
            iterator = 7 if self._random.random() >= oddness else 8
            if self._random.random() < self._counted:
                self.put(marks.READY, self._random.randrange(4))
            self.put(marks.FETCH_ENTER, iterator)
            for kind in PLAIN:
                self.put(kind, lost=self._random.random() < oddness / 4)
                if self._random.random() < oddness:
                    odd = self._random.choice(ODD)
                    self.put(odd, iterator if odd == marks.ITERATION else None)
                if self._random.random() < oddness / 4:
                    self.put(marks.PHASE_ENTER, "validation")
                    self.put(marks.PHASE_LEAVE, "validation")


def by_marks(some: list[Mark]) -> tuple[list[Step], Timeline]:
    timeline = Timeline()
    return [step for mark in some for step in timeline.feed(mark)], timeline


@pytest.mark.parametrize("seed", range(60))
def test_any_loop_comes_out_as_mark_by_mark(seed: int) -> None:
    chance = random.Random(seed)
    loop = Loop(seed, chance.choice((0.0, 0.7, 1.0)))
    for _ in range(6):
        loop.steps(20, oddness=chance.choice((0.0, 0.02, 0.1)))
    expected, slow = by_marks(loop.marks)
    timeline, reported, at = Timeline(), [], 0
    while at < len(loop.marks):
        breath = chance.randrange(1, 60)
        reported += timeline.feed_all(loop.marks[at : at + breath])
        at += breath
    assert reported == expected
    assert timeline.open() == slow.open()
    assert (timeline.steps, timeline.lost_marks) == (slow.steps, slow.lost_marks)


@pytest.mark.parametrize("seed", range(20))
@pytest.mark.parametrize("a_row", [2, 3, 7, 100])
def test_rows_of_several_steps_are_what_merging_makes_of_them(seed: int, a_row: int) -> None:
    loop = Loop(seed, counted=1.0)
    loop.steps(30)
    loop.steps(40, oddness=0.02)
    each, _ = by_marks(loop.marks)
    timeline = Timeline()
    rows = timeline.feed_all(loop.marks, a_row)
    assert len(rows) < len(each)
    assert max(row.count for row in rows) <= a_row
    at = 0
    for row in rows:
        begin, reached = at, 0
        while reached < row.count:
            reached += each[at].count
            at += 1
        assert [row] == merge_steps(each[begin:at], 1)
    assert at == len(each)


@pytest.mark.parametrize("counted", [0.0, 1.0])
def test_a_plain_loop_is_taken_in_whole_steps(
    counted: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    loop = Loop(0, counted)
    loop.steps(100)
    timeline = Timeline()
    one_by_one: list[Mark] = []
    feed = timeline.feed

    def noted(mark: Mark) -> list[Step]:
        one_by_one.append(mark)
        return feed(mark)

    monkeypatch.setattr(timeline, "feed", noted)
    assert len(timeline.feed_all(loop.marks)) == 99
    assert len(one_by_one) < 30, "the first steps, and the last"
