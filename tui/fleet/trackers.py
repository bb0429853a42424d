"""Metrics beside a run's own curves: W&B, MLflow and TensorBoard, through their own clients."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from importlib import import_module
from pathlib import Path
from typing import Any, Final

from ..errors import UsageError
from ..steps import StepHistogram
from .catalogue import MetricName
from .host import host_name
from .metrics import Family, Labels, Sample

OF_A_TARGET: Final = frozenset({"run", "rank", "hostname", "pid"})
FACTS: Final[tuple[MetricName, ...]] = ("gpuwatch_verdict_info", "gpuwatch_job_verdict_info")
"""Facts that are logged, as 1 under the name of what they say: a curve for each verdict."""
LEFT_OUT: Final = ("gpuwatch_exporter_", "gpuwatch_target_")


@dataclass
class Scalars:
    """The values of one training at a moment by name, and the step that they belong to."""

    step: int = 0
    """Of the rank that is furthest."""
    values: dict[str, float] = field(default_factory=dict)


class Curves:
    """Which curves are whose. Those of one training are called by what they measure alone; one that
    comes beside it has its own name before them, for as long as it runs."""

    def __init__(self) -> None:
        self._names: dict[Labels, str] = {}
        """Of the training of each target that is logged."""

    def of(self, families: Sequence[Family]) -> list[Scalars]:
        """The values of each training."""
        states = _states(families)
        self._name(_logged(states, self._names))
        found: dict[str, Scalars] = {}
        for family in families:
            for sample in family.samples:
                target = _target_of(sample)
                name = self._name_of(target, states)
                if name is None:
                    continue
                rank = f"rank {dict(target)['rank']}" if _is_of_several(target, states) else ""
                scalars = found.setdefault(name, Scalars())
                for what, value in _named(family, sample):
                    path = filter(None, ("gpuwatch", name, rank, what))
                    scalars.values["/".join(path)] = value
                    if family.metric.name == "gpuwatch_steps_total":
                        scalars.step = max(scalars.step, round(value))
        return list(found.values())

    def _name_of(self, target: Labels, states: Mapping[Labels, str]) -> str | None:
        """None of what is not logged, and of the exporter itself."""
        if target in states:
            return self._names.get(target)
        # What a job has of a rank that is not exported itself.
        run = dict(target).get("run")
        return next((name for one, name in self._names.items() if dict(one)["run"] == run), None)

    def _name(self, targets: Sequence[Labels]) -> None:
        """Ranks of one run share a name. Where two runs are called alike, a rank that is there
        twice shows it."""
        self._names = {one: name for one, name in self._names.items() if one in targets}
        for target in targets:
            run, pid = dict(target)["run"], dict(target)["pid"]
            names = ("", run, f"{run} {pid}")
            if target not in self._names:
                self._names[target] = next(one for one in names if self._is_free(one, target))

    def _is_free(self, name: str, target: Labels) -> bool:
        beside = [dict(one) for one, other in self._names.items() if other == name]
        own = dict(target)
        return all(one["run"] == own["run"] and one["rank"] != own["rank"] for one in beside)


def _states(families: Sequence[Family]) -> dict[Labels, str]:
    """Of each target."""
    return {
        _target_of(sample): dict(sample.labels)["state"]
        for family in families
        if family.metric.name == "gpuwatch_target_state"
        for sample in family.samples
        if sample.value
    }


def _logged(states: Mapping[Labels, str], before: Mapping[Labels, str]) -> list[Labels]:
    """Without the targets that have ended, while others run: what is started anew begins at step 0,
    and the steps of the run before are not its own."""
    live = [target for target, state in states.items() if state != "ended"]
    return live or [target for target in states if target in before] or list(states)


def _is_of_several(target: Labels, states: Mapping[Labels, str]) -> bool:
    """Its run has more ranks here, or had."""
    run = dict(target)["run"]
    return len({dict(one)["rank"] for one in states if dict(one)["run"] == run}) > 1


def _target_of(sample: Sample) -> Labels:
    return tuple(label for label in sample.labels if label[0] in OF_A_TARGET)


def _named(family: Family, sample: Sample) -> Iterator[tuple[str, float]]:
    """A sample as "phase_ratio/data.host", its value."""
    metric, labels = family.metric, dict(sample.labels)
    if metric.name.startswith(LEFT_OUT):
        return
    base = metric.family.removeprefix("gpuwatch_")
    if isinstance(sample.value, StepHistogram):
        if sample.value.steps:
            yield f"{base}/mean", sample.value.sum_s / sample.value.steps
        return
    if metric.type == "info":
        if metric.name in FACTS:
            sub = labels["sub"]
            yield f"{base}/{labels['kind']}{'.' if sub else ''}{sub}", 1.0
        return
    more = [text for name, text in sample.labels if name not in OF_A_TARGET and name != "UUID"]
    yield "/".join([base, ".".join(more)]) if more else base, float(sample.value)


def _client(module: str, package: str, option: str) -> Any:
    """A tracker's own client. Raises UsageError where it is not installed."""
    try:
        return import_module(module)
    except ImportError as error:
        raise UsageError(
            f"{option} needs {package}, which cannot be imported here",
            str(error),
            f"To install it: python -m pip install {package}",
        ) from None


