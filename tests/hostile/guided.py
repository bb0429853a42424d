"""`python -m tests.hostile.guided SURFACE SECONDS`: atheris at one of the surfaces.

It changes real bytes towards code that was not reached yet. A defect ends it with its traceback,
and so does one input of more than 20 seconds or a process of more than 2 GB.
"""

import sys
import tempfile
from pathlib import Path

import atheris

with atheris.instrument_imports(
    include=["gpuwatch.probe.wire", "gpuwatch.tui.recording", "gpuwatch.tui.discovery.state_page"]
):
    from tests.hostile.surfaces import SURFACES, seeds_of


def main() -> None:
    """Fuzz for so long."""
    surface, seconds = sys.argv[1:]
    with tempfile.TemporaryDirectory() as corpus:
        for at, seed in enumerate(seeds_of(surface)):
            Path(corpus, str(at)).write_bytes(seed)
        limits = [f"-max_total_time={seconds}", "-timeout=20", "-rss_limit_mb=2048"]
        atheris.Setup([sys.argv[0], corpus, "-max_len=20000", *limits], SURFACES[surface])
        atheris.Fuzz()


if __name__ == "__main__":
    main()
