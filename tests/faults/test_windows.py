"""A window that is open while something happens to the loop: the run goes on, or ends, as without,
and nothing stays switched on. The window is asked for by the run itself, at step 30."""

import re
from pathlib import Path

import pytest

from tests.faults.training import TRAIN, bare
from tests.processes.monitored import started

PROFILE = (
    TRAIN
    + """
    from gpuwatch.probe import api, encoding, flop_count
    from gpuwatch.probe.deep import memory_history, profiler

    def ask(step):
        if step == 30:
            global window
            recorder = api._installed.recorder
            window = profiler.Profiler(recorder, os.environ["TMPDIR"] + "/window")
            asked = encoding.AskProfile(20, 10**10, True, "")
            assert window.ask(b"a", asked, recorder.now_ns()) is None

    def is_on():
        return torch.autograd._profiler_enabled()
"""
)
MEMORY = (
    PROFILE
    + """
    import tracemalloc

    def ask(step):
        if step == 30:
            global window
            recorder = api._installed.recorder
            window = memory_history.MemoryHistory(recorder, os.environ["TMPDIR"] + "/window")
            assert window.ask(b"a", 10**10, True, recorder.now_ns()) is None

    is_on = tracemalloc.is_tracing
"""
)
FLOPS = (
    PROFILE
    + """
    def ask(step):
        if step == 30:
            recorder = api._installed.recorder
            recorder.count_with(flop_count.FlopCount(recorder).at)

    def is_on():
        return torch._C._len_torch_dispatch_stack() > 0
"""
)
TRACE = (
    FLOPS
    + """
    from gpuwatch.probe.one_step.traces import WARM, StepTraces

    def ask(step):
        if step == 30 - WARM:
            recorder = api._installed.recorder
            recorder.trace_with(StepTraces(recorder).at)
"""
)
WINDOWS = {"profile": PROFILE, "memory": MEMORY, "flops": FLOPS, "trace": TRACE}
ASKS = """
    was_on = []
    def at_step(step):
        ask(step)
        if step > 30 and is_on():
            was_on.append(step)
            happens(step)
"""
IN_IT = {
    "uninstall": "probe.uninstall()",
    "disarmed": "api._installed._breaker.trip(ValueError('made'))",
}


@pytest.fixture(params=sorted(WINDOWS))
def window(request: pytest.FixtureRequest) -> str:
    return WINDOWS[request.param] + ASKS.replace("step > 30 and", "step >= 30 and")


def ran(tmp_path: Path, *parts: str) -> tuple[int, str, str]:
    """How a script of these parts ends, and what it writes."""
    with started("".join(parts), tmp_path, TMPDIR=str(tmp_path)) as run:
        status, out, err = run.finish()
    err = re.sub("USDT:.*\n", "", err)  # kineto's own lines
    return status, out, err


@pytest.mark.fault
@pytest.mark.parametrize("what", sorted(IN_IT))
def test_the_probe_leaves_inside_a_window(tmp_path: Path, window: str, what: str) -> None:
    status, out, _ = ran(
        tmp_path,
        window,
        f"""
    def happens(step):
        if len(was_on) == 1:
            {IN_IT[what]}
    print(train(at_step=at_step), len(was_on), is_on(), flush=True)
""",
    )
    assert (status, out.strip()) == (0, f"{bare()} 1 False")


@pytest.mark.fault
def test_a_run_ends_inside_a_window_as_without(tmp_path: Path, window: str) -> None:
    """PyTorch takes the process down with a segmentation fault where a profiler is on."""
    status, _, err = ran(
        tmp_path,
        window,
        """
    def happens(step):
        raise ValueError("the end")
    train(at_step=at_step)
""",
    )
    assert status == 1
    assert err.endswith("ValueError: the end\n")


@pytest.mark.fault
def test_a_thread_that_trains_ends_inside_a_window(tmp_path: Path) -> None:
    status, out, _ = ran(
        tmp_path,
        PROFILE,
        ASKS,
        """
    def happens(step):
        sys.exit()
    thread = threading.Thread(target=train, kwargs={"at_step": at_step})
    thread.start()
    thread.join()
    with torch.profiler.profile(activities=[torch.profiler.ProfilerActivity.CPU]) as own:
        torch.ones(3).sum()
    print(len(was_on), window.turn(0)[1], any(e.key == "aten::sum" for e in own.key_averages()))
""",
    )
    assert (status, out) == (0, "1 {'why_not': 'the loop went no further'} True\n")


