"""Metrics beside a run's own curves: W&B, MLflow and TensorBoard, through their own clients."""

from collections.abc import Iterator, Sequence
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


class Scalars:
    """The values of one moment by name, and the step that they belong to."""

    def __init__(self, families: Sequence[Family]) -> None:
        self.step = 0
        """Of the rank that is furthest."""
        self.values: dict[str, float] = {}
        left_out = _ended_before(families)
        ranks = {
            dict(sample.labels)["rank"]
            for family in families
            for sample in family.samples
            if family.metric.name == "gpuwatch_target_info"
        }
        for family in families:
            for sample in family.samples:
                if _target_of(sample) in left_out:
                    continue
                for name, value in _named(family, sample):
                    rank = dict(sample.labels).get("rank", "0")
                    prefix = f"gpuwatch/rank {rank}" if len(ranks) > 1 else "gpuwatch"
                    self.values[f"{prefix}/{name}"] = value
                    if family.metric.name == "gpuwatch_steps_total":
                        self.step = max(self.step, round(value))


def _ended_before(families: Sequence[Family]) -> set[Labels]:
    """The targets that have ended, while others run: what is started anew begins at step 0, and the
    steps of the run before are not its own."""
    states = {
        _target_of(sample): dict(sample.labels)["state"]
        for family in families
        if family.metric.name == "gpuwatch_target_state"
        for sample in family.samples
        if sample.value
    }
    ended = {target for target, state in states.items() if state == "ended"}
    return ended if len(ended) < len(states) else set()


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
        scalars = Scalars(families)
        self._run.log({**scalars.values, "gpuwatch/step": scalars.step})

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

    def open(self) -> None:
        """Find the run where MLFLOW_TRACKING_URI says."""
        self._mlflow = self._tracking.MlflowClient()
        self._mlflow.get_run(self._id)

    def send(self, families: Sequence[Family], at_unix: float) -> None:
        """Log by the training's steps."""
        scalars = Scalars(families)
        at_ms = round(at_unix * 1000)
        rows = [
            self._metric(name, value, at_ms, scalars.step) for name, value in scalars.values.items()
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

    def open(self) -> None:
        """Make the folder."""
        self._folder.mkdir(parents=True, exist_ok=True)
        self._writer = self._summary.Writer(str(self._folder))

    def send(self, families: Sequence[Family], at_unix: float) -> None:
        """Write by the training's steps."""
        scalars = Scalars(families)
        for name, value in scalars.values.items():
            self._writer.add_scalar(name, value, scalars.step, wall_time=at_unix)
        self._writer.flush()

    def close(self) -> None:
        """Write what is left."""
        self._writer.close()
