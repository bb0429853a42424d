"""What a person is called back for."""

from dataclasses import replace
from typing import Any

from gpuwatch.tui.model.snapshot import Snapshot, as_ended
from gpuwatch.tui.session.alerts import Alerts
from gpuwatch.tui.verdict.findings import Finding, Verdict
from gpuwatch.tui.verdict.memory.trends import Exhaustion
from tests.tui.fake_memory import trend
from tests.tui.fake_run import FakeRun
from tests.tui.memory_states import LEAK
from tests.tui.rank_states import LATE, eight_ranks
from tests.unit.faces.pictures import INPUT, picture, young
from tests.unit.session.making import finding

HEALTHY = finding("healthy", severity="info", headline="nothing holds 10%")
STUCK = finding("stalled", severity="critical", headline="no step for 95 s")
SOON = Exhaustion(100.0, 120.0, 0.002)


def judged(what: Finding, **fields: Any) -> Snapshot:
    return picture(verdict=Verdict(what, 0.9, 1, 1, (), ()), **fields)


def growing(what: Finding) -> Snapshot:
    run = judged(what)
    return replace(run, trends=(trend("tensors", lambda _: 1e9, run.t_ns, 1.5, SOON, LEAK),))


def kinds(alerts: Alerts, *seen: Snapshot) -> list[str]:
    return [alert.kind for snapshot in seen for alert in alerts.look(snapshot)]


def test_a_verdict_that_changes_is_reported_once_and_abstentions_never() -> None:
    alerts = Alerts()
    run = [young(), judged(HEALTHY), judged(HEALTHY), judged(INPUT), young(), judged(INPUT)]
    assert kinds(alerts, *run) == ["verdict"]
    assert kinds(alerts, judged(HEALTHY), judged(HEALTHY)) == ["verdict"]


def test_the_first_verdict_is_reported_where_something_holds_the_run_back() -> None:
    (alert,) = Alerts().look(judged(INPUT))
    assert alert.text == "train.py (48213): INPUT-BOUND: data wait is 57% of every step"
    assert (alert.verdict, alert.share, alert.pid) == ("input/workers", 0.57, 48213)
    assert Alerts().look(judged(HEALTHY)) == []


def test_a_stall_is_reported_and_that_it_is_over() -> None:
    alerts = Alerts()
    assert kinds(alerts, judged(INPUT), judged(STUCK), judged(STUCK)) == ["verdict", "stalled"]
    assert kinds(alerts, judged(INPUT)) == ["verdict"]


def test_an_end_is_reported_once_and_nothing_after_it() -> None:
    alerts = Alerts()
    ended = as_ended(judged(INPUT), "was killed (signal 9)")
    (alert,) = alerts.look(ended)
    assert (alert.kind, alert.text) == ("ended", "train.py (48213): training was killed (signal 9)")
    assert kinds(alerts, ended, judged(STUCK)) == []


def test_memory_that_will_be_full_is_reported_once_while_it_lasts() -> None:
    alerts = Alerts()
    assert kinds(alerts, growing(HEALTHY), growing(HEALTHY)) == ["memory"]
    # The verdict says the same a moment later: no second notice.
    assert kinds(alerts, growing(LEAK), growing(LEAK)) == []
    assert kinds(alerts, judged(HEALTHY), growing(HEALTHY)) == ["verdict", "memory"]


def test_of_a_job_the_verdict_on_all_ranks_counts() -> None:
    seen = eight_ranks(FakeRun().snapshot())
    assert seen.job is not None
    (alert,) = Alerts().look(seen)
    assert alert.verdict.startswith("straggler")
    assert (alert.rank, f"rank {LATE}:" in alert.text) == (LATE, True)
