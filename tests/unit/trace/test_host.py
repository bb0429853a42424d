"""A profile of a run without a device: where a step's time goes on the host."""

import pytest

from gpuwatch.tui.formats.profile_report import DeepReport, profile_costs, profile_lines
from gpuwatch.tui.model.snapshot import unseen
from gpuwatch.tui.trace.host import FETCH, host_profile_of
from tests.unit.trace.traces import Steps


def fetched() -> Steps:
    """Steps of 40 ms in a fetch, in which PyTorch's own annotation runs as well, and 2 ms in an
    operator; Python takes 1 ms."""
    run = Steps()
    run.end()
    for _ in range(4):
        begin_us = run.now_us
        run.fetch(40_000)
        end_us, run.now_us = run.now_us, begin_us
        run.operator(40_000, f"{FETCH}#_MultiProcessingDataLoaderIter.__next__")
        assert run.now_us == end_us
        run.operator(2_000, "aten::addmm")
        run.python(1_000)
        run.end()
    return run


def test_a_fetch_is_no_operator() -> None:
    """It stood in both rows: 93 % and 98 % of a step."""
    profile = host_profile_of(fetched().window())
    assert profile.step_ns == pytest.approx(43e6)
    assert profile.fetch_ns_a_step == pytest.approx(40e6)
    assert profile.operators_ns_a_step == pytest.approx(2e6)
    assert [one.name for one in profile.operators] == ["aten::addmm"]


def test_the_rows_of_a_step_add_up() -> None:
    profile = host_profile_of(fetched().window())
    verdict = unseen(1, "train.py", 0, 0.0).verdict
    report = DeepReport("train.py", 1, profile, verdict, None, None, 0, torn_down=True)
    rows = {line[:9].strip(): line[9:] for line in profile_lines(report, 100)[2:6]}
    assert {name: row.split()[-1] for name, row in rows.items() if name != "rest"} == {
        "step": "ms",
        "fetch": "93%",
        "operators": "5%",
    }
    assert rows["rest"].split() == ["1.0", "ms", "2%", "Python"]


def test_the_costs_name_as_many_steps_as_the_report() -> None:
    """Three were announced and then four counted."""
    assert "3 steps, behind two or more with operators" in profile_costs(3, operators=True)[0]
