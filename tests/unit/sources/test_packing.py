"""Whether a program packs the texts of its batches, by the source on the way to its net."""

from pathlib import Path

import pytest

from gpuwatch.tui.sources.source_text.files import SourceLines
from gpuwatch.tui.sources.source_text.structure import SourceStructure
from tests.unit.sources.test_source_structure import NET, SUMMED, structure

PACKED = """
from torch.nn.utils import rnn
class Tagger:
    def forward(self, words, lengths):
        packed = rnn.pack_padded_sequence(self.words(words), lengths)  # 1
        return self.lstm(packed)
"""


def test_a_program_that_packs_its_texts_may_not_compute_on_padding(tmp_path: Path) -> None:
    assert structure(tmp_path, SUMMED, "step").unpacked
    assert not structure(tmp_path, SUMMED, "step", net=False).unpacked
    assert not structure(tmp_path, PACKED, "Tagger.forward").unpacked
    source = SourceStructure(SourceLines([tmp_path]))
    assert not source.of(("step (elsewhere.py:9)", NET)).unpacked
    assert not source.of(("Trainer.train (transformers/trainer.py:9)", NET)).unpacked


@pytest.mark.parametrize(
    ("library", "unpacked"),
    [
        ("x = pack_padded_sequence(x, lengths)", False),
        ("from torch.nn.utils import rnn", True),
        (None, False),
    ],
    ids=["packs", "does not", "cannot be read"],
)
def test_a_library_on_the_way_may_pack_too(
    tmp_path: Path, library: str | None, unpacked: bool
) -> None:
    (tmp_path / "train.py").write_text(SUMMED)
    if library is not None:
        folder = tmp_path / "site-packages" / "seqlib"
        folder.mkdir(parents=True)
        (folder / "rnn.py").write_text(f"{library}\n")
    source = SourceStructure(SourceLines([tmp_path]))
    started = ("<module> (site-packages/launcher/run.py:3)", "run (runpy.py:9)")
    step = "step (train.py:6)"
    lstm = "LSTM.forward (torch/nn/modules/rnn.py:9)"
    encoder = "Encoder.forward (site-packages/seqlib/rnn.py:6)"
    assert source.of((*started, step, NET, encoder, NET, lstm)).unpacked is unpacked
    assert source.of((*started, step, NET, lstm)).unpacked


TAGGER = """
def forward(self, ids, lengths, seq_len):
    batch, words = ids.shape
    longest = int((ids != 0).sum(1).max())
    {line}
    return self.lstm(self.words(ids))  # 1
"""


@pytest.mark.parametrize(
    ("line", "unpacked"),
    [
        ("ids = ids[:, : int((ids != 0).sum(1).max())]", False),
        ("ids = ids[:, :longest]", False),
        ("ids = ids[:, -longest:]", False),
        ("ids = ids[: lengths.max()]", False),
        ("ids = ids[:, : max(one.kept for one in batch)]", False),
        ("ids = self.encoder(ids, lengths=lengths)", False),
        ("ids = self.encoder(ids, seq_len)", False),
        ("ids = self.encoder(ids, batch.lengths)", False),
        ('ids = self.encoder(ids, batch["lengths"].to(device))', False),
        ("ids = self.encoder(ids, lengths.cpu())", False),
        ("ids = ids + self.places[:, : ids.size(1)]", True),
        ("ids = ids + self.places[:, :words]", True),
        ("x = self.norm(ids)\n    ids = ids + self.places[:, : x.size(1)]", True),
        ("x = self.norm(ids)\n    ids = ids + self.places[:, : x.shape[1]]", True),
        ("x = self.norm(ids)\n    ids = ids + self.places.detach()[:, : int(x.size(1))]", True),
        ("kept = (ids != 0).any(0).nonzero()\n    ids = ids[:, : kept.size(0)]", False),
        ("mask = self.mask_of(ids)\n    ids = ids[:, : mask.shape[1]]", False),
        ("ids = ids[:, :-1]", True),
        ("ids = ids[:batch]", True),
        ("ids = ids[: len(self.words)]", True),
        ("ids = ids.view(-1, seq_len)", True),
        ("ids = ids + torch.arange(seq_len)", True),
        ("ids = self.encoder(ids, seq_len=128)", True),
        ("ids = self.encoder(ids, self.seq_len)", True),
        ("ids = ids * len(lengths)", True),
    ],
)
def test_a_net_that_trims_its_batch_may_not_compute_on_padding(
    tmp_path: Path, line: str, unpacked: bool
) -> None:
    assert structure(tmp_path, TAGGER.format(line=line), "forward").unpacked is unpacked


