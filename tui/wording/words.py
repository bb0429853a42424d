"""Verdicts, events and changes in words: a glyph, a word and a role (a colour) for each."""

from collections.abc import Sequence
from math import hypot
from time import localtime, strftime
from typing import Final, Literal, NamedTuple

from ..model.snapshot import Event, Snapshot
from ..verdict.findings import Finding, ForecastKind, Kind
from ..verdict.forecast.interval import forecast_of
from ..verdict.format import MOST_TIMES, times
from ..verdict.history import Held, PastVerdict
from .numbers import count, duration, percent

# How much a number has changed since the marked moment; nothing where it may be chance.

LEAST: Final = 0.02
"""A smaller change is not worth acting on."""
SURE: Final = 3.5
"""Standard errors, each by ten stretches of steps: one comparison in 400 passes by chance
(Student's t of 18 degrees of freedom)."""
MANY: Final = 10.0
"""From this factor on it is shown as a factor: a percentage is hard to read."""

More = Literal["worse", "better", "neither"]


class NumberChange(NamedTuple):
    """How one number changed."""

    text: str
    """ "▲ +38%", "▼ -12%", "▲ x14", "▲ new"."""
    role: str
    """ "warning" for worse, "good" for better, "strong" for neither."""


def change_of(
    before: float | None, now: float | None, noise: float = 0.0, more: More = "worse"
) -> NumberChange | None:
    """The change of a number that is 0 or more; None where it is within `noise` (in the number's
    own unit), or where one of the two is not known."""
    if before is None or now is None or abs(now - before) <= max(noise, LEAST * before):
        return None
    rose = now > before
    role = "strong" if more == "neither" else "warning" if rose == (more == "worse") else "good"
    glyph = "▲" if rose else "▼"
    if before <= 0:
        return NumberChange(f"{glyph} new", role)
    if now / before >= MANY:
        return NumberChange(f"{glyph} x{now / before:.0f}", role)
    return NumberChange(f"{glyph} {now / before - 1:+.0%}", role)


def noise_of(before_error: float | None, now_error: float | None) -> float | None:
    """How far two means may differ by chance, from their standard errors; None where one of them is
    not known."""
    if before_error is None or now_error is None:
        return None
    return SURE * hypot(before_error, now_error)


def against(baseline: Snapshot, now: Snapshot) -> str:
    """ "against step 1,204 (3 min ago)"."""
    seconds = (now.t_ns - baseline.t_ns) / 1e9
    when = f"{duration(seconds)} ago" if seconds >= 0 else f"{duration(-seconds)} later"
    step = f"step {count(baseline.steps.total)} " if baseline.steps else ""
    return f"against {step}({when})"


# Events.


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
    "numerics": Named("▲", "numerics", "critical"),
    "link": Named("○", "link", "dim"),
    "ended": Named("■", "ended", "strong"),
    "recording": Named("●", "recording", "dim"),
    "notify": Named("●", "notify", "dim"),
}
_FASTER: Final = Named("▼", "step time", "good")
_OTHER: Final = Named("●", "event", "dim")
WORD_CELLS: Final = max(len(named.word) for named in NAMES.values())


def named(event: Event) -> Named:
    """By its kind; a change of pace by its direction."""
    return _FASTER if event.kind == "pace" and event.better else NAMES.get(event.kind, _OTHER)


def event_text(event: Event) -> str:
    """Its text without its kind's word: "4.1 s" of a checkpoint."""
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


WORDS: Final = {
    "warming-up": "WARMING UP",
    "incomplete": "INCOMPLETE DATA",
    "stalled": "STALLED",
    "healthy": "NOTHING WRONG",
    "input": "INPUT-BOUND",
    "h2d": "COPY-BOUND",
    "communication": "COMMUNICATION-BOUND",
    "launch": "LAUNCH-BOUND",
    "sync": "SYNC-BOUND",
    "compute": "COMPUTE-BOUND",
    "memory-bandwidth": "BANDWIDTH-BOUND",
    "padding": "PADDING",
    "optimizer": "OPTIMIZER-BOUND",
    "host": "HOST-BOUND",
    "checkpoint": "CHECKPOINTING",
    "evaluation": "EVALUATING",
    "recompile": "RECOMPILING",
    "allocator": "ALLOCATOR-BOUND",
    "straggler": "STRAGGLER",
    "imbalance": "UNEVEN RANKS",
    "contention": "CONTENTION",
    "throttled": "THROTTLED",
    "memory-growth": "MEMORY GROWS",
}
SUB_WORDS: Final = {
    ("stalled", "stopped"): "STOPPED",
    ("healthy", "idle"): "IDLE",
    ("incomplete", "unsure"): "NOT SURE",
    ("incomplete", "idle"): "GPU IDLES",
}
"""Where the kind's word would be wrong."""
ABSTAINS: Final = ("warming-up", "incomplete")
"""Kinds that are no verdict."""
_GLYPHS: Final = {"critical": "▲", "warning": "◆", "info": "●"}


def name_of(kind: Kind, sub: str | None) -> str:
    """ "input/workers"."""
    return f"{kind}/{sub}" if sub else kind


