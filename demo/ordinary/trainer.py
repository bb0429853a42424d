"""A trainer with callbacks, as frameworks have: the loop is theirs, the model and data are yours.

Logs, checks for NaN, saves and evaluates by the settings in its arguments.
"""

import argparse
import json
import tempfile
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import torch
from meter import DEVICE, ON_GPU, Meter, add_budget
from torch import nn
from torch.utils.data import DataLoader, Dataset

Batch = dict[str, torch.Tensor]
length, dim, layers = (256, 768, 6) if ON_GPU else (32, 96, 2)
vocab = 30_000 if ON_GPU else 1_000


@dataclass
class TrainingArguments:
    output_dir: Path
    per_device_batch_size: int = 32 if ON_GPU else 8
    logging_steps: int = 1
    save_steps: int = 25
    eval_steps: int = 100
    eval_batches: int = 10
    max_grad_norm: float = 1.0
    logging_nan_filter: bool = True
    bf16: bool = ON_GPU
    optim_fused: bool = False
    seconds: float = 0.0


class Texts(Dataset[Batch]):
    def __init__(self) -> None:
        self.ids = torch.randint(vocab, (4_096, length))

    def __len__(self) -> int:
        return 1_000_000

    def __getitem__(self, index: int) -> Batch:
        ids = self.ids[index % 4_096]
        return {"input_ids": ids, "labels": ids % 4}


class Tagger(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.embeddings = nn.Embedding(vocab, dim)
        layer = nn.TransformerEncoderLayer(dim, dim // 48, dim * 4, batch_first=True)
        self.encoder = nn.TransformerEncoder(layer, layers)
        self.classifier = nn.Linear(dim, 4)

    def forward(self, input_ids: torch.Tensor, labels: torch.Tensor) -> torch.Tensor:
        logits = self.classifier(self.encoder(self.embeddings(input_ids)))
        return nn.functional.cross_entropy(logits.flatten(0, 1).float(), labels.flatten())


class Callback:
    def on_step_end(self, trainer: "Trainer") -> None: ...

    def on_log(self, trainer: "Trainer", logs: dict[str, float]) -> None: ...


class JsonLog(Callback):
    def on_log(self, trainer: "Trainer", logs: dict[str, float]) -> None:
        trainer.history.append(logs)
        if len(trainer.history) % 10 == 0:
            print(json.dumps(logs))


class Budget(Callback):
    def __init__(self, seconds: float) -> None:
        self.meter = Meter(seconds)

    def on_step_end(self, trainer: "Trainer") -> None:
        trainer.should_stop = self.meter.update(trainer.args.per_device_batch_size)


class Trainer:
    def __init__(
        self, model: nn.Module, args: TrainingArguments, callbacks: list[Callback]
    ) -> None:
        self.model, self.args, self.callbacks = model.to(DEVICE), args, callbacks
        self.optimizer = torch.optim.AdamW(
            model.parameters(), lr=5e-5, fused=args.optim_fused or None
        )
        self.lr_scheduler = torch.optim.lr_scheduler.ConstantLR(self.optimizer, 1.0)
        self.history: list[dict[str, float]] = []
        self.global_step, self.should_stop = 0, False
        self.tr_loss = torch.zeros((), device=DEVICE)

    def get_dataloader(self) -> "DataLoader[Batch]":
        return DataLoader(
            Texts(), self.args.per_device_batch_size, shuffle=False, pin_memory=ON_GPU
        )

    def train(self) -> None:
        self.model.train()
        for inputs in self.batches():
            loss = self.training_step(inputs)
            if self.args.logging_nan_filter and (torch.isnan(loss) or torch.isinf(loss)):
                self.tr_loss += self.tr_loss / (1 + self.global_step)
            else:
                self.tr_loss += loss
            nn.utils.clip_grad_norm_(self.model.parameters(), self.args.max_grad_norm)
            self.optimizer.step()
            self.lr_scheduler.step()
            self.model.zero_grad()
            self.global_step += 1
            self.maybe_log_save_evaluate()
            for callback in self.callbacks:
                callback.on_step_end(self)
            if self.should_stop:
                return

    def batches(self) -> Iterator[Batch]:
        while True:
            for batch in self.get_dataloader():
                yield {name: each.to(DEVICE, non_blocking=True) for name, each in batch.items()}

    def training_step(self, inputs: Batch) -> torch.Tensor:
        with torch.autocast(DEVICE.type, torch.bfloat16, enabled=self.args.bf16):
            loss: torch.Tensor = self.model(**inputs)
        loss.backward()
        return loss.detach()

    def maybe_log_save_evaluate(self) -> None:
        args = self.args
        if args.logging_steps and self.global_step % args.logging_steps == 0:
            logs: dict[str, float] = {
                "loss": self.tr_loss.item() / args.logging_steps,
                "lr": float(self.lr_scheduler.get_last_lr()[0]),
                "time": time.time(),
            }
            self.tr_loss.zero_()
            for callback in self.callbacks:
                callback.on_log(self, logs)
        if args.eval_steps and self.global_step % args.eval_steps == 0:
            self.evaluate()
        if args.save_steps and self.global_step % args.save_steps == 0:
            self.save_checkpoint()

    @torch.no_grad()
    def evaluate(self) -> None:
        self.model.eval()
        losses = []
        for step, inputs in enumerate(self.batches()):
            if step == self.args.eval_batches:
                break
            losses.append(self.model(**inputs).item())
        print({"eval_loss": sum(losses) / len(losses)})
        self.model.train()

    def save_checkpoint(self) -> None:
        torch.save(self.model.state_dict(), self.args.output_dir / "model.pt")
        torch.save(self.optimizer.state_dict(), self.args.output_dir / "optimizer.pt")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    add_budget(parser)
    parser.add_argument("--save-steps", type=int, default=25, help="0: never")
    parser.add_argument("--logging-steps", type=int, default=1)
    parser.add_argument("--no-nan-filter", action="store_true")
    parser.add_argument("--fused", action="store_true", help="AdamW, fused")
    given = parser.parse_args()
    torch.manual_seed(0)
    with tempfile.TemporaryDirectory() as folder:
        args = TrainingArguments(
            output_dir=Path(folder),
            save_steps=given.save_steps,
            logging_steps=given.logging_steps,
            logging_nan_filter=not given.no_nan_filter,
            optim_fused=given.fused,
        )
        Trainer(Tagger(), args, [JsonLog(), Budget(given.seconds)]).train()


if __name__ == "__main__":
    main()
