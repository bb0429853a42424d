"""A compiled training step is the same with the probe, watched: graphs, breaks, losses."""

import json
import sys
from pathlib import Path

import pytest

from tests.processes.monitored import hello_of, started, subscribed

SCRIPT = """
import torch
import probe
probe.install()
import json, sys
from torch.utils.data import DataLoader

torch.manual_seed(0)
net = torch.nn.Sequential(torch.nn.Linear(16, 16), torch.nn.ReLU(), torch.nn.Linear(16, 1))
optimizer = torch.optim.Adam(net.parameters(), lr=1e-3)

def step(x):
    {body}

step = torch.compile(step, backend="eager", fullgraph={fullgraph})
print("ready", flush=True)
sys.stdin.readline()
losses = []
for batch in DataLoader(torch.randn(64, 16), batch_size=2):
    losses.append(float(step(batch).detach()))
    {after}
from torch._dynamo.utils import counters
stats = {{key: dict(value) for key, value in counters.items() if key in ("stats", "graph_break")}}
print(json.dumps([losses, stats]), flush=True)
sys.stdin.readline()
"""
WHOLE = """
    optimizer.zero_grad()
    loss = net(x).square().mean()
    loss.backward()
    optimizer.step()
    return loss
"""
FORWARD = "return net(x).square().mean()"
AFTER = "loss = net(batch).square().mean(); loss.backward(); optimizer.step()"


@pytest.mark.parametrize(
    ("body", "fullgraph", "after"),
    [(WHOLE.strip(), False, ""), (FORWARD, True, AFTER)],
    ids=["whole step", "full graph"],
)
def test_a_compiled_step_is_the_same(
    tmp_path: Path, body: str, fullgraph: bool, after: str
) -> None:
    script = SCRIPT.format(body=body, fullgraph=fullgraph, after=after)
    output, warned = [], []
    for setting in ("0", "1"):
        with started(script, tmp_path, GPUWATCH=setting) as run:
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
    (bare, bare_stats), (watched, watched_stats) = map(json.loads, output)
    assert watched == bare
    assert watched_stats["stats"] == bare_stats["stats"]
    breaks, bare_breaks = (
        reported.get("graph_break", {}) for reported in (watched_stats, bare_stats)
    )
    if sys.version_info >= (3, 13):
        # There any hook on an optimizer, an empty one too, spares one of torch's own two breaks
        # around its step: the graphs are the same.
        breaks, bare_breaks = dict.fromkeys(breaks), dict.fromkeys(bare_breaks)
    assert breaks == bare_breaks
