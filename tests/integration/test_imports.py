"""What the probe loads into a run, when, and on which thread."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final

from gpuwatch.tui.steps import Batch
from tests.processes.monitored import Run, hello_of, started, subscribed

MOST_RUNS: Final = 8

TRAINS: Final = """
    import select, sys, threading
    import torch
    imported = []

    def note(event, args):
        if event == "import":
            imported.append((args[0], threading.get_ident()))

    sys.addaudithook(note)
    import probe; probe.install()
    net = torch.nn.Linear(8, 1)
    optimizer = torch.optim.SGD(net.parameters(), lr=0.1)

    def train():
        for batch in torch.utils.data.DataLoader(torch.randn(64, 8), batch_size=32):
            optimizer.zero_grad()
            net(batch).mean().backward()
            optimizer.step()

    train()
    loaded = {name for name in sys.modules if name.startswith("gpuwatch.probe.")}
    print(*sorted(name.removeprefix("gpuwatch.probe.") for name in loaded), flush=True)
    while not select.select([sys.stdin], [], [], 0)[0]:
        train()
    sys.stdin.readline()
    later = {name for name in sys.modules if name.startswith("gpuwatch.probe.")} - loaded
    print(*sorted(name.removeprefix("gpuwatch.probe.") for name in later), flush=True)
    sys.stdin.readline()
    print(*[name for name, thread in imported if thread != threading.get_ident()], flush=True)
"""


KEPT_FOR_LATER: Final = (
    *("settings", "device", "wrapped", "hooks.dispatched"),
    *("numerics", "flop_count", "call_costs"),
)
"""What no run loads that nobody watches."""


@contextmanager
def unwatched(tmp_path: Path) -> Iterator[tuple[Run, list[str]]]:
    """A run that nobody watches, and what it has loaded. An exporter of another test that runs
    meanwhile watches every run of this host, for as long as its own test takes."""
    for more in reversed(range(MOST_RUNS)):
        with started(TRAINS, tmp_path) as run:
            loaded = run.line().split()
            if not more or not any(name.startswith(KEPT_FOR_LATER) for name in loaded):
                yield run, loaded
                return


def test_a_run_loads_what_it_uses_and_its_own_thread_loads_it(tmp_path: Path) -> None:
    """A fork while another thread imports leaves the child a lock that nobody opens."""
    with unwatched(tmp_path) as (run, at_first):
        assert {"hooks.dataloader", "publish", "serve"} <= {*at_first}
        assert not [name for name in at_first if name.startswith(KEPT_FOR_LATER)]
        endpoint = hello_of(run.pid).endpoint
        assert endpoint is not None
        with subscribed(endpoint) as next_reply:
            while True:
                batch = next_reply()
                if isinstance(batch, Batch) and batch.settings is not None:
                    break
        run.send()
        later = run.line().split()
        assert [name for name in later if not name.startswith(("settings", "call_costs"))] == []
        assert {"settings.sampler", "call_costs"} <= {*later}
        run.send()
        assert run.line() == "", "no other thread imports"
