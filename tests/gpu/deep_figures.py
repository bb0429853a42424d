"""`python -m tests.gpu.deep_figures OUT [mfu nan lab]`: what the deep look must show, on one GPU.

MFU of a GPT, a ResNet and an MLP in bf16 against FLOPs counted by hand; a NaN under
`set_sync_debug_mode("error")`; gains of the lab against runs by hand. Some five minutes; writes
OUT/deep.json and a recording of each net, and prints a line for each figure.
"""

import argparse
import json
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from statistics import fmean
from typing import Any, Final

from gpuwatch.tui.cli.target import watch_live
from gpuwatch.tui.lab.gains import gains
from gpuwatch.tui.lab.turns import Lengths, Turn, turn
from gpuwatch.tui.lab.variants import AS_IS, Variant, variants_of

HERE: Final = Path(__file__).parent
BENCH: Final = HERE.parent / "bench" / "lab_script.py"
LAB_CASES: Final = (
    ("matmul", "tf32", ("--precision", "tf32")),
    ("matmul", "bf16", ("--precision", "bf16")),
    ("fuse", "compile", ("--compile",)),
    ("loader", "workers=4", ("--workers", "4")),
)
"""Case, what the lab changes from outside, and the flags that do the same by hand."""


@contextmanager
def killed(run: "subprocess.Popen[str]") -> Iterator[None]:
    """Whatever happens inside, the process is not left."""
    try:
        yield
    finally:
        run.kill()


def mfu(out: Path, seconds: float) -> list[dict[str, Any]]:
    """Each net watched by `gpuwatch throughput`, beside its own clock and the count by hand."""
    rows = []
    for case in ("gpt", "resnet", "mlp"):
        script = [sys.executable, "-m", "gpuwatch", "run", "--", sys.executable]
        script += [str(HERE / "flops_nets.py"), case, "--seconds", str(seconds)]
        with subprocess.Popen(script, stdout=subprocess.PIPE, text=True) as run, killed(run):
            assert run.stdout is not None
            by_hand = json.loads(run.stdout.readline())["flops"]
            time.sleep(5)  # its first steps choose algorithms
            watched = subprocess.run(
                [sys.executable, "-m", "gpuwatch", "throughput", str(run.pid), "--json",
                 "--duration", str(0.4 * seconds)],
                capture_output=True,
                text=True,
            )  # fmt: skip
            step_s = json.loads(run.stdout.readline())["step_s"]
        row: dict[str, Any] = {"case": case, "flops_by_hand": by_hand, "step_s": step_s}
        if watched.returncode:
            row["error"] = watched.stderr[-2000:]
        else:
            seen = json.loads(watched.stdout)
            row |= seen
            row["flops_off"] = (seen["flops_step"] or 0) / by_hand - 1
            if seen["mfu"]:
                row["mfu_by_hand"] = by_hand / step_s / seen["peak_flops_s"]
                row["mfu_off"] = seen["mfu"] / row["mfu_by_hand"] - 1
        rows.append(row)
        print("mfu", json.dumps(row), flush=True)
    (out / "mfu.json").write_text(json.dumps(rows, indent=1))
    return rows


def nan() -> dict[str, Any]:
    """The script's own line."""
    ran = subprocess.run(
        [sys.executable, str(HERE / "nan_script.py")], capture_output=True, text=True
    )
    row: dict[str, Any] = (
        {"error": ran.stderr[-3000:]} if ran.returncode else json.loads(ran.stdout)
    )
    row["stderr"] = ran.stderr[-500:]
    print("nan", json.dumps(row), flush=True)
    return row


def lab(rounds: int, seconds: float, names: set[str]) -> list[dict[str, Any]]:
    """Turns by the lab and turns by hand in one set of rounds, so that both share what the machine
    does meanwhile."""
    lengths, watch = Lengths(20, seconds, 120.0), partial(watch_live, stacks=False)
    rows = []
    for case, change, flags in LAB_CASES:
        if names and change not in names:
            continue
        words = [sys.executable, str(BENCH), case]
        (variant,) = variants_of(change)
        by_hand = Variant(f"{change} by hand")
        turns: list[Turn] = []
        for _ in range(rounds):
            turns.append(turn(words, AS_IS, lengths, watch))
            turns.append(turn(words, variant, lengths, watch))
            hand = turn([*words, *flags], AS_IS, lengths, watch)
            fields = {name: getattr(hand, name) for name in Turn.__slots__}
            turns.append(Turn(**{**fields, "variant": by_hand}))
        _, from_outside, hands = gains(turns)
        row: dict[str, Any] = {
            "case": case,
            "change": change,
            "gain": from_outside.gain,
            "interval": [from_outside.low, from_outside.high],
            "by_hand": hands.gain,
            "off": (from_outside.gain or 0) / hands.gain - 1 if hands.gain else None,
            "notes": from_outside.notes,
            "close": from_outside.loss.close if from_outside.loss else None,
            "as_is_ms": fmean(t.step_ms.mean for t in turns[::3] if t.step_ms)
            if any(t.step_ms for t in turns[::3])
            else None,
            "why_not": [t.why_not for t in turns if t.why_not],
        }
        rows.append(row)
        print("lab", json.dumps(row), flush=True)
    return rows


def main() -> int:
    """Measure what was asked for."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("out", type=Path)
    parser.add_argument("parts", nargs="*", default=["nan", "mfu", "lab"])
    parser.add_argument("--rounds", type=int, default=2)
    parser.add_argument("--seconds", type=float, default=3.0, help="of a turn of the lab")
    parser.add_argument("--net-seconds", type=float, default=18.0)
    parser.add_argument("--change", action="append", default=[], help="of the lab, only these")
    options = parser.parse_args()
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))  # so that what was started is ended
    options.out.mkdir(parents=True, exist_ok=True)
    found: dict[str, Any] = {}
    for part in options.parts:
        if part == "mfu":
            found["mfu"] = mfu(options.out, options.net_seconds)
        elif part == "nan":
            found["nan"] = nan()
        elif part == "lab":
            found["lab"] = lab(options.rounds, options.seconds, set(options.change))
        (options.out / "deep.json").write_text(json.dumps(found, indent=1, default=str))
    return 0


if __name__ == "__main__":
    sys.exit(main())
