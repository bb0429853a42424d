"""W&B, MLflow and TensorBoard: through their own clients, where those are installed."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from gpuwatch.tui.errors import UsageError
from gpuwatch.tui.fleet import trackers
from gpuwatch.tui.fleet.metrics import Watched
from gpuwatch.tui.fleet.push import pushes_of
from gpuwatch.tui.fleet.trackers import Curves, MlFlow, Scalars, TensorBoard, WeightsAndBiases
from gpuwatch.tui.model.snapshot import as_ended
from tests.processes.monitored import until
from tests.unit.faces.pictures import STEPS, picture
from tests.unit.fleet.making import HISTOGRAM, as_rank, exported, watched

AT = 1_700_000_000.25


def scalars_of(*every: Watched) -> Scalars:
    """Of what is one training."""
    (found,) = Curves().of(exported(*every))
    return found


def test_scalars_are_named_by_what_they_measure() -> None:
    scalars = scalars_of(watched())
    assert scalars.step == STEPS.total
    assert scalars.values["gpuwatch/phase_ratio/data.host"] == 0.57
    assert scalars.values["gpuwatch/verdict/input.workers"] == 1.0
    mean_s = HISTOGRAM.sum_s / HISTOGRAM.steps
    assert scalars.values["gpuwatch/step_seconds/mean"] == pytest.approx(mean_s)
    assert not any("exporter" in name or "target" in name for name in scalars.values)


def test_of_several_ranks_each_has_its_own() -> None:
    scalars = scalars_of(*(watched(as_rank(rank, 2), job=("a",)) for rank in (0, 1)))
    assert {name.split("/")[1] for name in scalars.values} == {"rank 0", "rank 1"}


def test_a_run_that_is_started_anew_has_its_own_steps() -> None:
    """What ended at step 100,000 is exported for five minutes more: so long the new run's values
    were logged at that step."""
    at_100k = picture(pid=1, steps=replace(STEPS, total=100_000))
    ended = watched(as_ended(at_100k, "ended by RuntimeError"))
    anew = watched(picture(pid=2, steps=replace(STEPS, total=10)))
    for order in ((ended, anew), (anew, ended)):
        scalars = scalars_of(*order)
        assert (scalars.step, scalars.values["gpuwatch/steps"]) == (10, 10.0)
    assert scalars_of(ended).step == 100_000


def at_step(pid: int, total: int, run: str) -> Watched:
    return watched(picture(pid=pid, steps=replace(STEPS, total=total)), run=run)


def steps_of(curves: Curves, *every: Watched) -> dict[str, tuple[int, float]]:
    """By the name of each curve of steps: the step that it is logged at, and its value."""
    return {
        name: (one.step, value)
        for one in curves.of(exported(*every))
        for name, value in one.values.items()
        if name.endswith("/steps")
    }


def test_two_trainings_on_a_host_have_curves_of_their_own_at_their_own_steps() -> None:
    """They were one curve, whose values were those of the first at the step of the furthest."""
    curves = Curves()
    old, new = at_step(1, 100_000, "resnet.py"), at_step(2, 10, "gpt.py")
    assert steps_of(curves, old) == {"gpuwatch/steps": (100_000, 100_000.0)}
    both = {"gpuwatch/steps": (100_000, 100_000.0), "gpuwatch/gpt.py/steps": (10, 10.0)}
    for order in ((old, new), (new, old)):
        assert steps_of(curves, *order) == both
    ended = watched(as_ended(old.snapshot, "exited normally"), run="resnet.py")
    assert steps_of(curves, ended, new) == {"gpuwatch/gpt.py/steps": (10, 10.0)}


def test_what_ended_before_gets_no_new_curves_once_nothing_trains() -> None:
    """A second run of a script, which ends too."""
    curves, new = Curves(), at_step(2, 50, "train.py")
    old = at_step(1, 500, "train.py")
    assert steps_of(curves, old) == {"gpuwatch/steps": (500, 500.0)}
    ended = watched(as_ended(old.snapshot, "exited normally"), run="train.py")
    named = steps_of(curves, ended, new)
    newest = watched(as_ended(new.snapshot, "exited normally"), run="train.py")
    assert steps_of(curves, ended, newest).keys() <= named.keys() | {"gpuwatch/steps"}
    assert len(steps_of(curves, ended, newest)) == len(named)


def test_two_trainings_of_one_script_are_told_apart_by_a_rank_that_is_there_twice() -> None:
    def job_of(first_pid: int, total: int) -> list[Watched]:
        seen = [as_rank(rank, 2, steps=replace(STEPS, total=total)) for rank in (0, 1)]
        return [watched(replace(one, pid=first_pid + at)) for at, one in enumerate(seen)]

    curves = Curves()
    assert steps_of(curves, *job_of(1, 500), *job_of(8, 20)) == {
        "gpuwatch/rank 0/steps": (500, 500.0),
        "gpuwatch/rank 1/steps": (500, 500.0),
        "gpuwatch/train.py/rank 0/steps": (20, 20.0),
        "gpuwatch/train.py/rank 1/steps": (20, 20.0),
    }
    third = at_step(30, 7, "train.py")
    found = steps_of(curves, *job_of(1, 500), *job_of(8, 20), third)
    assert found["gpuwatch/train.py 30/rank 0/steps"] == (7, 7.0)


def test_a_client_that_is_missing_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    def none(name: str) -> Any:
        raise ImportError(f"No module named {name!r}")

    monkeypatch.setattr(trackers, "import_module", none)
    for option in ("wandb", "mlflow"):
        given = {"otlp": None, "wandb": None, "mlflow": None, "tensorboard": None, option: "r"}
        with pytest.raises(UsageError, match=f"--{option} needs .*{option}") as raised:
            pushes_of(print, **given)  # type: ignore[arg-type]
        assert "pip install" in raised.value.fix


def test_tensorboard(tmp_path: Path) -> None:
    pytest.importorskip("tensorboard", reason="not installed: pip install tensorboard")
    from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

    board = TensorBoard(tmp_path)
    board.open()
    board.send(exported(watched()), AT)
    board.close()
    read = EventAccumulator(str(tmp_path / "gpuwatch"))
    read.Reload()
    (event,) = read.Tensors("gpuwatch/phase_ratio/data.host")
    assert (event.step, event.wall_time) == (STEPS.total, AT)
    assert event.tensor_proto.float_val[0] == pytest.approx(0.57)


def test_mlflow(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    mlflow = pytest.importorskip("mlflow", reason="not installed: pip install mlflow-skinny")
    monkeypatch.setenv("MLFLOW_ALLOW_FILE_STORE", "true")  # a database needs another package
    monkeypatch.setenv("MLFLOW_TRACKING_URI", tmp_path.as_uri())
    mlflow.set_tracking_uri(tmp_path.as_uri())
    client = mlflow.tracking.MlflowClient()
    experiment = client.create_experiment("test", artifact_location=tmp_path.as_uri())
    run = client.create_run(experiment).info.run_id
    log = MlFlow(run)
    log.open()
    log.send(exported(watched()), AT)
    log.close()
    (metric,) = client.get_metric_history(run, "gpuwatch/phase_ratio/data.host")
    assert (metric.step, metric.timestamp, metric.value) == (STEPS.total, 1700000000250, 0.57)
    assert client.get_run(run).info.status == "RUNNING"


def test_wandb_offline(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("wandb", reason="not installed: pip install wandb")
    monkeypatch.setenv("WANDB_MODE", "offline")
    monkeypatch.setenv("WANDB_DIR", str(tmp_path))
    log = WeightsAndBiases("run7")
    log.open()
    log.send(exported(watched()), AT)
    log.close()
    (written,) = tmp_path.glob("wandb/offline-run-*-run7/*.wandb")
    # Its own process writes the file, a moment after `finish`.
    assert until(lambda: b"gpuwatch/phase_ratio/data.host" in written.read_bytes())
