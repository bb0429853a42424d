"""Section `unused`: CPU time of one look for gradients that nothing uses, on the training thread.

It walks through the graph of a backward: at most three times in a run, right before a backward. The
net's own forward and backward, in between, take the caches, as in a loop. An optimizer has its head
alone, so that every other parameter is suspected, the longest case.
"""

import gc
from collections.abc import Iterator
from dataclasses import asdict
from time import monotonic, thread_time_ns
from typing import Final

import torch
from torch import nn

from gpuwatch.probe.settings.unused import MOST_WALKS, SURE_NS, Unused
from tests.bench.cost.intervals import FEWEST, interval, judged
from tests.measuring.claims import Claim

LAYERS: Final = 12
WIDTH: Final = 64


def claims(seconds: float) -> Iterator[Claim]:
    """Two rows, within about so many seconds: the walk, and the second look, which compares."""
    layer = nn.TransformerEncoderLayer(WIDTH, 4, 4 * WIDTH, batch_first=True)
    net, head = nn.TransformerEncoder(layer, LAYERS), nn.Linear(WIDTH, 10)
    used = {id(one) for one in head.parameters()}
    walk_ms: list[float] = []
    compare_ms: list[float] = []
    until_s = monotonic() + seconds
    while len(walk_ms) < FEWEST or monotonic() < until_s:
        unused = Unused()
        for took_ms, now_ns in ((walk_ms, 0), (compare_ms, SURE_NS)):
            loss = head(net(torch.randn(8, 32, WIDTH))).sum()
            gc.collect()  # one of the program's own that falls into it takes 40 ms
            began_ns = thread_time_ns()
            found = unused.look(loss.grad_fn, used, (), now_ns)
            took_ms.append((thread_time_ns() - began_ns) / 1e6)
            loss.backward()
        assert found["unused_parameters"], "the look has found nothing"
    loop = f"transformer of {LAYERS} layers, host"
    rows = (
        ("walk", f"{MOST_WALKS} times", walk_ms),
        ("comparison", f"{MOST_WALKS} times", compare_ms),
    )
    for what, often, took_ms in rows:
        seen = interval(took_ms)
        measured, _ = judged(seen, None, "ms", 2)
        figures = {"unit": "ms", **asdict(seen)}
        item = f"CPU, unused gradients: {what}, {often} in a run at the most"
        yield Claim(item, loop, measured, "", None, figures)
