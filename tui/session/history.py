"""Snapshots of the past: many of the last minutes, fewer of the hour before, none of older times.

What only ever grows (the series, the memory's points) is left out of them: the newest snapshot has
all of it, and is cut off at the moment that is shown. The older ones are held as bytes: they are
hardly ever shown, and after 20 minutes of 87 steps a second they took 15 MB.
"""

import pickle
import zlib
from bisect import bisect_right
from dataclasses import replace
from typing import Final, NamedTuple

from ..model.provider import Frame, Reach
from ..model.snapshot import Snapshot

Spacings = tuple[tuple[int, int], ...]
"""Snapshots younger than the first number of ns are the second one apart."""
SPACINGS_NS: Final[Spacings] = (
    (120_000_000_000, 1_000_000_000),
    (600_000_000_000, 10_000_000_000),
    (3_600_000_000_000, 30_000_000_000),
)
"""Some 270 in an hour, of 13 to 17 kB each on the recordings from an H200, and of 94 kB with 60
distinct deep stacks; the older half of them of 8 kB."""
YOUNG_NS: Final = SPACINGS_NS[0][0]
OLD_STEPS: Final = 40
"""An older snapshot keeps so many steps: of a fast loop nothing else holds them any more."""


class _Kept(NamedTuple):
    """A snapshot that is remembered."""

    t_ns: int
    connected: bool
    """Something had come from the run."""
    snapshot: Snapshot | bytes
    """Packed once it is old: half a millisecond, every ten seconds."""


class Keyframes:
    """Snapshots in the order of their time. The list is replaced and never changed, so that one
    thread may keep while another looks."""

    def __init__(self, spacings_ns: Spacings = SPACINGS_NS) -> None:
        self._spacings_ns = spacings_ns
        self._frames: list[_Kept] = []

    def __len__(self) -> int:
        return len(self._frames)

    @property
    def earliest_ns(self) -> int | None:
        """The oldest moment that is remembered; None before the first snapshot."""
        return self._frames[0].t_ns if self._frames else None

    @property
    def connected_ns(self) -> int | None:
        """The oldest one at which anything had come from the run; None before that."""
        return next((one.t_ns for one in self._frames if one.connected), None)

    def wants(self, t_ns: int, newest_ns: int) -> bool:
        """Whether a snapshot of this moment would be kept, where the newest one is of that."""
        spacing_ns = self._spacing_ns(newest_ns - t_ns)
        if spacing_ns is None or not self._frames:
            return spacing_ns is not None
        return not _same(self._frames[-1].t_ns, t_ns, spacing_ns)

    def keep(self, now: Snapshot, newest_ns: int | None = None) -> None:
        """Remember a snapshot if it is far enough from the last one, and thin out the older ones:
        by their age now, or at the moment that a replay hurries to."""
        newest_ns = max(now.t_ns, newest_ns or 0)
        if not self.wants(now.t_ns, newest_ns):
            return
        connected = now.status.state != "connecting"
        kept: list[_Kept] = []
        for frame in (*self._frames, _Kept(now.t_ns, connected, _lightened(now))):
            spacing_ns = self._spacing_ns(newest_ns - frame.t_ns)
            if spacing_ns is None or (kept and _same(kept[-1].t_ns, frame.t_ns, spacing_ns)):
                continue
            young = newest_ns - frame.t_ns <= YOUNG_NS
            kept.append(frame if young else _packed(frame))
        self._frames = kept

    def _spacing_ns(self, age_ns: int) -> int | None:
        """How far apart snapshots of this age are; None: too old to be kept."""
        spacings = (spacing for younger, spacing in self._spacings_ns if age_ns <= younger)
        return next(spacings, None)

    def at(self, t_ns: int, newest: Snapshot) -> Snapshot:
        """The last snapshot at or before a moment, or the first of all, with its past completed
        from the newest one; that one itself where nothing is remembered."""
        frames = self._frames
        if newest.t_ns <= t_ns or not frames:
            return newest
        after = bisect_right(frames, t_ns, key=lambda frame: frame.t_ns)
        return _completed(_unpacked(frames[max(0, after - 1)]), newest)


def _same(one_ns: int, other_ns: int, spacing_ns: int) -> bool:
    """Both lie in one cell of a grid that is fixed to absolute time: what is first in a long cell
    was first in its short ones, so that thinning out never leaves a hole."""
    return one_ns // spacing_ns == other_ns // spacing_ns


def _lightened(frame: Snapshot) -> Snapshot:
    return replace(
        frame,
        sawtooth=None,
        memory=replace(frame.memory, host=()),
        gpu_memory=(),
        series=(),
    )


def _packed(frame: _Kept) -> _Kept:
    if isinstance(frame.snapshot, bytes):
        return frame
    packed = zlib.compress(
        pickle.dumps(_with_less(frame.snapshot), pickle.HIGHEST_PROTOCOL), level=1
    )
    return frame._replace(snapshot=packed)


def _unpacked(frame: _Kept) -> Snapshot:
    if not isinstance(frame.snapshot, bytes):
        return frame.snapshot
    snapshot: Snapshot = pickle.loads(zlib.decompress(frame.snapshot))
    return snapshot


def _with_less(frame: Snapshot) -> Snapshot:
    if max(len(frame.recent), len(frame.recent_gpu)) <= OLD_STEPS:
        return frame
    recent, recent_gpu = frame.recent[-OLD_STEPS:], frame.recent_gpu[-OLD_STEPS:]
    return replace(frame, recent=recent, recent_gpu=recent_gpu)


def _completed(frame: Snapshot, newest: Snapshot) -> Snapshot:
    at_ns = frame.t_ns
    host = tuple(point for point in newest.memory.host if point.t_ns <= at_ns)
    return replace(
        frame,
        sawtooth=newest.sawtooth,
        memory=replace(frame.memory, host=host),
        gpu_memory=tuple(one for one in newest.gpu_memory if one.t_ns <= at_ns),
        series=newest.series,
    )


class History:
    """The past of a live run: collection goes on while a person looks back.

    Snapshots are kept on the thread that publishes them, and shown on another.
    """

    def __init__(self) -> None:
        self._frames = Keyframes()
        self._last: Snapshot | None = None
        """The newest one that somebody has seen."""
        self._held: Frame | None = None
        """What is shown: it stays as it is while the past is thinned out."""
        self._held_ns = 0

    def keep(self, snapshot: Snapshot) -> None:
        """Remember it, as far as the spacing asks for it."""
        self._frames.keep(snapshot)

    def reach(self, newest: Snapshot) -> Reach:
        """From the first snapshot that has anything of the run until the newest."""
        earliest_ns = self._frames.connected_ns
        return Reach(newest.t_ns if earliest_ns is None else earliest_ns, newest.t_ns)

    def moment(self, held_ns: int | None, newest: Snapshot) -> Frame:
        """The run now, or as it was."""
        before, self._last = self._last, newest
        if held_ns is None:
            self._held = None
            return Frame(newest, None, newest.t_ns)
        if self._held is None or held_ns != self._held_ns:
            self._held_ns = held_ns
            self._held = self._look_back(held_ns, before or newest)
        return self._held._replace(newest_ns=newest.t_ns)

    def _look_back(self, held_ns: int, last: Snapshot) -> Frame:
        """The past of the last snapshot, or that one itself where somebody paused on it."""
        if held_ns == last.t_ns:
            return Frame(last, None, last.t_ns)
        return Frame(self._frames.at(held_ns, last), held_ns, last.t_ns)
