"""Which stacks are shown, in words."""

from dataclasses import replace

import pytest

from gpuwatch.tui.wording.stacks import why_not_idle
from tests.tui.fake_stacks import ON_HOST


@pytest.mark.parametrize(
    ("samples", "hint"),
    [
        (0, "all samples shown: no sample during a data wait yet"),
        (11, "all samples shown: only 11 while the step waits for data"),
        (20, ""),
    ],
)
def test_the_hint_shows_that_it_is_about_others_than_are_shown(samples: int, hint: str) -> None:
    summary = replace(ON_HOST.idle.summary, main_samples=samples)
    assert why_not_idle(replace(ON_HOST, idle=replace(ON_HOST.idle, summary=summary))) == hint
