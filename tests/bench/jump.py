"""What it takes to jump to the end of a long recording: `python -m tests.bench.jump [MINUTES]`.

Records that many minutes (60) of a made-up run of 20 steps a second on a GPU with eight workers,
looked at once a second, and plays them to their end in one go, as the key `end` does.
Prints the CPU time of that, and of reading the file alone.
"""

import argparse
import tempfile
from pathlib import Path
from time import process_time

from gpuwatch.tui.recording.reader import Recording
from gpuwatch.tui.session.replay import Played
from gpuwatch.tui.verdict.engine import Engine
from tests.unit.recording.files import recorded
from tests.unit.recording.test_scrubbing import entries_of


def main() -> None:
    """Print both."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("minutes", type=float, nargs="?", default=60.0)
    minutes = parser.parse_args().minutes
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "run.gpuwatch"
        path.write_bytes(recorded(entries_of(60 * minutes)))
        print(f"{minutes:.0f} minutes, {path.stat().st_size / 1e6:.1f} MB")
        began_s = process_time()
        entries = sum(1 for _ in Recording(path).entries())
        print(f"read   {process_time() - began_s:6.1f} s of CPU, {entries} entries")
        recording = Recording(path)
        began_s = process_time()
        played = Played(recording, Engine())
        played.play(recording.until_ns, lambda: True)
        verdict = played.at(recording.until_ns).verdict.finding
        print(f"jumped {process_time() - began_s:6.1f} s of CPU: {verdict.headline}")


if __name__ == "__main__":
    main()
