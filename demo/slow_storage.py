"""Reads as slow as those of a busy file system at the other end of a network."""

import io
import time
from pathlib import Path

CHUNK = 64 * 1024
"""Bytes that one request to the server brings, as a network file system reads ahead."""


class NetworkShare:
    """A mounted share whose server answers each reader at a limited rate.

    A reader sleeps in `read` as it would for a server's answer: it uses no CPU and returns late.
    """

    def __init__(self, latency_s: float, bytes_per_s: float) -> None:
        self.latency_s = latency_s
        """Seconds that a request takes before its first byte."""
        self.bytes_per_s = bytes_per_s

    def read(self, path: Path) -> bytes:
        """The file's bytes, request by request."""
        content = io.BytesIO()
        with path.open("rb", buffering=0) as file:
            while chunk := file.read(CHUNK):
                time.sleep(self.latency_s + len(chunk) / self.bytes_per_s)
                content.write(chunk)
        return content.getvalue()
