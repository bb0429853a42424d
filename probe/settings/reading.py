"""What was read: the fields of `messages.Settings`, made without the codec, which the training
thread avoids."""

from typing import NamedTuple


class Reading(NamedTuple):
    """The fields of `messages.Settings` in their order, which a test holds together."""

    threads: int | None = None
    matmul_precision: str | None = None
    cudnn_benchmark: bool | None = None
    deterministic: bool | None = None
    anomaly: bool | None = None
    autocast: str | None = None
    scaler: bool | None = None
    optimizer: str | None = None
    foreach: bool | None = None
    fused: bool | None = None
    parameters: int | None = None
    parameter_bytes: int | None = None
    parameter_dtype: str | None = None
    parameter_device: str | None = None
    cudnn_tf32: bool | None = None
    capability: int | None = None
    set_to_none: bool | None = None
    failed_guard: str | None = None


def type_name(dtype: object) -> str:
    """ "bfloat16" of torch.bfloat16."""
    return str(dtype).removeprefix("torch.")
