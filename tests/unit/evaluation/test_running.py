"""Scenarios run one after the other; one that fails does not hold up the others."""

import json
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace

import evaluate
import pytest

from evaluation import recording, running
from evaluation.catalogue import Scenario
from evaluation.launching import Job, Launched
from evaluation.result import MEASURED, OURS, RESULT, Measured, keep, measured_in, results_in
from evaluation.running import Run, RunPlan, run_all
from tests.unit.evaluation.examples import ROW, result_with, score_with

SCRIPT = """
import probe

probe.install()
import json, os, sys, time

assert sys.argv[1:4] == ["--wait", "--seed", "1"]
seconds, pause_s = float(sys.argv[5]), 0.004 if "--without-cause" in sys.argv else 0.02
over = os.path.join(os.path.dirname(os.readlink("/proc/self/fd/1")), "over")
sys.stdin.readline()
print("first step done", flush=True)
begin = time.monotonic()
while time.monotonic() - begin < seconds and not os.path.exists(over):
    time.sleep(pause_s)
    probe.step()
rate = (0.98 if seconds > 1.0 else 1.0) / pause_s
print(json.dumps({"steps_per_s": rate, "samples_per_s": 2 * rate}))
"""
"""Trains until it was recorded, however busy the machine is, and reports the rates of an idle one:
the watched run's is 2 % less."""

H200 = "NVIDIA H200"
MEASURED_JSON = json.dumps(
    {"scenario": "loader_workers", "seed": 0, "scale": 1.0, "host_cores": 2, "seconds": 60.0}
    | {"watched": {}, "slow": [], "fast": []}
)


@pytest.fixture
def recorded_to_its_end(monkeypatch: pytest.MonkeyPatch) -> None:
    """The script goes on until its recording is there, and no longer."""

    def record(launched: Launched[Job], file: Path, seconds: float | None) -> None:
        recording.record(launched, file, seconds)
        (launched.job.folder / "over").touch()

    monkeypatch.setattr(running, "OUTLIVES_S", 50.0)
    monkeypatch.setattr(running, "record", record)


def scenario(name: str) -> Scenario:
    return Scenario(**{**ROW, "name": name, "script": f"{name}.py", "kind": "host"})


def plan_of(scripts: Path) -> RunPlan:
    return RunPlan(
        seconds=2.0,
        bare_seconds=0.1,
        repeats=2,
        gpu=H200,
        traceml=False,
        tiny=False,
        scripts=scripts,
    )


def test_without_a_probe_the_recorded_run_has_none_either(tmp_path: Path) -> None:
    run = Run(scenario("sleeps"), 1, 1.0, tmp_path)
    assert all(job.probe for job in plan_of(tmp_path).jobs(run))
    assert not any(job.probe for job in replace(plan_of(tmp_path), probe=False).jobs(run))
    assert evaluate.plan(evaluate.arguments(["out", "--no-probe"])).probe is False
    without = replace(plan_of(tmp_path), probe=False, gpu=None)
    assert "evaluation.timed_fetches" not in next(iter(without.jobs(run))).command(), (
        "it would stand in every stack"
    )


def test_runs_are_watched_then_bare_in_turn(tmp_path: Path) -> None:
    run = Run(scenario("sleeps"), 1, 1.0, tmp_path)
    jobs = list(plan_of(tmp_path).jobs(run))
    assert [job.title for job in jobs] == [
        *("recording", "with.1", "without.1", "without.2", "with.2"),
    ]
    assert jobs[0].seconds == 2.0 + running.OUTLIVES_S
    assert [("--without-cause" in job.command()) for job in jobs] == [
        False,
        False,
        True,
        True,
        False,
    ]


