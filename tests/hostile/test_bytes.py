"""Bytes that nobody wrote: changed ones of real messages, pages and recordings, by the thousand."""

import resource
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from time import monotonic
from types import FrameType

import pytest

from tests.hostile.mutation import mutants
from tests.hostile.surfaces import SURFACES, seeds_of
from tests.processes.monitored import ROOT

MOST_S = 20
"""For one input: a hang. The slowest real one takes under a second."""
MOST_GROWTH_BYTES = 300_000_000
"""Above what the process held before; a recording may unpack to 16 MB a frame."""
FUZZED_S = 40
SEED = 7


@contextmanager
def no_hang() -> Iterator[None]:
    """Ends what takes too long."""

    def too_long(_: int, __: FrameType | None) -> None:
        raise TimeoutError(f"one input took more than {MOST_S} s")

    before = signal.signal(signal.SIGALRM, too_long)
    signal.alarm(MOST_S)
    try:
        yield
    finally:
        signal.alarm(0)
        signal.signal(signal.SIGALRM, before)


def peak_bytes() -> int:
    """Most that this process has held so far."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024


@pytest.mark.parametrize("surface", SURFACES)
def test_the_real_ones_are_read(surface: str) -> None:
    for seed in seeds_of(surface):
        SURFACES[surface](seed)


@pytest.mark.parametrize(
    ("surface", "count"), [("reply", 400), ("request", 2_000), ("page", 200), ("recording", 12)]
)
def test_changed_ones_are_read_or_refused(surface: str, count: int) -> None:
    before = peak_bytes()
    for data in mutants(seeds_of(surface), count, SEED):
        with no_hang():
            SURFACES[surface](data)
    assert peak_bytes() - before < MOST_GROWTH_BYTES


@pytest.mark.fault
@pytest.mark.timeout(2 * FUZZED_S)
@pytest.mark.parametrize("surface", SURFACES)
def test_as_many_as_there_is_time_for(surface: str) -> None:
    before, began, seed, tried = peak_bytes(), monotonic(), SEED, 0
    while monotonic() - began < FUZZED_S:
        seed += 1
        for data in mutants(seeds_of(surface), 20, seed):
            with no_hang():
                SURFACES[surface](data)
            tried += 1
    print(f"{surface}: {tried} inputs in {FUZZED_S} s")
    assert peak_bytes() - before < MOST_GROWTH_BYTES


@pytest.mark.fault
@pytest.mark.timeout(4 * FUZZED_S)
@pytest.mark.parametrize("surface", SURFACES)
def test_with_a_fuzzer_that_sees_what_it_reaches(surface: str) -> None:
    """atheris, in a process of its own: it ends by `_exit`, and a defect is its status 77."""
    pytest.importorskip("atheris")
    done = subprocess.run(
        [sys.executable, "-m", "tests.hostile.guided", surface, str(FUZZED_S)],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
        timeout=3 * FUZZED_S,
    )
    assert done.returncode == 0, done.stderr[-2_000:]
    assert "Done" in done.stderr