class WeightsAndBiases:
    """A run of W&B that its training may be writing to as well: so a second writer of it (their
    "shared" mode), which does not finish it."""

    def __init__(self, run: str) -> None:
        """Raises UsageError without the client."""
        self.name = f"wandb {run}"
        self._wandb = _client("wandb", "wandb", "--wandb")
        self._id = run
        self._run: Any = None
        self._curves = Curves()

    def open(self) -> None:
        """Join the run; offline (WANDB_MODE) a run of its own."""
        wandb = self._wandb
        offline = wandb.setup().settings.mode == "offline"
        shared: dict[str, Any] = {
            "mode": "shared",
            "x_primary": False,
            "x_label": f"gpuwatch-{host_name()}",
            "x_update_finish_state": False,
        }
        settings = {} if offline else shared
        self._run = wandb.init(
            id=self._id, settings=wandb.Settings(silent=True, console="off", **settings)
        )
        self._run.define_metric("gpuwatch/step")
        self._run.define_metric("gpuwatch/*", step_metric="gpuwatch/step")

    def send(self, families: Sequence[Family], at_unix: float) -> None:
        """Log, by the training's steps and not by W&B's."""
        for one in self._curves.of(families):
            self._run.log({**one.values, "gpuwatch/step": one.step})

    def close(self) -> None:
        """Hand over what is left."""
        self._run.finish()


MOST_IN_A_BATCH: Final = 1000
"""MLflow's limit of a log_batch."""


class MlFlow:
    """A run of MLflow, by its id."""

    def __init__(self, run: str) -> None:
        """Raises UsageError without the client."""
        self.name = f"mlflow {run}"
        self._tracking = _client("mlflow.tracking", "mlflow-skinny", "--mlflow")
        self._metric = _client("mlflow.entities", "mlflow-skinny", "--mlflow").Metric
        self._id = run
        self._mlflow: Any = None
        self._curves = Curves()

    def open(self) -> None:
        """Find the run where MLFLOW_TRACKING_URI says."""
        self._mlflow = self._tracking.MlflowClient()
        self._mlflow.get_run(self._id)

    def send(self, families: Sequence[Family], at_unix: float) -> None:
        """Log by the training's steps."""
        at_ms = round(at_unix * 1000)
        rows = [
            self._metric(name, value, at_ms, one.step)
            for one in self._curves.of(families)
            for name, value in one.values.items()
        ]
        for first in range(0, len(rows), MOST_IN_A_BATCH):
            self._mlflow.log_batch(self._id, metrics=rows[first : first + MOST_IN_A_BATCH])

    def close(self) -> None:
        """Nothing is held: the run is its training's to end."""


class TensorBoard:
    """Event files in a folder of their own below `folder`."""

    def __init__(self, folder: Path) -> None:
        """Raises UsageError without the client."""
        self.name = f"tensorboard {folder}"
        self._summary = _client("tensorboard.summary", "tensorboard", "--tensorboard")
        self._folder = folder / "gpuwatch"
        self._writer: Any = None
        self._curves = Curves()

    def open(self) -> None:
        """Make the folder."""
        self._folder.mkdir(parents=True, exist_ok=True)
        self._writer = self._summary.Writer(str(self._folder))

    def send(self, families: Sequence[Family], at_unix: float) -> None:
        """Write by the training's steps."""
        for one in self._curves.of(families):
            for name, value in one.values.items():
                self._writer.add_scalar(name, value, one.step, wall_time=at_unix)
        self._writer.flush()

    def close(self) -> None:
        """Write what is left."""
        self._writer.close()
