"""A real training, for an hour or so: `python -m tests.soak.training FOLDER NAME ROUND_STEPS`.

Two workers read slowly, so that there are some 50 steps a second and most of each is waiting: the
machine is shared. Epochs end; after every round of steps there is a sprint (`sprint.py`) and an
evaluation, after some a checkpoint. Writes a row for each round into FOLDER/NAME.jsonl: what its
sprint took, and a hash of all losses so far. On a CUDA device where there is one. `GPUWATCH=0`
makes it the bare twin. It ends with the round after FOLDER/stop has appeared.
"""

import probe

probe.install()

import hashlib
import os
import sys
from pathlib import Path
from time import sleep, time
from typing import Any, Final

import torch
from torch.utils.data import DataLoader, Dataset, TensorDataset

from tests.soak.files import Files, add
from tests.soak.hooks_out import Hooks
from tests.soak.sprint import HOOKED_STEPS, STEPS, Block, sprint

WORKERS: Final = 2
STEPS_S: Final = 50
BATCH: Final = 32
FEATURES: Final = 64
EPOCH_ROUNDS: Final = 3
CHECKPOINT_ROUNDS: Final = 2
EVALUATION_BATCHES: Final = 20
WARM_STEPS: Final = 20
"""Steps until the run says that it is ready: its probe is armed by then."""
PUBLISHER: Final = "gpuwatch"
"""The probe's thread, by its name."""


class SlowRows(Dataset[tuple[torch.Tensor, torch.Tensor]]):
    """Rows that take a worker as long as a disk would."""

    def __init__(self, count: int) -> None:
        self._x, self._y = _rows(count, seed=1)

    def __len__(self) -> int:
        return len(self._x)

    def __getitems__(self, wanted: list[int]) -> list[tuple[torch.Tensor, torch.Tensor]]:
        sleep(WORKERS / STEPS_S)
        return [(self._x[at], self._y[at]) for at in wanted]


def _rows(count: int, seed: int) -> tuple[torch.Tensor, torch.Tensor]:
    x = torch.randn(count, FEATURES, generator=torch.Generator().manual_seed(seed))
    return x, x[:, :1].sin()


class Training:
    """A net, its data and its optimizer, all of one seed."""

    def __init__(self, checkpoint: Path, round_steps: int) -> None:
        torch.manual_seed(0)
        self._checkpoint = checkpoint
        self.round_steps = round_steps
        self.device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
        width = 2048 if self.device.type == "cuda" else 128
        self._net = torch.nn.Sequential(
            torch.nn.Linear(FEATURES, width),
            torch.nn.ReLU(),
            torch.nn.Linear(width, width),
            torch.nn.ReLU(),
            torch.nn.Linear(width, 1),
        ).to(self.device)
        self._optimizer = torch.optim.AdamW(self._net.parameters(), lr=1e-3)
        self.loader = DataLoader(
            SlowRows(BATCH * EPOCH_ROUNDS * round_steps),
            batch_size=BATCH,
            shuffle=True,
            num_workers=WORKERS,
            pin_memory=self.device.type == "cuda",
            generator=torch.Generator().manual_seed(2),
        )
        self._in_memory = self._plain(BATCH * STEPS, seed=3)
        self._held_out = self._plain(BATCH * EVALUATION_BATCHES, seed=4)
        self.losses: list[torch.Tensor] = []
        """Since they were last reported."""

    def _plain(self, count: int, seed: int) -> "DataLoader[Any]":
        generator = torch.Generator().manual_seed(seed)
        return DataLoader(TensorDataset(*_rows(count, seed)), BATCH, generator=generator)

    def step(self, batch: Any) -> None:
        """One step."""
        x, y = (part.to(self.device, non_blocking=True) for part in batch)
        self._optimizer.zero_grad()
        loss = torch.nn.functional.mse_loss(self._net(x), y)
        loss.backward()
        self._optimizer.step()
        self.losses.append(loss.detach())

    def sprint(self, hooks: Hooks, seed: int) -> list[dict[str, Block]]:
        """So many steps as `STEPS` says, on what is in memory."""
        batches = iter(self._in_memory)
        return sprint(lambda: self.step(next(batches)), hooks, seed)

    def evaluate(self) -> None:
        """On what is held out."""
        self._net.eval()
        with torch.no_grad():
            for x, y in self._held_out:
                predicted = self._net(x.to(self.device))
                self.losses.append(torch.nn.functional.mse_loss(predicted, y.to(self.device)))
        self._net.train()

    def save(self) -> None:
        """A checkpoint over the one before."""
        state = {"net": self._net.state_dict(), "optimizer": self._optimizer.state_dict()}
        torch.save(state, self._checkpoint)


def train(training: Training, files: Files, out: Path) -> int:
    """Until asked to stop; returns the rounds done."""
    hooks, digest = Hooks(), hashlib.sha256()
    rounds = steps = 0
    while True:
        for batch in training.loader:
            training.step(batch)
            steps += 1
            if steps == WARM_STEPS:
                add(out, ready(training))
                print("ready", flush=True)
            if steps % training.round_steps:
                continue
            rounds += 1
            triples = training.sprint(hooks, seed=rounds)
            training.evaluate()
            digest.update(torch.stack(training.losses).cpu().numpy().tobytes())
            training.losses.clear()
            done = steps + rounds * STEPS
            row = {"steps": done, "losses": digest.hexdigest(), "triples": triples}
            add(out, {"kind": "round", "t": time(), **row})
            if rounds % CHECKPOINT_ROUNDS == 0:
                training.save()
            if files.stop.exists():
                return rounds


def ready(training: Training) -> dict[str, Any]:
    """Who trains, and where."""
    tasks = Path("/proc/self/task").iterdir()
    publisher = [int(one.name) for one in tasks if (one / "comm").read_text() == f"{PUBLISHER}\n"]
    cuda = training.device.type == "cuda"
    return {
        "kind": "ready",
        "t": time(),
        "pid": os.getpid(),
        "publisher": publisher[0] if publisher else None,
        "device": torch.cuda.get_device_name() if cuda else "CPU",
        "torch": torch.__version__,
        "python": sys.version.split()[0],
    }


def main() -> None:
    """Train, and say at the end how many steps there were with the hooks in place."""
    folder, name, round_steps = Path(sys.argv[1]), sys.argv[2], int(sys.argv[3])
    files = Files(folder)
    torch.set_num_threads(1)
    torch.use_deterministic_algorithms(True)
    out = files.training(name)
    rounds = train(Training(folder / f"{name}.pt", round_steps), files, out)
    hooked = rounds * (round_steps + HOOKED_STEPS)
    add(out, {"kind": "end", "t": time(), "rounds": rounds, "hooked_steps": hooked})


if __name__ == "__main__":
    main()
