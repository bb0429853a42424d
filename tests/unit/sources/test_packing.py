"""Whether a program packs the texts of its batches, by the source on the way to its net."""

from pathlib import Path

from gpuwatch.tui.sources.source_code import SourceLines
from gpuwatch.tui.sources.source_structure import SourceStructure
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