def test_without_a_gpu_the_fetches_are_timed_and_without_a_switch_there_is_one_side(
    tmp_path: Path,
) -> None:
    run = Run(Scenario(**{**ROW, "switch": None}), 0, 0.2, tmp_path)
    plan = RunPlan(2.0, 1.0, 2, gpu=None, traceml=True, tiny=True)
    jobs = list(plan.jobs(run))
    assert [job.title for job in jobs] == ["recording", "with.1", "with.2", "traceml"]
    assert "evaluation.timed_fetches" in jobs[0].command()
    assert "evaluation.timed_fetches" not in jobs[1].command()
    assert "evaluation.under_traceml" in jobs[3].command()
    assert all("--tiny" in job.command() for job in jobs)
    assert run.folder.name == "launch_layers.0.x0.2"
    assert "0.2" in jobs[0].command()


def test_what_an_earlier_suite_measured_bare_is_not_run_again(tmp_path: Path) -> None:
    earlier = tmp_path / "earlier"
    plan = replace(plan_of(tmp_path), truth=earlier)
    run = Run(scenario("loader_workers"), 0, 1.0, tmp_path / "now")
    assert len(list(plan.jobs(run))) == 5, "it knows nothing of this one"
    folder = earlier / run.name
    folder.mkdir(parents=True)
    (folder / MEASURED).write_text(MEASURED_JSON)
    keep(folder / RESULT, result_with(score_with(), gpu=H200))
    assert [job.title for job in plan.jobs(run)] == ["recording"]
    known = plan.measured_before(run)
    assert known is not None
    assert known.seconds == 60.0
    for other in (None, "NVIDIA A100-SXM4-80GB"):
        assert len(list(replace(plan, gpu=other).jobs(run))) == 5, "of another kind of machine"


@pytest.mark.parametrize(
    ("there", "here", "text"),
    [
        (H200, "NVIDIA L4", "earlier was measured on NVIDIA H200, and this machine has NVIDIA L4"),
        (H200, None, "earlier was measured on NVIDIA H200, and this machine has no GPU"),
        (None, H200, "earlier was measured on no GPU, and this machine has NVIDIA H200"),
    ],
)
def test_the_truth_of_another_gpu_is_refused(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    there: str | None,
    here: str | None,
    text: str,
) -> None:
    folder = tmp_path / "earlier" / "loader_workers.0"
    folder.mkdir(parents=True)
    (folder / MEASURED).write_text(MEASURED_JSON)
    keep(folder / RESULT, result_with(score_with(), gpu=there))
    given = evaluate.arguments(["out", "--truth", str(tmp_path / "earlier")])
    monkeypatch.setattr(evaluate, "gpu_here", lambda: there)
    assert evaluate.plan(given).gpu == there
    monkeypatch.setattr(evaluate, "gpu_here", lambda: here)
    with pytest.raises(SystemExit, match=f"{text}$"):
        evaluate.plan(given)


def test_a_folder_without_truth_is_refused_for_that(tmp_path: Path) -> None:
    for folder in (tmp_path, tmp_path / "mistyped"):
        given = evaluate.arguments(["out", "--truth", str(folder)])
        with pytest.raises(SystemExit, match=f"^{folder} holds nothing that was measured$"):
            evaluate.plan(given)


@pytest.mark.parametrize(
    ("variable", "name"),
    [
        (None, "NVIDIA L4"),
        ("1", H200),
        ("GPU-bbbb,0", H200),
        ("", None),
        ("7", None),
    ],
)
def test_the_gpu_here_is_the_first_that_a_run_may_use(
    monkeypatch: pytest.MonkeyPatch, variable: str | None, name: str | None
) -> None:
    nvml = SimpleNamespace(
        NVMLError=OSError,
        nvmlInit=lambda: None,
        nvmlShutdown=lambda: None,
        nvmlDeviceGetCount=lambda: 2,
        nvmlDeviceGetHandleByIndex=lambda at: at,
        nvmlDeviceGetUUID=lambda device: (b"GPU-aaaa", b"GPU-bbbb")[device],
        nvmlDeviceGetName=lambda device: (b"NVIDIA L4", b"NVIDIA H200")[device],
    )
    monkeypatch.setattr(evaluate, "pynvml", nvml)
    if variable is None:
        monkeypatch.delenv("CUDA_VISIBLE_DEVICES", raising=False)
    else:
        monkeypatch.setenv("CUDA_VISIBLE_DEVICES", variable)
    assert evaluate.gpu_here() == name


