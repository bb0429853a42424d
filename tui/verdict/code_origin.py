"""Whose code a file is: the user's own, a library's, or what shows only how something waits."""

import sys
from functools import lru_cache
from typing import Final

# fmt: off
LIBRARIES: Final = frozenset((
    "accelerate", "albumentations", "bitsandbytes", "cupy", "cv2", "datasets", "deepspeed",
    "einops", "fsspec", "h5py", "huggingface_hub", "imageio", "joblib", "jax", "keras",
    "lightning", "lightning_fabric", "litdata", "lmdb", "matplotlib", "monai", "numba", "numpy",
    "nvidia", "pandas", "peft", "PIL", "pip", "pyarrow", "pytorch_lightning", "ray",
    "safetensors", "scipy", "sentencepiece", "skimage", "sklearn", "streaming", "tensorboard",
    "tensordict", "timm", "tokenizers", "torch", "torchao", "torchaudio", "torchdata",
    "torchmetrics", "torchvision", "tqdm", "transformers", "triton", "wandb", "webdataset",
    "zarr", "zmq",
))
# fmt: on
"""Packages that are not the user's own code."""

MACHINERY: Final = (
    "multiprocessing/",
    "threading.py",
    "selectors.py",
    "queue.py",
    "contextlib.py",
    "socket.py",
    "functools.py",
    "importlib/",
    "<frozen",
    "gpuwatch/probe/",
    "_pytest/",
)
"""Files that show how something waits, not what for."""

MOST_PATHS: Final = 8_192
"""The same lines come again and again."""


@lru_cache(maxsize=MOST_PATHS)
def is_users(path: str) -> bool:
    """Whether a file is the user's own: neither a library's nor the standard library's."""
    if path.startswith(MACHINERY) or path.startswith("<") or "-packages/" in path:
        return False
    top = path.partition(":")[0].split("/", 1)[0].removesuffix(".py")
    return top not in LIBRARIES and top not in sys.stdlib_module_names
