"""Every metric that is exported: its name, its type, what it is.

Names follow Prometheus: base units as the last word, `_ratio` for parts of 1, `_total` for
counters, `_info` for facts whose value is 1. A rank takes 44 series, 75 with a GPU: label values
are the closed lists of the code, but for a program's own phases (`metrics.MOST_OWN_PHASES`).
"""

from dataclasses import dataclass
from typing import Final, Literal, get_args

MetricType = Literal["gauge", "counter", "histogram", "info"]
MetricName = Literal[
    "gpuwatch_target_info",
    "gpuwatch_target_up",
    "gpuwatch_target_state",
    "gpuwatch_steps_total",
    "gpuwatch_step_seconds",
    "gpuwatch_open_step_seconds",
    "gpuwatch_phase_ratio",
    "gpuwatch_exposed_wait_ratio",
    "gpuwatch_verdict_info",
    "gpuwatch_verdict_confidence_ratio",
    "gpuwatch_verdict_share_ratio",
    "gpuwatch_verdict_speedup_ratio",
    "gpuwatch_job_verdict_info",
    "gpuwatch_communication_ratio",
    "gpuwatch_late_ratio",
    "gpuwatch_gpu_time_ratio",
    "gpuwatch_gpu_lag_seconds",
    "gpuwatch_gpu_info",
    "gpuwatch_gpu_busy_ratio",
    "gpuwatch_gpu_memory_used_bytes",
    "gpuwatch_gpu_memory_limit_bytes",
    "gpuwatch_allocator_bytes",
    "gpuwatch_allocator_retries_total",
    "gpuwatch_host_memory_bytes",
    "gpuwatch_host_memory_available_bytes",
    "gpuwatch_memory_full_seconds",
    "gpuwatch_probe_cost_ratio",
    "gpuwatch_lost_marks_total",
    "gpuwatch_lost_messages_total",
    "gpuwatch_exporter_info",
    "gpuwatch_exporter_targets",
    "gpuwatch_exporter_cpu_seconds_total",
    "gpuwatch_exporter_requests_total",
    "gpuwatch_exporter_dropped_connections_total",
    "gpuwatch_exporter_failed_targets_total",
]


@dataclass(frozen=True, slots=True)
class Metric:
    """One metric."""

    name: MetricName
    type: MetricType
    help: str

    @property
    def family(self) -> str:
        """Its name in OpenMetrics, where counters and facts lose their last word."""
        suffix = {"counter": "_total", "info": "_info"}.get(self.type, "")
        return self.name.removesuffix(suffix)

    @property
    def unit(self) -> str:
        """ "seconds"; "" where the name ends in none."""
        last = self.family.rpartition("_")[2]
        return last if last in ("seconds", "bytes", "ratio") else ""


def _each(*rows: tuple[MetricName, MetricType, str]) -> dict[MetricName, Metric]:
    return {name: Metric(name, kind, text) for name, kind, text in rows}


CATALOGUE: Final = _each(
    ("gpuwatch_target_info", "info", "A training process that is watched: what it runs."),
    ("gpuwatch_target_up", "gauge", "1 while the process runs and its probe answers."),
    ("gpuwatch_target_state", "gauge", "1 for the state that the process is in, 0 for the others."),
    ("gpuwatch_steps_total", "counter", "Steps since the probe was armed."),
    ("gpuwatch_step_seconds", "histogram", "How long the steps took that the monitor saw."),
    ("gpuwatch_open_step_seconds", "gauge", "Age of the step that has not ended."),
    (
        "gpuwatch_phase_ratio",
        "gauge",
        "Part of the steps' time in each phase, by the host's clock, the GPU's, or stack samples "
        "of a process without a probe.",
    ),
    (
        "gpuwatch_exposed_wait_ratio",
        "gauge",
        "Part of the steps' time in which the GPU (without one, the host) waits for data.",
    ),
    ("gpuwatch_verdict_info", "info", "What holds the process back now."),
    ("gpuwatch_verdict_confidence_ratio", "gauge", "How sure the verdict is."),
    ("gpuwatch_verdict_share_ratio", "gauge", "Part of the steps' time that the cause holds."),
    ("gpuwatch_verdict_speedup_ratio", "gauge", "Steps a second after the first action over now."),
    (
        "gpuwatch_job_verdict_info",
        "info",
        "What holds the job back, all its ranks here as one; from its lowest rank on the host.",
    ),
    (
        "gpuwatch_communication_ratio",
        "gauge",
        "Part of the rank's time in collectives: transfer, or waiting for later ranks.",
    ),
    (
        "gpuwatch_late_ratio",
        "gauge",
        "Part of the time that every other rank here waits for this one.",
    ),
    ("gpuwatch_gpu_time_ratio", "gauge", "Where the GPU's time went; the parts add up to 1."),
    (
        "gpuwatch_gpu_lag_seconds",
        "gauge",
        "How long after the host the GPU reaches the end of a phase.",
    ),
    ("gpuwatch_gpu_info", "info", "A GPU that the process uses, as dcgm-exporter names it."),
    ("gpuwatch_gpu_busy_ratio", "gauge", "Part of the last second in which anything ran on it."),
    ("gpuwatch_gpu_memory_used_bytes", "gauge", "In use on the GPU, by all processes."),
    ("gpuwatch_gpu_memory_limit_bytes", "gauge", "Memory that the GPU has."),
    ("gpuwatch_allocator_bytes", "gauge", "PyTorch's caching allocator, by what it counts."),
    (
        "gpuwatch_allocator_retries_total",
        "counter",
        "Allocations that had to empty the allocator's cache first.",
    ),
    ("gpuwatch_host_memory_bytes", "gauge", "Memory of the training process, and its workers'."),
    ("gpuwatch_host_memory_available_bytes", "gauge", "Memory that is free for the process."),
    (
        "gpuwatch_memory_full_seconds",
        "gauge",
        "Until memory that grows is full if that goes on, at the earliest; absent while none does.",
    ),
    ("gpuwatch_probe_cost_ratio", "gauge", "What the probe costs, part of a step."),
    ("gpuwatch_lost_marks_total", "counter", "Marks that the probe had no room for."),
    ("gpuwatch_lost_messages_total", "counter", "Messages of the probe that did not arrive."),
    ("gpuwatch_exporter_info", "info", "The exporter."),
    ("gpuwatch_exporter_targets", "gauge", "Processes that are exported."),
    ("gpuwatch_exporter_cpu_seconds_total", "counter", "CPU time that the exporter has used."),
    ("gpuwatch_exporter_requests_total", "counter", "Requests answered, by status."),
    (
        "gpuwatch_exporter_dropped_connections_total",
        "counter",
        "Connections closed without an answer, by reason.",
    ),
    (
        "gpuwatch_exporter_failed_targets_total",
        "counter",
        "Processes that could not be watched, or not any more.",
    ),
)
assert set(CATALOGUE) == set(get_args(MetricName))
