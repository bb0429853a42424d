"""A demonstration on a machine that others use says what it would have shown."""

from dataclasses import replace

import pytest

from gpuwatch.tui.cli.demo import annotate_for
from gpuwatch.tui.cli.demo_runs import Demo
from gpuwatch.tui.verdict.findings import Kind, Note
from tests.unit.session.making import finding, verdict

INPUT = Demo("input", "a.py", "input", "workers", "", "")
COMPUTE = Demo("compute", "a.py", "compute", None, "", "", "healthy")
SETTING = Note("TF32 is off", None, "hook")


def reported(demo: Demo, kind: Kind, sub: str | None) -> list[str]:
    shown = replace(verdict(kind), finding=replace(finding(kind), sub=sub), notes=(SETTING,))
    judged = annotate_for(demo, shown)
    assert judged.finding == shown.finding, "the verdict is what it is"
    return [note.text for note in judged.notes]


@pytest.mark.parametrize(
    ("demo", "sub", "shown"),
    [
        (INPUT, "cores", "shows input/workers, but other processes hold the cores of this machine"),
        (COMPUTE, "gpu", "shows compute, but other processes hold the GPU of this machine"),
    ],
)
def test_where_others_hold_the_machine_it_shows_what_one_came_to_see(
    demo: Demo, sub: str, shown: str
) -> None:
    first, *others = reported(demo, "contention", sub)
    assert first == f"this demo {shown}: run it when they are done"
    assert others == [SETTING.text]


@pytest.mark.parametrize("kind", ["input", "healthy", "warming-up"])
def test_else_it_shows_nothing(kind: Kind) -> None:
    assert reported(INPUT, kind, None) == [SETTING.text]
    assert reported(Demo("busy", "a.py", "contention", "cores", "", ""), "contention", "cores") == [
        SETTING.text
    ]
