"""What events are called: a glyph, a word and a role for each kind."""

from collections.abc import Sequence
from time import localtime, strftime
from typing import Final, NamedTuple

from tui.snapshot import Event, Snapshot


class Named(NamedTuple):
    """A kind of event."""

    glyph: str
    word: str
    role: str


NAMES: Final = {
    "checkpoint": Named("■", "checkpoint", "checkpoint"),
    "evaluation": Named("■", "evaluation", "evaluation"),
    "recompile": Named("◆", "recompile", "compile"),
    "pace": Named("▲", "step time", "warning"),
    "workers": Named("◆", "workers", "data"),
    "allocator": Named("▲", "allocator", "critical"),
    "verdict": Named("●", "verdict", "info"),
    "link": Named("○", "link", "dim"),
    "ended": Named("■", "ended", "strong"),
    "recording": Named("●", "recording", "dim"),
}
_FASTER: Final = Named("▼", "step time", "good")
_OTHER: Final = Named("●", "event", "dim")
WORD_CELLS: Final = max(len(named.word) for named in NAMES.values())


def named(event: Event) -> Named:
    """Of its kind, a pace by its direction."""
    return _FASTER if event.kind == "pace" and event.better else NAMES.get(event.kind, _OTHER)


def told(event: Event) -> str:
    """Its text without the word that stands before it: "4.1 s" of a checkpoint."""
    word = named(event).word
    return event.text.removeprefix(word).lstrip(": ") or event.text


def time_of_day(snapshot: Snapshot, t_ns: int) -> str:
    """ "12:04:31", in local time."""
    return strftime("%H:%M:%S", localtime(snapshot.t_unix - (snapshot.t_ns - t_ns) / 1e9))


def with_words(events: Sequence[Event], words: str) -> list[Event]:
    """The events whose kind or text has all the words in it."""
    wanted = words.lower().split()
    return [
        event
        for event in events
        if all(word in f"{named(event).word} {event.text}".lower() for word in wanted)
    ]
