"""Section `peers`: what TraceML, gpuprof and gpuwatch add to the same steps, in the same run.

TraceML cannot be taken out of a process again, so each tool has a process of its own, and they
train in turns of 0.3 s, or of five steps where those take longer, in random order; those whose
turn it is not are stopped. What a tool adds is the median over the rounds of its mean step less the
bare one's of the same round. The A/A row is a second bare process: two of a kind may differ by half
a per cent.
"""

import importlib.util
import json
import os
import random
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import asdict, dataclass
from pathlib import Path
from time import monotonic
from typing import Final

from tests.bench.cost.machine import Side, sides
from tests.bench.cost.peer import START_S, Peer
from tests.measuring.child import ROOT, python_path
from tests.measuring.claims import Claim, broken
from tests.measuring.spread import spread

TARGETS_MS: Final = (0.5, 2.0, 5.0, 20.0, 100.0)
TURN_S: Final = 0.3
FEWEST_STEPS: Final = 5
"""Of a turn."""
TENTH: Final = 0.1
BARE, BARE_AGAIN, OURS, TRACEML = "bare", "bare again", "gpuwatch", "TraceML"
MODULES: Final = {
    BARE: "torch",
    BARE_AGAIN: "torch",
    OURS: "probe",
    TRACEML: "traceml_ai",
    "gpuprof": "gpuprof",
}
FEWEST_ROUNDS: Final = 3
"""Below, an interval tells nothing."""

Round = Mapping[str, float]
"""Mean step of each tool's turn, us."""


@dataclass(frozen=True)
class Added:
    """What one tool adds, us a step."""

    rounds: int
    step_us: float
    """Bare."""
    cost_us: float
    low_us: float
    high_us: float
    """90 % of the bootstrapped medians lie between these."""


def claims(seconds: float) -> Iterator[Claim]:
    """A row a tool, side and length of step, within about so many seconds."""
    there = sides()
    for side in there:
        yield from _side(side, seconds / len(there))


def _side(side: Side, seconds: float) -> Iterator[Claim]:
    tools = [tool for tool, module in MODULES.items() if importlib.util.find_spec(module)]
    for tool in MODULES:
        if tool not in tools:
            yield Claim(f"beside others, {tool}", side.name, "not there", "", None)
    layers = _layers(side)
    order = random.Random(0)
    seen: list[list[Round]] = [[] for _ in TARGETS_MS]
    with (
        tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as directory,
        ExitStack() as ends,
    ):
        started = []
        for tool in tools:
            files = Path(directory) / tool.replace(" ", "_")
            started.append(Peer(tool.lower(), json.dumps(layers), files, side.environment))
            ends.callback(started[-1].end)
        peers = []
        for tool, peer in zip(tools, started, strict=True):
            try:
                peer.ready()
                peers.append((tool, peer))
            except TimeoutError as error:
                yield broken(f"beside others, {tool}", side.name, error)
        until_s = monotonic() + seconds
        try:
            while not all(seen) or monotonic() < until_s:
                for at in order.sample(range(len(layers)), len(layers)):
                    turns = order.sample(peers, len(peers))
                    length_s = turn_s(TARGETS_MS[at])
                    seen[at].append({tool: peer.train(at, length_s) for tool, peer in turns})
        except TimeoutError as error:
            yield broken("beside others", side.name, error)
        for _, peer in peers:
            peer.bye()
    for target_ms, count, rounds in zip(TARGETS_MS, layers, seen, strict=True):
        if rounds:
            yield from rows(side, target_ms, count, rounds)


def turn_s(target_ms: float) -> float:
    """How long one tool trains at a time."""
    return max(TURN_S, FEWEST_STEPS * target_ms / 1e3)


def rows(side: Side, target_ms: float, layers: int, rounds: Sequence[Round]) -> Iterator[Claim]:
    """Of one length."""
    found = {tool: added(tool, rounds) for tool in MODULES if tool in rounds[0] and tool != BARE}
    loop = f"{side.name}, {target_ms:g} ms, {layers} layers"
    for tool, each in found.items():
        bar, met, sure = "", None, True
        if tool == OURS and TRACEML in found:
            bar, met, sure = beside(each, found[TRACEML], found[BARE_AGAIN])
        measured = f"{each.cost_us:+.1f} us ({each.low_us:+.1f} to {each.high_us:+.1f}), "
        measured += f"{100 * each.cost_us / each.step_us:+.1f} % of {each.step_us:.0f} us"
        yield Claim(
            f"beside others, {'A/A' if tool == BARE_AGAIN else tool}",
            loop,
            measured,
            bar,
            met,
            {"side": side.name, "target_ms": target_ms, "tool": tool, **asdict(each)},
            sure,
        )


def beside(ours: Added, traceml: Added, noise: Added) -> tuple[str, bool | None, bool]:
    """(the bar, whether we keep it, whether that is beyond the noise)."""
    if traceml.low_us <= 0:
        return "a tenth of TraceML's, which is lost in the noise", None, False
    low_us, allowed_us, high_us = (
        TENTH * us for us in (traceml.low_us, traceml.cost_us, traceml.high_us)
    )
    told = ours.high_us <= low_us or ours.low_us > high_us
    told = told and abs(ours.cost_us - allowed_us) > abs(noise.cost_us)
    told = told and ours.rounds >= FEWEST_ROUNDS
    return f"a tenth of TraceML's: {allowed_us:.0f} us", ours.cost_us <= allowed_us, told


def added(tool: str, rounds: Sequence[Round]) -> Added:
    """Over the bare process."""
    more_us = [one[tool] - one[BARE] for one in rounds]
    return Added(
        len(rounds),
        statistics.median(one[BARE] for one in rounds),
        statistics.median(more_us),
        *spread(more_us, statistics.median),
    )


def _layers(side: Side) -> list[int]:
    """Calibrated in a process of its own: this one keeps off the device."""
    code = "import json; from tests.bench.cost.loop import layers_for; "
    code += "from tests.measuring.one_thread import one_thread; one_thread(); "
    code += f"print(json.dumps(layers_for({list(TARGETS_MS)})))"
    done = subprocess.run(
        [sys.executable, "-c", code],
        capture_output=True,
        text=True,
        cwd=ROOT,
        env={**os.environ, **side.environment, "PYTHONPATH": python_path()},
        timeout=START_S,
        check=True,
    )
    layers: list[int] = json.loads(done.stdout.splitlines()[-1])
    return layers