@pytest.mark.usefixtures("recorded_to_its_end")
def test_the_truth_of_an_earlier_suite_shows_nothing_of_what_watching_costs(
    tmp_path: Path,
) -> None:
    (tmp_path / "sleeps.py").write_text(SCRIPT)
    folder = tmp_path / "earlier" / "sleeps.1"
    folder.mkdir(parents=True)
    slow, fast = ([{"steps_per_s": 5.0 * gain, "samples_per_s": 10.0 * gain}] for gain in (1, 7))
    keep(folder / MEASURED, Measured("sleeps", 1, 1.0, 64, 60.0, slow[0], slow, fast))
    keep(folder / RESULT, result_with(score_with(), gpu=H200))
    run = Run(scenario("sleeps"), 1, 1.0, tmp_path / "now")
    plan = replace(plan_of(tmp_path), truth=tmp_path / "earlier", probe=False)
    assert not run_all([run], plan)
    (result,) = results_in(run.out)
    assert result.truth.gain == 7.0
    assert result.cost is None
    assert not result.probe
    assert measured_in(run.folder).watched["steps_per_s"] != 5.0


def test_each_of_several_causes_is_removed_alone(tmp_path: Path) -> None:
    run = Run(Scenario(**{**ROW, "causes": ["input", "sync"]}), 0, 1.0, tmp_path)
    jobs = list(plan_of(tmp_path).jobs(run))
    assert [job.title for job in jobs][5:] == ["without-sync.1", "without-sync.2"]
    command = jobs[5].command()
    assert command[command.index("--without-cause") + 1] == "sync"
    assert "sync" not in jobs[2].command()


@pytest.mark.usefixtures("recorded_to_its_end")
def test_a_run_is_measured_and_judged_and_a_failed_one_is_named(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "sleeps.py").write_text(SCRIPT)
    (tmp_path / "fails.py").write_text("input(); raise SystemExit('no such GPU')")
    runs = [Run(scenario(name), 1, 1.0, tmp_path) for name in ("fails", "sleeps")]
    assert run_all(runs, plan_of(tmp_path)) == runs[:1]
    printed = capsys.readouterr().out.splitlines()
    assert printed[0].startswith("fails.1")
    assert "FAILED recording: ended before its first step (no such GPU)" in printed[0]
    assert len(printed) == 2, "the other runs of a scenario that failed are left out"
    (result,) = results_in(tmp_path)
    assert result.scenario == "sleeps"
    assert result.seed == 1
    assert result.truth.gain == pytest.approx(5)
    assert result.truth.agrees
    assert OURS in result.tools
    assert result.cost == pytest.approx(0.02)


def test_what_has_its_result_is_not_run_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def launch(job: Job) -> None:
        pytest.fail(f"{job.title} was run")

    monkeypatch.setattr("evaluation.launching.Launched", launch)
    folder = tmp_path / "loader_workers.0"
    folder.mkdir()
    (folder / MEASURED).write_text(MEASURED_JSON)
    keep(folder / RESULT, result_with(score_with()))
    assert evaluate.main([str(tmp_path), "--only", "loader_workers"]) == 0
    assert "| loader_workers.0 | input/workers |" in capsys.readouterr().out


def test_a_run_that_no_rule_could_judge_is_named_and_not_run_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("evaluation.launching.Launched", lambda job: pytest.fail("it was run"))
    folder = tmp_path / "loader_workers.0"
    folder.mkdir()
    (folder / MEASURED).write_text(MEASURED_JSON)
    assert evaluate.main([str(tmp_path), "--only", "loader_workers"]) == 1
    text = capsys.readouterr().out
    assert "loader_workers.0" in text
    assert "NOT JUDGED UsageError" in text, "there is no recording"
    assert "no results" in text
