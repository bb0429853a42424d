"""The loop of a run: fetch, copy, forward, backward, update, and what comes between steps."""

import itertools
import math
import random
import time
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Final

import torch
from torch import nn
from torch.nn import functional

from generated.families import Batch, scale_of
from generated.feeding import (
    BURST_EVERY,
    Chore,
    Pace,
    cropped,
    lengths_of,
    loader_of,
    ready_batches,
    to_device,
)
from generated.models import Model, Models, StepGraph
from generated.spec import Cause, CauseName, Spec

CLASSES_LISTED: Final = 20
PIECES: Final = 32
PAGEABLE_BYTES_PER_S: Final = 6e9
"""From pageable memory to an H200 (measured there)."""
TINY_COPY_S: Final = 12e-6
SAVED_BYTES_PER_S: Final = 400e6
"""About what torch.save writes to a local file; what a save really takes is measured."""
MOST_SAVED: Final = {"cpu": 48 << 20, "cuda": 256 << 20}
"""Bytes; a longer pause is made of more frequent saves."""


@dataclass(frozen=True)
class Speed:
    """What parts of the run without its causes take on this machine; causes are made from it."""

    step_s: float
    forward_s: float
    pace: Pace
    restart_s: float = 0.0
    """Of the loader's workers, where a cause restarts them."""
    compile_s: float = 0.0
    """Of one more compilation, where a cause makes them."""


