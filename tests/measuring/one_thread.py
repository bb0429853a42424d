"""A training on one thread of its process."""

import os

import torch


def one_thread() -> None:
    """Kernels of the CPU would only compete with the workers."""
    torch.set_num_threads(1)
    os.environ.setdefault("OMP_NUM_THREADS", "1")
