"""A profiler makes the host slower: what a trace can say of steps without it."""

import json
from collections.abc import Callable

import pytest

from gpuwatch.tui.formats.profile_report import DeepReport, profile_json, profile_lines
from gpuwatch.tui.trace.against import Outcome, against, unslowed
from gpuwatch.tui.trace.profile import Profile, profile_of
from gpuwatch.tui.verdict.findings import Kind
from gpuwatch.tui.verdict.format import percent
from tests.unit.faces.pictures import picture
from tests.unit.trace.h200_windows import window
from tests.unit.trace.traces import Steps

Body = Callable[[Steps], None]


class Slowed(Steps):
    """Each call into CUDA takes so much longer."""

    def __init__(self, more_us: float) -> None:
        super().__init__()
        self.more_us = more_us

    def launch(self, us: float, name: str = "gemm_bf16", call: str = "cudaLaunchKernel") -> None:
        self.now_us += self.more_us
        super().launch(us, name, call)

    def synchronize(self, name: str = "cudaStreamSynchronize") -> None:
        self.now_us += self.more_us
        super().synchronize(name)


def launches(made: Steps) -> None:
    made.fetch(5)
    for _ in range(100):
        made.python(20)
        made.launch(12)


def nearly_hides_its_launches(made: Steps) -> None:
    made.fetch(5)
    for _ in range(50):
        made.python(15)
        made.launch(20.5)


def asks_in_each_layer(made: Steps) -> None:
    made.fetch(5)
    for _ in range(20):
        for _ in range(10):
            made.python(5)
            made.launch(30)
        made.synchronize()
        made.python(60)


def computes_in_python(made: Steps) -> None:
    made.fetch(5)
    for _ in range(40):
        made.launch(40)
    made.python(6_000)


def waits_for_a_loader(made: Steps) -> None:
    """Which makes a batch every 4 ms, however slow the loop is."""
    ready_us = 4_000.0 * len(made.ends_us)
    made.fetch(max(5.0, ready_us - made.now_us))
    for _ in range(50):
        made.python(10)
        made.launch(25)


BODIES: tuple[Body, ...] = (
    launches,
    nearly_hides_its_launches,
    asks_in_each_layer,
    computes_in_python,
    waits_for_a_loader,
)


def profile(body: Body, more_us: float) -> Profile:
    made = Slowed(more_us)
    made.end()
    for _ in range(8):
        body(made)
        made.end()
    return profile_of(made.window())


@pytest.mark.parametrize("more_us", [5.0, 15.0, 40.0])
@pytest.mark.parametrize("body", BODIES)
def test_no_pattern_has_more_than_the_most_that_is_given(body: Body, more_us: float) -> None:
    true, seen = profile(body, 0.0), profile(body, more_us)
    found = unslowed(seen, true.step_ns)
    if found is None:
        assert seen.step_ns < 1.05 * true.step_ns
        return
    assert found.compute == pytest.approx(true.compute_ns_a_step / true.step_ns, abs=0.01)
    for pattern, most in found.most.items():
        assert true.share_of(pattern) <= most + 0.01, pattern


def test_a_wait_that_the_slower_host_hid_is_not_corrected() -> None:
    """Under the profiler the host is as late as the wait would have made it."""
    true, seen = profile(asks_in_each_layer, 0.0), profile(asks_in_each_layer, 40.0)
    assert true.patterns[0].pattern == "sync"
    assert seen.patterns[0].pattern == "launch"
    assert against("sync", seen).says == "corrects"
    assert against("sync", seen, true.step_ns).says == "cannot say"
    assert against("host", seen, true.step_ns).says == "corrects", "that is not hidden"


def test_steps_that_were_not_slowed_have_no_bounds() -> None:
    seen = profile(launches, 0.0)
    assert unslowed(seen, None) is None
    assert unslowed(seen, seen.step_ns) is None
    assert unslowed(seen, 1.5 * seen.step_ns) is None


def test_gaps_that_the_profiler_made_correct_no_verdict() -> None:
    """The device is never idle for more than 3 % of a step; under the profiler for half of it."""
    true, seen = profile(nearly_hides_its_launches, 0.0), profile(nearly_hides_its_launches, 20.0)
    assert true.share_of("launch") < 0.03
    assert seen.share_of("launch") > 0.4
    assert against("compute", seen).says == "corrects"
    assert against("compute", seen, true.step_ns).says == "confirms"
    assert against("launch", seen, true.step_ns).says == "corrects"


@pytest.mark.parametrize(
    ("live", "says"), [("launch", "confirms"), ("compute", "corrects"), ("sync", "corrects")]
)
def test_what_remains_without_the_profiler_corrects(live: Kind, says: Outcome) -> None:
    true, seen = profile(launches, 0.0), profile(launches, 20.0)
    assert against(live, seen, true.step_ns).says == says


def test_a_cause_that_may_be_the_profilers_is_left_open() -> None:
    """Waiting has 7 % of a step of 7.0 ms at the least and 14 % at the most."""
    comparison = against("compute", profile(asks_in_each_layer, 15.0), 7_000_000.0)
    assert comparison.says == "cannot say"
    assert "at most 14% without it" in comparison.text


# Windows of an H200 of which steps took 1.3 and 2 times as long under the profiler.

LIVE_NS = {"launch_graphed": 4_686_000.0, "compiled": 5_289_000.0}


def report(name: str) -> DeepReport:
    found = profile_of(window(name))
    verdict = picture().verdict
    compared = against("launch", found, LIVE_NS[name])
    return DeepReport("train.py", 1, found, verdict, compared, None, 1_000_000, True, LIVE_NS[name])


@pytest.mark.parametrize("name", LIVE_NS)
def test_gaps_between_cuda_graphs_are_launch_bound_and_the_report_names_what_lies_there(
    name: str,
) -> None:
    """By the live steps too: the GPU computes 37 and 16 % of them."""
    made = report(name)
    assert isinstance(made.profile, Profile)
    assert made.profile.graph_share > 0.95
    assert made.comparison is not None
    assert made.comparison.says == "confirms"
    text = " ".join("\n".join(profile_lines(made, 120)).split())
    assert "between two graphs the GPU waits for what the host runs eagerly" in text
    assert ("205 times a step one stream waits for another" in text) == (name == "launch_graphed")
    most = {"launch_graphed": 0.63, "compiled": 0.69}[name]
    assert f"at most {percent(most)} without the profiler" in text
    given = json.loads(profile_json(made))["without_profiler"]
    assert given["launch"] == pytest.approx(most, abs=0.005)
