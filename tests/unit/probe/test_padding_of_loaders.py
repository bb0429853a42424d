"""Padding as it is known of a loader's batches: with its key, and how often they are looked at."""

import sys
from typing import Any

import torch
from torch.utils.data import DataLoader

from gpuwatch.probe.wire import marks
from tests.unit.probe import held_clock
from tests.unit.probe.served import served, train


class Texts(held_clock.Rows):
    """Of two tokens at most, one of them padding, with its mask."""

    def __getitem__(self, index: int) -> Any:
        row = super().__getitem__(index)
        return {"x": row, "attention_mask": torch.tensor([1, index % 2])}


def test_masks_of_batches_are_known_with_their_loader() -> None:
    with held_clock.watched() as run:
        model = held_clock.Model(run.clock)
        optimizer = held_clock.SlowSGD(model, run.clock)
        rows: DataLoader[Any] = DataLoader(Texts(run.clock, 4, 20), batch_size=4)
        for _ in range(3):
            for batch in rows:
                model(batch["x"]).backward()
                optimizer.step()
        run.steps()
        (loader,) = run.timeline.loaders.all()
        padding = run.timeline.loaders.take_padding()
        assert [(one.loader, one.rows, one.length, one.kept, one.longest) for one in padding] == [
            (loader.key, 4, 2, 6, 2)
        ] * 3  # the first batch of each epoch
        assert run.timeline.loaders.take_padding() == []


class Words(held_clock.Rows):
    """Of one to four ids, filled up to sixteen."""

    def __getitem__(self, index: int) -> Any:
        kept = torch.arange(16) <= index % 4
        return super().__getitem__(index), torch.arange(16).add(index + 1) * kept


def test_batches_without_a_mask_are_known_by_their_ids() -> None:
    with held_clock.watched() as run:
        model = held_clock.Model(run.clock)
        optimizer = held_clock.SlowSGD(model, run.clock)
        rows: DataLoader[Any] = DataLoader(Words(run.clock, 4, 20), batch_size=4)
        for _ in range(2):
            for batch, _ in rows:
                model(batch).backward()
                optimizer.step()
        run.steps()
        padding = run.timeline.loaders.take_padding()
        assert [(one.rows, one.length, one.kept, one.longest, one.by_ids) for one in padding] == [
            (4, 16, 10, 4, True)
        ] * 2


def test_batches_with_masks_are_looked_at_in_each_turn_while_somebody_watches() -> None:
    """A share that varies from batch to batch; others are looked at once a second."""
    server, recorder, monitor = served()

    def looks_again(padding: tuple[int, ...] | None) -> bool:
        train(recorder, 1)
        recorder.look_with(lambda _: (4, 1, 32, "cpu", None, 16, padding))
        assert recorder.extra is not None
        recorder.extra(marks.FETCH_LEAVE, None)
        assert recorder._look is None
        server._next_look_ns = sys.maxsize
        server.turn()
        return recorder._look is not None

    server.turn()
    assert not looks_again((4, 4, 9, 4))
    monitor.subscribe()
    server.turn()
    server.turn()
    assert looks_again((4, 4, 9, 4))
    assert not looks_again(None)
