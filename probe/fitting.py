"""A batch as bytes that a reader takes. Runs on the publisher's thread."""

from msgspec.structs import replace

from .wire.messages import MAX_FRAME_BYTES, Batch, encode_message


def encode_batch(batch: Batch) -> bytes:
    """The batch, without its oldest steps where it would be too long.

    A history of steps with many phases of the user's comes to that.
    """
    while len(frame := encode_message(batch)) > MAX_FRAME_BYTES and (
        batch.steps or batch.gpu_steps
    ):
        newer, newer_gpu = len(batch.steps) // 2 + 1, len(batch.gpu_steps) // 2 + 1
        batch = replace(batch, steps=batch.steps[newer:], gpu_steps=batch.gpu_steps[newer_gpu:])
    return frame
