"""Steps as a device reports them, with the fields that the table's arithmetic reads."""

from gpuwatch.tui.steps import GpuStep


def gpu_step(start_ns: int, wall_ns: int, data_ns: int = 0, lag_ns: int | None = None) -> GpuStep:
    """A step whose time is data and forward."""
    return GpuStep(
        number=1,
        count=1,
        start_ns=start_ns,
        end_ns=start_ns + wall_ns,
        device=0,
        gpu_start_ns=start_ns,
        gpu_end_ns=start_ns + wall_ns,
        data_ns=data_ns,
        startup_ns=0,
        forward_ns=wall_ns - data_ns,
        backward_ns=0,
        optimizer_ns=0,
        other_ns=0,
        evaluation_ns=0,
        checkpoint_ns=0,
        compile_ns=0,
        phases={},
        host_wait_ns=data_ns,
        lag_start_ns=lag_ns,
        lag_data_ns=lag_ns,
        lag_forward_ns=lag_ns,
        lag_backward_ns=lag_ns,
        lag_optimizer_ns=lag_ns,
        uncertain_ns=None if lag_ns is None else 5_000,
    )
