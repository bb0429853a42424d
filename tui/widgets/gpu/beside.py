"""The next GPU or rank, or the one before."""

from tui.snapshot import Rank, Snapshot


def beside_device(snapshot: Snapshot, device: int | None, by: int) -> int:
    """NVML's index of the GPU after (+1) or before (-1) the chosen one, round and round; nobody
    having chosen means the first."""
    indices = [gpu.index for gpu in snapshot.gpus]
    at = indices.index(device) if device in indices else 0
    return indices[(at + by) % len(indices)]


def beside_rank(snapshot: Snapshot, by: int) -> Rank | None:
    """The rank after (+1) or before (-1) the target whose process is there, round and round; None
    where there is no other."""
    there = [rank for rank in snapshot.ranks if rank.is_target or rank.state != "ended"]
    at = next((at for at, rank in enumerate(there) if rank.is_target), None)
    if at is None or len(there) < 2:
        return None
    return there[(at + by) % len(there)]
