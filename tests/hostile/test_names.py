"""What the user's own program is called, and calls things: any bytes, any length, any type."""

import os
from pathlib import Path
from typing import Any

import msgspec
import pytest

from gpuwatch.probe import api
from gpuwatch.probe.circuit_breaker import MOST_TEXT, CircuitBreaker
from gpuwatch.probe.identity import Identity
from gpuwatch.probe.loaders import describe_iterator
from gpuwatch.probe.wire import page
from gpuwatch.tui import messages as wire
from gpuwatch.tui.steps import Batch
from tests.processes.monitored import hello_of, started, subscribed

NO_TEXT = "caf\udce9"
"""As Python has a file's name that is no UTF-8."""


@pytest.mark.parametrize("where", ["argv", "cwd", "executable", "fault"])
def test_a_hello_fits_the_page_whatever_is_long_in_it(where: str) -> None:
    long: Any = ["日" * 90] * 900 if where == "argv" else "日" * 9_000
    identity = Identity("ipc:///tmp/x", None)
    setattr(identity, where, long)
    encoded = identity.as_json(page.HELLO_BYTES)
    assert len(encoded) <= page.HELLO_BYTES
    hello = wire.decode_hello(encoded)
    assert (hello.pid, hello.endpoint) == (os.getpid(), "ipc:///tmp/x")


def test_a_script_whose_name_is_no_text_is_watched(tmp_path: Path) -> None:
    folder = tmp_path / NO_TEXT
    try:
        folder.mkdir()
    except OSError:
        pytest.skip("this file system takes text only")
    script = f"""
    import os, sys
    os.chdir({str(folder)!r})
    sys.argv = [{NO_TEXT!r} + ".py"]
    import probe; probe.install()
    with probe.phase({NO_TEXT!r} * 999):
        print("go", flush=True)
        sys.stdin.readline()
    """
    with started(script, tmp_path) as run:
        assert run.line() == "go"
        assert hello_of(run.pid).argv == ["caf?.py"]
        with subscribed(hello_of(run.pid).endpoint or "") as next_reply:
            assert isinstance(next_reply(), wire.Greeting)
            assert isinstance(next_reply(), Batch)
        run.send()
        assert run.finish() == (0, "", "")


def test_a_phases_name_is_short_and_text() -> None:
    name = api.phase(NO_TEXT + "x" * 10_000)._name
    assert len(name) == api.LONGEST_NAME
    assert name.startswith("caf?x")


def test_a_fault_is_one_short_line_of_text(capsys: pytest.CaptureFixture[str]) -> None:
    breaker = CircuitBreaker(lambda: None)
    breaker.trip(ValueError(f"one\ntwo {NO_TEXT}" + "x" * 100_000))
    assert breaker.fault is not None
    assert breaker.fault.startswith("ValueError: one two caf?xxx")
    assert len(breaker.fault) < MOST_TEXT + 40
    breaker.trip(ValueError("again"))
    assert len(capsys.readouterr().err.splitlines()) == 1


def test_numbers_of_the_users_own_kind_do_not_reach_the_codec() -> None:
    """NumPy's whole numbers are the usual ones; a tensor of one number is another."""
    numpy = pytest.importorskip("numpy")

    class Sampler:
        batch_size = numpy.int64(32)

        def __len__(self) -> int:
            raise RuntimeError("it has none yet")

    class Iterator:
        _index_sampler = Sampler()
        _num_workers = numpy.int32(2)
        _prefetch_factor = "two"
        _dataset = ()
        _workers = ()

    row = describe_iterator(Iterator())
    reported = wire.Loader(*row)
    assert (reported.num_workers, reported.batch_size, reported.batches) == (2, 32, None)
    assert reported.prefetch_factor is None
    assert msgspec.json.decode(wire.encode_message(reported), type=wire.Loader) == reported
