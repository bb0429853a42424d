"""Run a scenario's script under TraceML 0.5.0, and keep its verdict in the terms of the evaluation.

    python -m evaluation.under_traceml FILE SCRIPT ARGUMENTS...

TraceML gives its verdict when the run is over. FILE gets it as a list of one look; the last line
printed is the script's own closing line.
"""

import json
import socket
import subprocess
import sys
import tempfile
from collections.abc import Mapping
from dataclasses import asdict
from pathlib import Path
from typing import Any, Final

from evaluation import traced_script
from evaluation.catalogue import GROWTH
from evaluation.verdict_track import Judgement

RUN: Final = "suite"
KINDS: Final = {
    "INPUT_BOUND": "input",
    "H2D_BOUND": "h2d",
    "COMPUTE_BOUND": "compute",
    "RESIDUAL_HEAVY": "host",
    "NO_CLEAR_PERFORMANCE_BOTTLENECK": "healthy",
    "INPUT_STRAGGLER": "straggler",
    "COMPUTE_STRAGGLER": "straggler",
    "H2D_STRAGGLER": "straggler",
    "STRAGGLER": "straggler",
}
"""Its kinds of primary diagnosis in our words; any other says that it does not know."""
CONFIRMED: Final = "CREEP_CONFIRMED"
"""Of its kinds of diagnosis of step memory, the one that is sure."""


def look_of(summary: Mapping[str, Any]) -> Judgement:
    """The verdict of a final_summary.json.

    Its policy promotes no finding about memory to the primary one; here growing memory counts as
    its verdict wherever it names no other cause.
    """
    primary = summary["primary_diagnosis"]
    kind = KINDS.get(primary["kind"], "incomplete")
    memory = summary["step_memory"]["diagnosis"]["kind"]
    creeps = memory in ("CREEP_EARLY", CONFIRMED)
    grows = creeps and kind in ("compute", "healthy", "incomplete")
    return Judgement(
        at_s=summary["duration_s"],
        step=primary["evidence"].get("steps_analyzed") or 0,
        kind=GROWTH if grows else kind,
        contributors=(GROWTH,) if creeps and not grows else (),
        leak=memory == CONFIRMED,
        advice=primary["action"],
    )


def free_port() -> int:
    """A TCP port that nobody uses now: its own two are always the same."""
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        port: int = taken.getsockname()[1]
    return port


def main() -> int:
    """Wait to be asked, run, keep the verdict."""
    file, script = Path(sys.argv[1]), sys.argv[2]
    options = sys.argv[3:]
    if "--wait" in options:
        options.remove("--wait")
        sys.stdin.readline()
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as logs:
        command = [sys.executable, "-m", "traceml_ai.launcher.cli", "run", traced_script.__file__]
        command += ["--logs-dir", logs, "--run-name", RUN, "--no-save-training-output"]
        command += ["--aggregator-port", str(free_port()), "--master-port", str(free_port())]
        command += ["--args", script, *options]
        done = subprocess.run(
            command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, text=True, check=False
        )
        print(done.stdout)
        if done.returncode:
            return done.returncode
        summary = json.loads((Path(logs) / RUN / "final_summary.json").read_text())
    file.write_text(json.dumps([asdict(look_of(summary))]))
    print(next(line for line in done.stdout.splitlines() if line.startswith('{"steps"')))
    return 0


if __name__ == "__main__":
    sys.exit(main())
