"""A live picture and its past: collection goes on while a person looks back."""

from tui.looking import Reach
from tui.picture import Moment, Picture, PictureWithPast
from tui.session.keyframes import Keyframes
from tui.snapshot import Snapshot


class RememberedPicture:
    """A picture that one can go back in (`tui.picture.PictureWithPast`)."""

    plays = False
    hurries = False

    def __init__(self, picture: Picture) -> None:
        self._picture = picture
        self._frames = Keyframes()
        self._newest: Snapshot | None = None
        self._held: Moment | None = None
        """What is looked at: it stays as it is while the past is thinned out."""
        self._held_ns = 0

    def start(self) -> None:
        """Open the sources."""
        self._picture.start()

    def snapshot(self) -> Snapshot:
        """The picture as it is now."""
        return self.moment(None).snapshot

    def close(self) -> None:
        """Let go of the target."""
        self._picture.close()

    @property
    def news(self) -> str:
        """What was said last about a recording."""
        return self._picture.news

    @property
    def reach(self) -> Reach:
        """From the first picture that is remembered and tells anything until now."""
        newest_ns = self._newest.t_ns if self._newest is not None else 0
        earliest_ns = self._frames.told_ns
        return Reach(newest_ns if earliest_ns is None else earliest_ns, newest_ns)

    def moment(self, held_ns: int | None) -> Moment:
        """The run now, or as it was."""
        before, self._newest = self._newest, self._picture.snapshot()
        self._frames.keep(self._newest)
        if held_ns is None:
            self._held = None
            return Moment(self._newest, None, self._newest.t_ns)
        if self._held is None or held_ns != self._held_ns:
            self._held_ns = held_ns
            self._held = self._look_back(held_ns, before or self._newest)
        return self._held._replace(newest_ns=self._newest.t_ns)

    def go_to(self, t_ns: int) -> None:
        """A run cannot go on from its past."""

    def change_speed(self, by: int) -> None:
        """Nor any faster."""

    def _look_back(self, held_ns: int, last: Snapshot) -> Moment:
        """The past of the last picture, or that one itself where somebody paused on it."""
        if held_ns == last.t_ns:
            return Moment(last, None, last.t_ns)
        return Moment(self._frames.at(held_ns, last), held_ns, last.t_ns)


def with_past(picture: Picture) -> PictureWithPast:
    """The picture itself where one can go back in it, else one that remembers what it showed."""
    return picture if isinstance(picture, PictureWithPast) else RememberedPicture(picture)