class Training:
    """One run; a step at a time."""

    def __init__(self, spec: Spec, models: Models, speed: Speed, folder: Path) -> None:
        self.spec = spec
        self.speed = speed
        self.model: Model = models.model(spec)
        self.pool = models.pool(spec)
        self.folder = folder
        self.batch = scale_of(spec).batch
        self.number = 0
        """Batches trained on."""
        self.losses: list[float] = []
        held = ready_batches(replace(spec, pinned=False), self.pool)
        self.resident = to_device(next(held), spec)
        self._lengths = random.Random(spec.seed)
        self._logged = self._chore("logger")
        self._drawn = self._chore("draw")
        self._extra = self._extra_tensors()
        self._validation = loader_of(replace(spec, workers=0, more_workers=0), self.pool)
        self._log = (folder / "log.csv").open("a") if spec.log == "file" else None
        self.evaluate_every, self.evaluate_batches = self._evaluation()
        self.checkpoint_every, self._saved = self._checkpoints()
        self.temperature_every = self._temperature_every()
        self._graph: StepGraph | None = None
        if spec.whole_step:
            parameters = list(self.model.net.parameters())
            self._graph = StepGraph(self.resident, parameters, self.gradients, self.update)

    @property
    def period(self) -> int:
        """Batches after which everything that comes now and then has come as often as ever."""
        spec = self.spec
        events = [spec.log_every if spec.log != "none" else 1, spec.accumulation]
        events += [spec.sync_every if spec.sync != "none" else 1, self.checkpoint_every or 1]
        events += [self.evaluate_every or 1, self.temperature_every or 1]
        events += [BURST_EVERY if spec.cause("burst") else 1, self.epoch or 1]
        return max(events)

    def steps(self) -> Iterator[int]:
        """Train, for ever; yields the samples of each batch when it is done."""
        if self.spec.feed == "loader" and not self.spec.ready:
            return self.epochs()
        if self.spec.feed == "function" and not self.spec.ready:
            return self.iterations()
        return self.prepared()

    def epochs(self) -> Iterator[int]:
        """A loop over a DataLoader."""
        chore, burst = self._chores_of_the_loader()
        loader = loader_of(self.spec, self.pool, chore, burst, self.epoch)
        for _epoch in itertools.count():
            for batch in loader:
                self.learn(batch)
                yield self.batch

    def iterations(self) -> Iterator[int]:
        """A loop that draws its batches itself."""
        while True:
            self.learn(self.get_batch())
            yield self.batch

    def prepared(self) -> Iterator[int]:
        """A loop over batches that lie ready: in host memory, or on the device."""
        resident = self.spec.feed == "resident"
        for batch in ready_batches(self.spec, self.pool):
            self.learn(self.resident if resident else batch)
            yield self.batch

    def get_batch(self) -> Batch:
        """Rows drawn at random, stacked."""
        if self._drawn is not None:
            self._drawn()
        rows = torch.randint(len(self.pool[0]), (self.batch,))
        inputs, targets = self.pool
        if self.spec.family in ("gpt", "lstm"):
            inputs = torch.stack([inputs[row] for row in rows.tolist()])
            targets = torch.stack([targets[row] for row in rows.tolist()])
        else:
            inputs, targets = inputs[rows], targets[rows]
        return (
            (inputs.pin_memory(), targets.pin_memory()) if self.spec.pinned else (inputs, targets)
        )

    def learn(self, batch: Batch) -> None:
        """One batch: copy, forward, backward, and the update where it is due."""
        spec = self.spec
        inputs, targets = self.copied(batch)
        step = self._graph or self
        scores, loss = step.gradients(inputs, targets)
        self.number += 1
        if self.number % spec.accumulation == 0:
            if spec.cause("norms"):
                self.losses[:] = [self.gradient_norm()]
            step.update()
        if spec.cause("classes"):
            self.class_accuracy(scores.detach(), targets)
        if spec.cause("empty_cache"):
            torch.cuda.empty_cache()
        self.between(loss.detach())

    def gradients(self, inputs: torch.Tensor, targets: torch.Tensor) -> Batch:
        """Scores and loss, after the backward."""
        scores = self.forward(inputs)
        loss = functional.cross_entropy(scores.flatten(0, -2).float(), targets.flatten())
        (loss / self.spec.accumulation).backward()
        return scores, loss

    def update(self) -> None:
        """Of the parameters, by gradients that are clipped where the run does."""
        if self.spec.clip:
            nn.utils.clip_grad_norm_(self.model.net.parameters(), 1.0)
        self.model.update()

    def copied(self, batch: Batch) -> Batch:
        """The batch on the device."""
        spec = self.spec
        if not spec.copies:
            return self.resident
        if spec.feed == "resident":
            return batch
        for extra in self._extra:
            extra.to(spec.device)
        if spec.varied:
            batch = cropped(batch, self._lengths.choice(lengths_of(spec)))
        return to_device(batch, spec) if spec.device != "cpu" else batch

    def forward(self, inputs: torch.Tensor) -> torch.Tensor:
        """Scores of the inputs; with a cause, piece by piece."""
        if self.spec.cause("pieces"):
            size = max(1, len(inputs) // PIECES)
            return torch.cat([self.model(part) for part in inputs.split(size)])
        every = self.temperature_every
        if every and self.number % every == 0:
            self.model.change_temperature()
        return self.model(inputs)

    def between(self, loss: torch.Tensor) -> None:
        """What a loop does from one step to the next."""
        spec, number = self.spec, self.number
        if number % spec.sync_every == 0:
            if spec.sync == "item":
                self.losses[-50:] = [*self.losses[-49:], loss.item()]
            elif spec.sync == "finite" and not torch.isfinite(loss):
                raise FloatingPointError(f"the loss is {loss.item()} at batch {number}")
            elif spec.sync == "synchronize" and spec.device == "cuda":
                torch.cuda.synchronize()
        if self._logged is not None:
            self._logged()
        if spec.log != "none" and number % spec.log_every == 0:
            self.log(loss)
        if self.evaluate_every and number % self.evaluate_every == 0:
            if spec.evaluation == "loader":
                self.validate()
            else:
                self.estimate_loss()
        if self.checkpoint_every and number % self.checkpoint_every == 0:
            self.save()

    def log(self, loss: torch.Tensor) -> None:
        """A line about the training."""
        line = f"batch {self.number}, loss {loss.item():.4f}, at {time.time():.1f}"
        if self._log is None:
            print(line)
        else:
            self._log.write(line + "\n")
            self._log.flush()

    def validate(self) -> None:
        """Over a loader, with the net in evaluation mode."""
        net = self.model.net
        net.eval()
        right = torch.zeros((), device=self.spec.device)
        with torch.no_grad():
            for inputs, targets in itertools.islice(self._validation, self.evaluate_batches):
                inputs, targets = to_device((inputs, targets), self.spec)
                right += (self.model(inputs).argmax(-1) == targets).float().mean()
        self.losses[-50:] = [*self.losses[-49:], right.item()]
        net.train()

    @torch.no_grad()
    def estimate_loss(self) -> float:
        """Over batches drawn by the function, in whatever mode the net is."""
        losses = torch.zeros(self.evaluate_batches)
        for at in range(self.evaluate_batches):
            inputs, targets = to_device(self.get_batch(), self.spec)
            scores = self.model(inputs).float()
            losses[at] = functional.cross_entropy(scores.flatten(0, -2), targets.flatten()).item()
        return float(losses.mean())

    def save(self) -> None:
        """A checkpoint, which replaces the one before."""
        state = {"net": self.model.net.state_dict(), "at": self.number, "more": self._saved}
        torch.save(state, self.folder / "checkpoint.pt")

    def gradient_norm(self) -> float:
        """Of all parameters, read one by one."""
        every = [each.grad for each in self.model.net.parameters() if each.grad is not None]
        return math.sqrt(sum(grad.float().norm().item() ** 2 for grad in every))

    def class_accuracy(self, scores: torch.Tensor, targets: torch.Tensor) -> dict[int, float]:
        """Of each class, read one by one."""
        guessed, wanted = scores.argmax(-1).flatten(), targets.flatten()
        found: dict[int, float] = {}
        for number in range(CLASSES_LISTED):
            picked = wanted == number
            if picked.any():
                found[number] = (guessed[picked] == number).float().mean().item()
        return found

    def _chore(self, name: CauseName) -> Chore | None:
        cause = self.spec.cause(name)
        if cause is None:
            return None
        return self.speed.pace.chore(cause.work, self._added_s(cause))

    def _added_s(self, cause: Cause) -> float:
        """To a step, so that the cause takes its strength of the whole."""
        return self.speed.step_s * cause.strength / (1 - cause.strength)

    def _chores_of_the_loader(self) -> tuple[Chore | None, Chore | None]:
        """For each batch, and for one of ten."""
        pace, step_s, workers = self.speed.pace, self.speed.step_s, self.spec.workers
        transform, burst = self.spec.cause("transform"), self.spec.cause("burst")
        chore = slow = None
        if transform is not None:
            # Workers need the whole step each before they hold up the training.
            alone_s, shared_s = self._added_s(transform), step_s * workers
            seconds = shared_s / (1 - transform.strength) if workers else alone_s
            chore = pace.chore(transform.work, seconds)
        if burst is not None:
            slow = pace.chore(burst.work, BURST_EVERY * (self._added_s(burst) + step_s * workers))
        return chore, slow

    @property
    def epoch(self) -> int | None:
        """Batches, where epochs are short and workers start anew."""
        cause = self.spec.cause("restarts")
        if cause is None or self.spec.ready:
            return None
        return max(2, round(self.speed.restart_s / self._added_s(cause)))

    def _extra_tensors(self) -> list[torch.Tensor]:
        pageable, tiny = self.spec.cause("pageable"), self.spec.cause("tiny_copies")
        extra: list[torch.Tensor] = []
        if pageable is not None:
            numbers = min(self._added_s(pageable) * PAGEABLE_BYTES_PER_S / 4, 1 << 28)
            extra.append(torch.zeros(int(numbers)))
        if tiny is not None:
            count = min(2_000, max(4, round(self._added_s(tiny) / TINY_COPY_S)))
            extra += [torch.zeros(64) for _ in range(count)]
        return extra

    def _evaluation(self) -> tuple[int, int]:
        """Batches from one evaluation to the next (0: none), and batches of an evaluation."""
        spec, cause = self.spec, self.spec.cause("evaluations")
        if cause is not None:
            seconds = spec.evaluate_every * self._added_s(cause)
            return spec.evaluate_every, max(1, round(seconds / self.speed.forward_s))
        return (spec.evaluate_every, spec.evaluate_batches) if spec.evaluation != "none" else (0, 0)

    def _checkpoints(self) -> tuple[int, torch.Tensor | None]:
        """Batches from one to the next (0: none), and what is saved beside the net."""
        cause = self.spec.cause("checkpoints")
        if cause is None:
            return self.spec.checkpoint_every, None
        every = self.spec.evaluate_every
        each = self._added_s(cause) * SAVED_BYTES_PER_S
        while every > 1 and every * each > MOST_SAVED[self.spec.device]:
            every //= 2
        numbers = int(min(every * each, MOST_SAVED[self.spec.device]) / 4)
        return every, torch.zeros(numbers, device=self.spec.device)

    def _temperature_every(self) -> int:
        cause = self.spec.cause("recompiles")
        if cause is None or self.spec.steady:
            return 0
        return max(1, round(self.speed.compile_s / self._added_s(cause)))