@pytest.mark.fault
def test_a_fork_inside_a_window_has_nothing_on(tmp_path: Path, window: str) -> None:
    status, out, _ = ran(
        tmp_path,
        window,
        """
    def happens(step):
        if len(was_on) == 1:
            child = os.fork()
            if not child:
                os._exit(is_on())
            print(os.waitpid(child, 0)[1], is_on(), flush=True)
    print(train(at_step=at_step), flush=True)
""",
    )
    assert (status, out) == (0, f"0 True\n{bare()}\n")


@pytest.mark.fault
def test_a_loop_that_ends_in_a_window_has_it_off_in_time(tmp_path: Path, window: str) -> None:
    """No mark comes any more; the main thread computes on."""
    status, out, _ = ran(
        tmp_path,
        window,
        """
    from gpuwatch.probe import switched

    def happens(step):
        raise StopIteration

    try:
        train(at_step=at_step)
    except StopIteration:
        print(is_on(), flush=True)
    numbers = torch.ones(3)
    switched.overdue_off(10**30)
    for _ in range(1000):
        numbers = numbers + 1
    print(is_on(), flush=True)
""",
    )
    assert (status, out) == (0, "True\nFalse\n")


@pytest.mark.fault
def test_a_profiler_of_the_programs_own_begins_inside_a_window(tmp_path: Path) -> None:
    """It records what it would, and ours has ended."""
    status, out, _ = ran(
        tmp_path,
        PROFILE,
        ASKS,
        """
    def happens(step):
        with torch.profiler.profile(activities=[torch.profiler.ProfilerActivity.CPU]) as own:
            torch.ones(3).sum()
        print([e.count for e in own.key_averages() if e.key == "aten::sum"])
        print(window.turn(0)[1]["why_not"])
    print(train(at_step=at_step), is_on())
""",
    )
    output = ["[1]", "a profiler of the program's own began", f"{bare()} False"]
    assert (status, out.splitlines()) == (0, output)


@pytest.mark.fault
@pytest.mark.parametrize("wait", [0, 40])
def test_a_profiler_with_a_schedule_around_a_window(tmp_path: Path, wait: int) -> None:
    """It warms up as the window is asked for (0), or inside it (40)."""
    status, out, _ = ran(
        tmp_path,
        PROFILE,
        ASKS,
        """
    from torch.profiler import ProfilerActivity, profile, schedule

    def happens(step):
        pass

    def at_both(step):
        at_step(step)
        own.step()

    own = profile(
        activities=[ProfilerActivity.CPU],
        schedule=schedule(wait=WAIT, warmup=45 - WAIT, active=5, repeat=1),
    )
    own.start()
    print(train(at_step=at_both))
    print([e.count for e in own.key_averages() if e.key == "aten::addmm"], window.turn(0)[1])
""".replace("WAIT", str(wait)),
    )
    why_not = {
        0: "a profiler of the program's own is about to record",
        40: "a profiler of the program's own began",
    }[wait]
    assert (status, out.splitlines()) == (0, [bare(), f"[5] {{'why_not': {why_not!r}}}"])


@pytest.mark.fault
def test_tensors_that_a_formula_cannot_count_do_not_stop_the_run(tmp_path: Path) -> None:
    status, out, _ = ran(
        tmp_path,
        FLOPS,
        ASKS,
        """
    from torch.utils import flop_counter

    def happens(step):
        pass

    def fails(*args, **kwargs):
        raise TypeError("a nested tensor")

    flop_counter.flop_registry[torch.ops.aten.addmm] = fails
    print(train(at_step=at_step), len(was_on), is_on())
    print(api._installed.recorder.notes.to_send(True)[-1][1:])
""",
    )
    assert status == 0
    assert out.splitlines()[0] == f"{bare()} 1 False"
    assert "'refused', 'flops', 0.0, 'aten.addmm.default: TypeError: a nested tensor'" in out


@pytest.mark.fault
def test_what_is_compiled_at_its_first_call_is_not_kept_from_it(tmp_path: Path) -> None:
    """Below a dispatch mode dynamo leaves a function alone, for good."""
    status, out, _ = ran(
        tmp_path,
        FLOPS,
        """
    from torch._dynamo.utils import counters

    compiled = torch.compile(torch.sin, backend="eager")

    def at_step(step):
        ask(step)
        if step == 31:
            compiled(torch.ones(3))

    print(train(at_step=at_step))
    compiled(torch.ones(3))
    print(counters["stats"]["unique_graphs"])
    print(api._installed.recorder.notes.to_send(True)[-1][1:])
""",
    )
    assert status == 0
    assert out.splitlines()[:2] == [bare(), "1"]
    assert "the program compiles" in out
