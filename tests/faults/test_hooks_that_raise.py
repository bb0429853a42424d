"""An error inside each of our hooks: the run goes on, the probe disarms, one line says so."""

import os
from pathlib import Path
from typing import Final

import pytest

from gpuwatch.probe.wire import page
from tests.faults.training import TRAIN, bare
from tests.processes.command_line import gpuwatch
from tests.processes.monitored import hello_of, started, subscribed, until, word_of

BREAKING: Final = """
    import contextlib, io, itertools, threading
    from unittest.mock import patch
    import gpuwatch.probe.serve
    from gpuwatch.probe import api, circuit_breaker, installed, loaders, publish, recorder
    from gpuwatch.probe import wrapped
    from gpuwatch.probe.hooks import backward, checkpoint, compilation, dataloader
    from gpuwatch.probe.hooks import optimizer, tracing
    from gpuwatch.probe.device import stamper
    from gpuwatch.probe.settings import sampler
    from torch._dynamo.callback import callback_handler

    class Purpose(Exception):
        pass

    def broken(*args, **kwargs):
        raise Purpose("broken on purpose,\\n in two lines")

    WATCHED = property(lambda self: True, lambda self, value: None)

    def at_call(count):
        "Stamps behind each mark, which are right until the `count`th."
        calls = itertools.count(1)
        def stamp(kind):
            if next(calls) >= count:
                broken()
        made = recorder.Recorder.__init__
        def init(self, *args, **kwargs):
            made(self, *args, **kwargs)
            self.stamp_with(stamp)
        return patch.object(recorder.Recorder, "__init__", init)

    def always(place, name, value=broken):
        return patch.object(place, name, value)

    def at_step(step):
        "What people call in their loops, and what torch calls of ours now and then."
        if step % 10 == 5:
            with probe.phase("named"):
                torch.save({}, io.BytesIO())
            next(iter(probe.wrap([1])))
            with contextlib.suppress(AttributeError):
                for callback in (*callback_handler._CompilationCallbackHandler__start_callbacks,
                                 *callback_handler._CompilationCallbackHandler__end_callbacks):
                    callback(None)

    class Held(io.StringIO):
        "Stderr as a notebook has it."

    def case(name, *patches, before=lambda: None, tripped=True, workers=0):
        held = Held()
        with contextlib.ExitStack() as stack:
            stack.enter_context(patch.object(sys, "stderr", held))
            for one in patches:
                stack.enter_context(one)
            probe.install()
            before()
            digest = train(at_step=at_step, workers=workers)
            breaker, until = api._installed._breaker, time.monotonic() + 20
            while tripped and breaker.fault is None and time.monotonic() < until:
                time.sleep(0.01)
            fault = breaker.fault
            probe.uninstall()
        lines = held.getvalue().splitlines()
        print(name, "|", digest, "|", fault, "|", len(lines), "|", *lines[:1], flush=True)

    def set_on_recorder(name):
        return lambda: getattr(api._installed.recorder, name)(broken)
"""

CASES: Final = {
    **{f"stamp at mark {at}": f"at_call({at})" for at in (1, 2, 3, 4, 5, 6, 7, 9, 40, 41, 42, 43)},
    "describing a loader": "always(loaders, 'describe_iterator')",
    "looking at a batch": "always(dataloader, 'look_at')",
    "counting what is ready": (
        "always(dataloader, 'ready_batches'), always(recorder.Recorder, 'watched', WATCHED), "
        "workers=1"
    ),
    "an iterator begins": "always(loaders.LoaderWatch, 'restarted')",
    "taking the timeline": "always(recorder.Recorder, '_may_mark')",
    "arming": "always(installed, 'Armed')",
    "no state page": "always(publish, 'StatePage')",
    "a thread cannot start": "always(publish.Publisher, 'start')",
    "describing a wrapped pipeline": "always(wrapped, '_describe')",
    "a batch of a wrapped pipeline": "always(wrapped, 'look_at')",
    **{f"attaching to {hook}": f"always({hook}, 'attach')"
       for hook in ("tracing", "dataloader", "backward", "optimizer", "checkpoint", "compilation")},
    "making the server": "always(publish, 'Server')",
    "the publisher's first turn": "always(probe.serve.Server, 'turn')",
    "the ring": "always(recorder.Recorder, 'newest')",
    "binding": "always(probe.serve.Endpoint, 'hold')",
    "receiving": "always(probe.serve.Endpoint, 'receive')",
    "leaving": "always(publish.Armed, 'end')",
    "reporting the fault": "at_call(9), always(publish.Armed, 'report_fault')",
    "saying it": "at_call(9), always(circuit_breaker.CircuitBreaker, '_print_fault')",
    "an error that cannot say what it is": "at_call(9), always(Purpose, '__str__')",
    "sampling the settings": "before=set_on_recorder('sample_settings_with')",
}  # fmt: skip
"""By name, the arguments of `case`: what is broken in the probe."""


def test_an_error_in_each_of_them(tmp_path: Path) -> None:
    script = TRAIN.replace("import probe; probe.install()", "import probe") + BREAKING
    for name, broken in CASES.items():
        script += f"    case({name!r}, {broken}, tripped={name != 'leaving'})\n"
    with started(script, tmp_path, TMPDIR=str(tmp_path)) as run:
        status, out, err = run.finish()
    assert (status, err) == (0, "")
    rows = [[part.strip() for part in line.split("|")] for line in out.splitlines()]
    reported = {name: rest for name, *rest in rows}
    assert list(reported) == list(CASES)
    for name, (output, fault, lines, *line) in reported.items():
        assert output == bare(), name
        assert (fault == "None") == (name == "leaving"), (name, fault)
        assert lines == ("0" if name == "saying it" else "1"), (name, lines)
        if name not in ("leaving", "saying it"):
            assert fault in line[0], name
        if name == "an error that cannot say what it is":
            assert fault.startswith("Purpose: it cannot say why")
        elif fault != "None":
            assert fault.startswith("Purpose: broken on purpose, in two lines at "), name


@pytest.mark.fault
@pytest.mark.parametrize("broken", ["encode_marks", "clock.now_ns"])
def test_a_fault_while_it_is_watched_is_shown(tmp_path: Path, broken: str) -> None:
    script = (
        TRAIN
        + f"""
    import gpuwatch.probe.serve
    def breaks(*_):
        raise ValueError("broken on purpose")
    print("waiting", flush=True)
    sys.stdin.readline()
    probe.serve.{broken} = breaks
    print(train(), flush=True)
    sys.stdin.readline()
    """
    )
    with started(script, tmp_path) as run:
        assert run.line() == "waiting"
        endpoint = hello_of(run.pid).endpoint
        assert endpoint is not None
        with subscribed(endpoint) as next_reply:
            next_reply()
            run.send()
            assert run.line() == bare()
            until(lambda: word_of(run.pid, page.WORD_STATE) == page.STATE_DISARMED)
        if broken == "encode_marks":  # without a clock there is no good-bye
            until(lambda: not os.path.exists(endpoint.removeprefix("ipc://")))
        shown = gpuwatch("attach", str(run.pid), "--plain", "--duration", "2")
        assert "the probe stopped watching" in shown.stdout + shown.stderr
        run.send()
        status, _, err = run.finish()
    assert status == 0
    assert len(err.splitlines()) == 1
    assert "the run goes on" in err
