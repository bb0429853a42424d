"""The quick sections of the table as tests: every row meets its bar."""

import importlib

import pytest
import torch

from tests.gpu.table import SECTIONS

pytestmark = [
    pytest.mark.gpu,
    pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a CUDA device"),
    pytest.mark.timeout(300),
]


@pytest.mark.parametrize("section", ["partition", "exposed", "lag", "graphs"])
def test_section(section: str) -> None:
    missed = [
        claim.line()
        for claim in importlib.import_module(SECTIONS[section]).claims()
        if claim.met is False
    ]
    assert not missed, "\n".join(missed)
