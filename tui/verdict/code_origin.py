"""Whose code a file is: the user's own, a library's, or what shows only how something waits."""

import sys
from functools import lru_cache
from typing import Final

# fmt: off
LIBRARIES: Final = frozenset((
    "accelerate", "albumentations", "ale_py", "bitsandbytes", "cupy", "cv2", "datasets",
    "deepspeed", "dgl", "diffusers", "dm_control", "einops", "ema_pytorch", "envpool", "fsspec",
    "gym", "gymnasium", "h5py", "huggingface_hub", "ignite", "imageio", "jax", "joblib", "keras",
    "kornia", "lightning", "lightning_fabric", "lightning_utilities", "litdata", "lmdb",
    "matplotlib", "mlflow", "monai", "mujoco", "nltk", "numba", "numpy", "nvidia", "pandas",
    "peft", "pettingzoo", "PIL", "pip", "procgen", "pyarrow", "pygame", "pytorch_lightning",
    "ray", "safetensors", "scipy", "sentencepiece", "skimage", "sklearn", "skorch", "spacy",
    "stable_baselines3", "streaming", "tensorboard", "tensorboardX", "tensordict", "timm",
    "tokenizers", "torch", "torch_geometric", "torchao", "torchaudio", "torchdata",
    "torchmetrics", "torchvision", "tqdm", "transformers", "triton", "trl", "wandb", "webdataset",
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