def word_of(finding: Finding) -> str:
    """ "INPUT-BOUND"."""
    return SUB_WORDS.get((finding.kind, finding.sub or ""), WORDS[finding.kind])


def abstains(finding: Finding) -> bool:
    """It is not a verdict: severity and confidence have no meaning."""
    return finding.kind in ABSTAINS


def contributor_name(finding: Finding) -> str:
    """ "optimizer 6%", without the share where the headline has it: one cause of several bounds
    nothing."""
    name = WORDS[finding.kind].lower().removesuffix("-bound")
    share = percent(finding.share) if finding.share else ""
    return name if not share or share in finding.headline else f"{name} {share}"


def sure_words(confidence: float) -> str:
    """0.99 -> "99% sure"; never 100%."""
    return f"{min(99, round(100 * confidence))}% sure"


def glyph_of(finding: Finding) -> str:
    """Severity as a shape."""
    return "○" if abstains(finding) else _GLYPHS[finding.severity]


def role_of(finding: Finding) -> str:
    """Severity as a colour."""
    if abstains(finding):
        return "strong"
    return "good" if finding.kind == "healthy" else finding.severity


_SIGNS: Final[dict[ForecastKind, str]] = {"estimate": "~", "bound": "≤ ", "at-least": "≥ "}


def gain_of(finding: Finding) -> str:
    """What the first action gives: "≤ 2.3x faster" for a bound, "~2.3x faster" for an estimate,
    "≥ 2.3x faster" where no less is expected and nobody knows how much more, ">10x faster" beyond
    that; "" where unknown."""
    forecast = forecast_of(finding)
    if forecast is None or forecast.speedup < 1.005:
        return ""
    text = times(forecast.speedup)
    if forecast.speedup > MOST_TIMES:
        return f"up to {text} faster" if forecast.kind == "bound" else f"{text} faster"
    # It may be less, too: no least gain, whatever bounds it above.
    open_ended = forecast.kind == "at-least" and times(forecast.low) != text
    return f"{_SIGNS['estimate' if open_ended else forecast.kind]}{text} faster"


def gain_interval_of(finding: Finding) -> str:
    """ "~2.3x faster (1.9 to 2.8x)", "~2.3x faster (1.9x or more)": nine times in ten. The gain
    alone where it is an end itself, or both ends read the same."""
    forecast, gain = forecast_of(finding), gain_of(finding)
    if not gain or forecast is None or forecast.kind == "bound":
        return gain
    low = times(forecast.low)
    if forecast.high is None:
        return gain if low == times(forecast.speedup) else f"{gain} ({low} or more)"
    high = times(forecast.high)
    return gain if low == high else f"{gain} ({low.removesuffix('x')} to {high})"


# The verdicts of a run so far: its time by verdict, and a line for each of them.

NAMED: Final = 5
"""Verdicts that are named; the rest is "other"."""


def account(summary: Sequence[Held]) -> str:
    """ "over 3 h 12 min: input/workers 62%, healthy 38%; time lost: 1 h 10 min"; "" before there
    was a verdict."""
    whole_ns = sum(held.ns for held in summary)
    if whole_ns <= 0 or all(held.kind in ABSTAINS for held in summary):
        return ""
    parts = [
        f"{name_of(one.kind, one.sub)} {percent(one.share_of_time)}" for one in summary[:NAMED]
    ]
    rest = sum(held.share_of_time for held in summary[NAMED:])
    if rest:
        parts.append(f"other {percent(rest)}")
    text = f"over {duration(whole_ns / 1e9)}: {', '.join(parts)}"
    costs_ns = sum(held.cost_ns or 0 for held in summary)
    return f"{text}; time lost: {duration(costs_ns / 1e9)}" if costs_ns else text


LOST_LEAST_S: Final = 1.0


def lost_words(summary: Sequence[Held]) -> str:
    """ "lost in 12 min: input/workers 4 min, checkpoint 40 s"; "" where nothing was."""
    whole_ns = sum(held.ns for held in summary)
    lost = [held for held in summary if (held.cost_ns or 0) >= LOST_LEAST_S * 1e9]
    lost.sort(key=lambda held: -(held.cost_ns or 0))
    parts = [
        f"{name_of(one.kind, one.sub)} {duration((one.cost_ns or 0) / 1e9)}" for one in lost[:3]
    ]
    return f"lost in {duration(whole_ns / 1e9)}: {', '.join(parts)}" if parts else ""


def entry(past: PastVerdict) -> str:
    """ "steps 240 to 1,204, 6 min: input/workers, 57% of that time"; "to step 240, 1 s: …" of the
    first."""
    steps = f"step {count(past.until_step)}, "
    if past.since_step != past.until_step:
        # Before the first look there may have been thousands, which took no part of this time.
        since = f"steps {count(past.since_step)} to" if past.since_step else "to step"
        steps = f"{since} {count(past.until_step)}, "
    text = f"{steps if past.until_step else ''}{lasted(past)}: "
    text += name_of(past.kind, past.sub)
    return text if past.share is None else f"{text}, {percent(past.share)} of that time"


def lasted(past: PastVerdict) -> str:
    """ "6 min"."""
    return duration((past.until_ns - past.since_ns) / 1e9)
