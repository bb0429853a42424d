"""Section `peers`: what TraceML, gpuprof and gpuwatch add to the same steps, in the same run.

TraceML cannot be taken out of a process again, so each tool has a process of its own, and they
train in turns of 0.3 s, or of five steps where those take longer, in random order; those whose
turn it is not are stopped. What a tool adds is the median over the rounds of its mean step less the
bare one's of the same round. "The same twice" is a second bare process: two of a kind may differ by
half a per cent.
"""

import importlib.util
import json
import os
import random
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import asdict
from pathlib import Path
from time import monotonic
from typing import Final

from tests.bench.cost.intervals import Bar, Interval, interval, judged
from tests.bench.cost.machine import Side, sides
from tests.bench.cost.peer import START_S, Peer
from tests.measuring.child import ROOT, python_path
from tests.measuring.claims import Claim, broken

TARGETS_MS: Final = (0.5, 2.0, 20.0)
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
Round = Mapping[str, float]
"""Mean step of each tool's turn, us."""


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
    for target_ms, rounds in zip(TARGETS_MS, seen, strict=True):
        if rounds:
            yield from rows(side, target_ms, rounds)


def turn_s(target_ms: float) -> float:
    """How long one tool trains at a time."""
    return max(TURN_S, FEWEST_STEPS * target_ms / 1e3)


def rows(side: Side, target_ms: float, rounds: Sequence[Round]) -> Iterator[Claim]:
    """Of one length."""
    found = {tool: added(tool, rounds) for tool in MODULES if tool in rounds[0] and tool != BARE}
    for tool, each in found.items():
        bar = tenth(found[TRACEML]) if tool == OURS and TRACEML in found else None
        measured, met = judged(each, bar, "us", signed=True)
        yield Claim(
            f"beside others, {'the same twice' if tool == BARE_AGAIN else tool}",
            f"{side.name}, {target_ms:g} ms",
            measured,
            "" if bar is None else f"{bar.most:.0f} us, a tenth of TraceML's",
            met,
            {"unit": "us", **asdict(each)},
        )


def tenth(traceml: Interval) -> Bar | None:
    """The bar; none where TraceML's cost cannot be distinguished from nothing."""
    return Bar(TENTH * traceml.value) if traceml.low > 0 else None


def added(tool: str, rounds: Sequence[Round]) -> Interval:
    """Over the bare process."""
    return interval([one[tool] - one[BARE] for one in rounds])


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
