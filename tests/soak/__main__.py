"""An hour of real training, watched by two monitors: `python -m tests.soak --out FOLDER`.

`--report FOLDER` reads what a run has written, also while it goes on, and writes report.md anew.
A file FOLDER/stop ends a run early.
"""

import argparse
import signal
import sys
from pathlib import Path
from typing import Final

from tests.soak.files import Files
from tests.soak.report import report
from tests.soak.watched_run import watch

ROUND_STEPS: Final = 500


def main() -> int:
    """Run, then report; exit 1 where a bar is missed."""
    parser = argparse.ArgumentParser(description=__doc__)
    what = parser.add_mutually_exclusive_group(required=True)
    what.add_argument("--out", type=Path, metavar="FOLDER", help="new or empty")
    what.add_argument("--report", type=Path, metavar="FOLDER", help="of a run, ended or not")
    parser.add_argument("--minutes", type=float, default=60.0)
    options = parser.parse_args()
    # The processes of a run that is asked to go must go too.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(128 + signal.SIGTERM))
    files = Files(options.report or options.out)
    if options.out:
        watch(files, 60 * options.minutes, ROUND_STEPS)
    text, held = report(files)
    files.report.write_text(text)
    print(text)
    return 0 if held else 1


if __name__ == "__main__":
    sys.exit(main())
