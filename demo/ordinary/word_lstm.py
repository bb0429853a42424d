"""A language model of words: an LSTM over a corpus in columns, updated by hand.

As in the classic example: `batchify`, truncated back-propagation, clipping, and parameters changed
in place instead of an optimizer.
"""

import argparse
import math
from collections.abc import Iterator

import torch
from meter import DEVICE, ON_GPU, Meter, add_budget
from torch import nn

ntokens = 10_000 if ON_GPU else 1_000
emsize, nhid, nlayers = (650, 650, 2) if ON_GPU else (96, 96, 1)
batch_size, bptt = (20, 35) if ON_GPU else (10, 20)
Hidden = tuple[torch.Tensor, torch.Tensor]


class RNNModel(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.drop = nn.Dropout(0.2)
        self.encoder = nn.Embedding(ntokens, emsize)
        self.rnn = nn.LSTM(emsize, nhid, nlayers)
        self.decoder = nn.Linear(nhid, ntokens)

    def forward(self, words: torch.Tensor, hidden: Hidden) -> tuple[torch.Tensor, Hidden]:
        output, hidden = self.rnn(self.drop(self.encoder(words)), hidden)
        return self.decoder(self.drop(output)).view(-1, ntokens), hidden

    def init_hidden(self, bsz: int) -> Hidden:
        return (
            torch.zeros(nlayers, bsz, nhid, device=DEVICE),
            torch.zeros(nlayers, bsz, nhid, device=DEVICE),
        )


def batchify(length: int) -> torch.Tensor:
    return torch.randint(ntokens, (length, batch_size)).to(DEVICE)


def chunks(source: torch.Tensor) -> Iterator[tuple[torch.Tensor, torch.Tensor]]:
    for i in range(0, source.size(0) - 1 - bptt, bptt):
        yield source[i : i + bptt], source[i + 1 : i + 1 + bptt].reshape(-1)


def repackage_hidden(hidden: Hidden) -> Hidden:
    return hidden[0].detach(), hidden[1].detach()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    add_budget(parser)
    parser.add_argument("--optimizer", action="store_true", help="torch.optim.SGD, fused")
    parser.add_argument("--keep-loss", action="store_true", help="sum the loss on the GPU")
    parser.add_argument("--bf16", action="store_true")
    parser.add_argument("--eval-chunks", type=int, default=20)
    args = parser.parse_args()
    torch.manual_seed(1111)
    lr, clip, log_interval = 20.0, 0.25, 50
    train_data, val_data = batchify(100 * bptt + 2), batchify(args.eval_chunks * bptt + 2)
    model = RNNModel().to(DEVICE)
    criterion = nn.CrossEntropyLoss()
    sgd = torch.optim.SGD(model.parameters(), lr=lr, fused=True)
    amp = torch.autocast(DEVICE.type, torch.bfloat16, enabled=args.bf16)
    meter = Meter(args.seconds)

    def evaluate(data_source: torch.Tensor) -> float:
        model.eval()
        total_loss = 0.0
        hidden = model.init_hidden(batch_size)
        with torch.no_grad():
            for data, targets in chunks(data_source):
                output, hidden = model(data, hidden)
                hidden = repackage_hidden(hidden)
                total_loss += len(data) * criterion(output, targets).item()
        return total_loss / len(data_source)

    def train(epoch: int) -> bool:
        model.train()
        total = torch.zeros((), device=DEVICE)
        total_loss = 0.0
        hidden = model.init_hidden(batch_size)
        for batch, (data, targets) in enumerate(chunks(train_data)):
            model.zero_grad()
            hidden = repackage_hidden(hidden)
            with amp:
                output, hidden = model(data, hidden)
                loss = criterion(output, targets)
            loss.backward()
            torch.nn.utils.clip_grad_norm_(model.parameters(), clip)
            if args.optimizer:
                sgd.step()
            else:
                for p in model.parameters():
                    if p.grad is not None:
                        p.data.add_(p.grad, alpha=-lr)
            if args.keep_loss:
                total += loss.detach()
            else:
                total_loss += loss.item()
            if batch % log_interval == 0 and batch > 0:
                cur_loss = (total_loss + total.item()) / log_interval
                print(f"| epoch {epoch} | {batch} batches | ppl {math.exp(min(20, cur_loss)):.2f}")
                total_loss = 0.0
                total.zero_()
            if meter.update(batch_size):
                return True
        return False

    for epoch in range(1, 1_000_000):
        if train(epoch):
            return
        if args.eval_chunks:
            print(f"| end of epoch {epoch} | valid loss {evaluate(val_data):.2f}")


if __name__ == "__main__":
    main()
