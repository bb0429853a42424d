"""Whether a program trims its batches to their texts, by the source."""

from pathlib import Path

import pytest

from tests.unit.sources.test_source_structure import structure

MASKED = """
def trim_batch(input_ids, pad_token_id):
    keep_column_mask = input_ids.ne(pad_token_id).any(dim=0)
    return input_ids[:, keep_column_mask]

for ids, tags in loader:
    ids = trim_batch(ids, 0)
    loss = F.cross_entropy(net(ids), tags)  # 1
    loss.backward()
"""
CUT = """
def {function}
    return {cut}

for ids, longest in loader:
    net({call}).backward()  # 1
"""


def test_columns_without_a_text_are_trimmed_by_a_mask(tmp_path: Path) -> None:
    """`trim_batch` of transformers' examples: the loader's padding was blamed, which no net saw."""
    assert not structure(tmp_path, MASKED, "<module>").unpacked


@pytest.mark.parametrize(
    ("function", "cut", "call", "unpacked"),
    [
        ("cut(ids, n):", "ids[:, :n]", "cut(ids, int(ids.ne(0).sum(1).max()))", False),
        ("cut(ids, n):", "ids[:, :n]", "cut(ids, n=int(ids.ne(0).sum(1).max()))", False),
        ("cut(ids, n):", "ids[:, :n]", "cut(ids, 128)", True),
        ("cut(ids, n):", "ids[:, :n]", "cut(ids, ids.size(1) - 1)", True),
        ("other(ids):", "ids", "ids[:, :longest]", False),
        ("other(ids, longest):", "ids", "ids[:, longest]", True),
    ],
)
def test_a_function_trims_to_what_it_is_given(
    tmp_path: Path, function: str, cut: str, call: str, unpacked: bool
) -> None:
    """In a loop over a loader, which may hand on the longest of its texts."""
    text = CUT.format(function=function, cut=cut, call=call)
    assert structure(tmp_path, text, "<module>").unpacked is unpacked


BEFORE = """
def other(x):
    words, order = x.sort()
    return order

def forward(self, ids, n, more):
    {line}
    return self.lstm(self.words(ids))  # 1
"""


@pytest.mark.parametrize(
    "line",
    [
        "ids = ids[:, (ids != 0).any(0)]",
        "ids = ids[:, ids[0] != 0]",
        "ids = ids[..., self.kept(ids)]",
        "n, longest = ids.size(0), int((ids != 0).sum(1).max())\n    ids = ids[:, :longest]",
        "longest: int = int((ids != 0).sum(1).max())\n    ids = ids[:, :longest]",
        "longest = (ids != 0).sum(1).max()\n    end = longest + 1\n    ids = ids[:, :end]",
        "ids = ids[:, : (longest := int((ids != 0).sum(1).max()))]",
        "ids = ids.narrow(1, 0, int((ids != 0).sum(1).max()))",
        "ids = torch.narrow(ids, dim=1, start=0, length=int((ids != 0).sum(1).max()))",
        "ids = ids.narrow(0, 0, int((ids != 0).sum(0).max()))",
        "ids = ids.index_select(1, (ids != 0).any(0).nonzero().squeeze(1))",
        "n, order = n.sort(descending=True)\n    ids = ids[order][:, : n[0]]",
        "kept = (ids != 0).any(0).nonzero()\n    n = kept.size(0)\n    ids = ids[:, :n]",
        "longest = 0\n    for one in ids:\n        longest = max(longest, len(one))\n"
        "    ids = ids[:, :longest]",
        "ids = ids[:, : lengths[0]]",
        "ids = trim_batch(ids, 0)",
        "ids = self.words(ids)[:, : more.max()]",
        "ids = ids[:, ~self.mask]",
        "flat = self.words(ids)[mask]\n    h = self.net(flat)",
        "places = mask.view(-1).nonzero().squeeze()\n    flat = more.view(-1, 8)[places]\n"
        "    h = self.layers[0](self.norm(flat))",
        "h = model(words[ids != 0])",
        "h = self.net(torch.cat([more[i, :n] for i, n in enumerate(lengths)]))",
        "rows = [row[:n] for row, n in zip(more, lengths)]",
        "for i, n in enumerate(lens.tolist()):\n        h = self.net(more[i, :n])",
        "for row, n in zip(more, mask.sum(1).tolist()):\n        h = self.net(row[:n])",
        "for i, (row, n) in enumerate(zip(more, lengths)):\n        h = self.net(row[:n])",
        "for t in range(int(more.max())):\n        h = self.cell(ids[:, t], h)",
    ],
)
def test_a_batch_is_trimmed_before_the_net(tmp_path: Path, line: str) -> None:
    """Of each of these the loader's padding was said to be computed on."""
    assert not structure(tmp_path, BEFORE.format(line=line), "forward").unpacked


@pytest.mark.parametrize(
    "line",
    [
        "last = ids[:, -1]",
        "last = ids[:, [-1]]",
        "ids = ids[:, None, :]",
        "for i in range(ids.size(1)):\n        h = self.cell(ids[:, i], h)",
        "batch, words = ids.shape\n    for i in range(words):\n        h = self.cell(ids[:, i], h)",
        "for i, cell in enumerate(self.cells):\n        h = cell(ids[:, i], h)",
        "for i, j in pairs:\n        h = ids[:, i] * ids[:, j]",
        "for first, last in self.spans:\n        h = ids[:, first:last]",
        "i = 0\n    while i < 9:\n        h = ids[:, i]\n        i += 1",
        "words = ids.size(1)\n    ids = ids + more[:, :words]",
        "batch, words = ids.size()\n    ids = ids + more[:, :words]",
        "x = self.norm(ids)\n    words = x.size(1)\n    ids = ids + more[:, :words]",
        "x = self.norm(ids)\n    places = self.places\n    ids = ids + places[:, : x.size(1)]",
        "x = self.norm(ids)\n    ids = ids + torch.arange(512)[None][:, : x.size(1)]",
        "half = math.ceil(ids.size(1) / 2)\n    ids = ids[:, :half]",
        "ids = ids[:, torch.randperm(ids.size(1))]",
        "ids = self.places.narrow(1, 0, ids.size(1))",
        "ids = ids.narrow(1, 0, 128)",
        "args = argparse.ArgumentParser().parse_args()\n    ids = ids[:, : args.longest]",
        "config = Config(9)\n    ids = ids[:, -config.longest :]",
        "loss = more[torch.arange(9), ids.argmax(1)]",
        "more[:, ids.argmax(1)] = 0",
        "loss = self.loss(more[mask], n[mask])",
        "more = more[mask]\n    loss = F.cross_entropy(more, n)",
        "h = self.net(more[n])",
        "h = self.net(more[order])",
        "for i, (m, row) in enumerate(zip(lengths, n)):\n        more[i, :m] = row[:m]",
        "for row, n in zip(more, lengths):\n        ends.append(row[n - 1])",
        "for i, name in enumerate(names):\n        h = more[i, :9]",
        "table = frame.loc[:, frame.columns.sort_values()]",
    ],
)
def test_an_ordinary_index_trims_no_batch(tmp_path: Path, line: str) -> None:
    assert structure(tmp_path, BEFORE.format(line=line), "forward").unpacked