def test_of_a_script_the_lengths_count_that_its_loop_hands_on(tmp_path: Path) -> None:
    text = """
texts = Texts(folder, seq_len)
for ids, {given} in loader:
    net(ids, {given}).backward()  # 1
"""
    assert structure(tmp_path, text.format(given="tags"), "<module>").unpacked
    assert not structure(tmp_path, text.format(given="lengths"), "<module>").unpacked


BEHIND = """
from torch.nn.utils import rnn
class Writer(nn.Module):
    def forward(self, words, lengths):
        packed = rnn.pack_padded_sequence(self.words(words), lengths)
        out, hidden = self.gru(packed)
        out = rnn.pad_packed_sequence(out, batch_first=True)[0]
        b, s, _ = out.size()
        {line}
        return out
"""


@pytest.mark.parametrize(
    ("line", "again"),
    [
        ("out = self.scores(out.view(-1, 64))  # 1", True),
        ("out = out[order]; out = self.scores(out)  # 1", True),
        ("out = out[:, :, :64] + out[:, :, 64:]; out = self.scores(out)  # 1", True),
        ("out = self.scores(hidden[-1])  # 1", False),
        ("out = out[mask]; out = self.scores(out)  # 1", False),
        ("out = out[:, -1]; out = self.scores(out)  # 1", False),
        ("out = out[rows, lengths - 1]; out = self.scores(out)  # 1", False),
        ("out = out.mean(1); out = self.scores(out)  # 1", False),
        ("out = self.attention(out, lengths); out = self.scores(out)  # 1", False),
        ("out = pad_packed_sequence(packed)  # 1", False),
    ],
)
def test_texts_that_are_padded_again_behind_a_packed_layer(
    tmp_path: Path, line: str, again: bool
) -> None:
    text = BEHIND.format(line=line.replace("; ", "\n        "))
    assert structure(tmp_path, text, "Writer.forward").padded_again is again


TRAINER = """
class Trainer:
    def __init__(self, texts):
        lengths = [len(one) for one in texts]
        self.sampler = {made}

    def epoch(self):
        for ids, tags in DataLoader(self.texts, batch_sampler=self.sampler):
            ids = {ids}
            self.net(ids, tags).backward()  # 3

    def fit(self):
        for _ in range(9):
            self.epoch()  # 2

def accuracy(answers, lengths):
    return score(answers, lengths)

if __name__ == "__main__":
    Trainer(texts).fit()  # 1
"""
ALL_IN_ONE = """
def main(texts):
    lengths = [len(one) for one in texts]
    {made}
    for epoch in range(9):
        {anew}
        for ids, tags in loader:
            ids = {ids}
            net(ids, tags).backward()  # 1
"""


@pytest.mark.parametrize(
    ("ids", "unpacked"), [("ids.cuda()", True), ("shorten(ids, lengths)", False)]
)
def test_lengths_that_only_put_batches_together_are_not_the_nets(
    tmp_path: Path, ids: str, unpacked: bool
) -> None:
    """A sampler of texts that are alike in length may fail to do so."""
    way = ("<module>", "Trainer.fit", "Trainer.epoch")
    for made in ("BucketSampler(lengths, 32)", "in_order(lengths)"):
        text = TRAINER.format(made=made, ids=ids)
        assert structure(tmp_path, text, *way).unpacked is unpacked, made
        for anew in ("", "loader = loader_of(texts, lengths=lengths)"):
            text = ALL_IN_ONE.format(made=f"sampler = {made}", anew=anew, ids=ids)
            assert structure(tmp_path, text, "main").unpacked is unpacked, (made, anew)


def test_what_hands_a_batch_to_its_step_may_shorten_it(tmp_path: Path) -> None:
    text = """
def step(ids):
    net(ids).backward()  # 2

def main(loader):
    for ids, lengths in loader:
        step({ids})  # 1
"""
    assert structure(tmp_path, text.format(ids="ids"), "main", "step").unpacked
    shortened = text.format(ids="shorten(ids, lengths)")
    assert not structure(tmp_path, shortened, "main", "step").unpacked
