"""A compiled training step is the same with the probe, watched: graphs, breaks, losses."""

import json
import subprocess
import sys
from pathlib import Path
from textwrap import dedent
from typing import Any

import pytest

from tests.processes.monitored import SOON_ENDED, hello_of, started, subscribed

SCRIPT = (
    SOON_ENDED
    + """
import torch
import probe
probe.install()
import json, sys
import torch._dynamo
from torch._dynamo.utils import counters
from torch.utils.data import DataLoader

def trained(whole, fullgraph):
    torch.manual_seed(0)
    torch._dynamo.reset()
    counters.clear()
    net = torch.nn.Sequential(torch.nn.Linear(16, 16), torch.nn.ReLU(), torch.nn.Linear(16, 1))
    optimizer = torch.optim.Adam(net.parameters(), lr=1e-3)

    def step(x):
        optimizer.zero_grad()
        loss = net(x).square().mean()
        loss.backward()
        optimizer.step()
        return loss

    def forward(x):
        return net(x).square().mean()

    compiled = torch.compile(step if whole else forward, backend="eager", fullgraph=fullgraph)
    losses = []
    for batch in DataLoader(torch.randn(64, 16), batch_size=2):
        loss = compiled(batch)
        losses.append(float(loss.detach()))
        if not whole:
            loss.backward()
            optimizer.step()
            optimizer.zero_grad()
    stats = {key: dict(value) for key, value in counters.items() if key in ("stats", "graph_break")}
    return losses, stats

print("ready", flush=True)
sys.stdin.readline()
print(json.dumps([trained(True, False), trained(False, True)]), flush=True)
sys.stdin.readline()
"""
)


@pytest.mark.slow
@pytest.mark.timeout(150)
def test_a_compiled_step_is_the_same(tmp_path: Path) -> None:
    """The whole step, which breaks at its backward; and the forward alone, in one graph."""
    output, warned = [], []
    for setting in ("0", "1"):
        with started(SCRIPT, tmp_path, GPUWATCH=setting) as run:
            assert run.line() == "ready"
            if setting == "1":
                endpoint = hello_of(run.pid).endpoint
                assert endpoint is not None
                with subscribed(endpoint) as next_reply:
                    next_reply()
                    run.send()
                    output.append(run.line())
            else:
                run.send()
                output.append(run.line())
            run.send()
            status, _, err = run.finish()
            assert status == 0, err
            assert "gpuwatch" not in err
            warned.append(err.count("Warning"))
    assert warned[0] == warned[1]
    for bare, watched in zip(*map(json.loads, output), strict=True):
        _are_the_same(bare, watched)


def _are_the_same(bare: Any, watched: Any) -> None:
    (losses, stats), (watched_losses, watched_stats) = bare, watched
    assert watched_losses == losses
    assert losses[-1] < losses[0]
    assert stats["stats"]["unique_graphs"] >= 1
    assert watched_stats["stats"] == stats["stats"]
    breaks, bare_breaks = (one.get("graph_break", {}) for one in (watched_stats, stats))
    if sys.version_info >= (3, 13):
        # There any hook on an optimizer, an empty one too, spares one of torch's own two breaks
        # around its step: the graphs are the same.
        breaks, bare_breaks = dict.fromkeys(breaks), dict.fromkeys(bare_breaks)
    assert breaks == bare_breaks


def test_what_was_compiled_is_known_after_a_reset() -> None:
    """Counters and backends are empty then."""
    script = """
        import torch
        from gpuwatch.probe.dispatch_modes import compiles, holds_compiled
        print(compiles(), holds_compiled())
        import torch._dynamo
        torch.compiler.disable(lambda: None)
        print(compiles(), holds_compiled())
        compiled = torch.compile(lambda x: x + 1, backend="eager")
        print(compiles(), holds_compiled())
        compiled(torch.ones(2))
        torch._dynamo.reset()
        torch._dynamo.utils.counters.clear()
        print(compiles(), holds_compiled())
    """
    run = [sys.executable, "-c", dedent(script)]
    printed = subprocess.run(run, capture_output=True, text=True, check=True).stdout
    assert printed.split() == [*4 * ["False"], "True", "True", "False", "True"]
