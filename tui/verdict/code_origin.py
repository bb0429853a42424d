"""Whose code a file is: the user's own, a library's, or what shows only how something waits."""

import sys
from functools import lru_cache
from typing import Final

# fmt: off
LIBRARIES: Final = frozenset((
    "absl", "accelerate", "aiohttp", "albumentations", "ale_py", "bitsandbytes", "boto3",
    "botocore", "botorch", "clearml", "cloudpickle", "comet_ml", "cupy", "cv2", "datasets",
    "deepspeed", "denoising_diffusion_pytorch", "detectron2", "dgl", "diffrax", "diffusers", "dill",
    "dm_control", "e3nn", "einops", "ema_pytorch", "envpool", "fairseq", "fastai", "fastcore",
    "flash_attn", "fsspec", "gluonts", "gpytorch", "gym", "gymnasium", "h5py", "huggingface_hub",
    "hydra", "ignite", "imageio", "jax", "joblib", "keras", "kornia", "lightning",
    "lightning_fabric", "lightning_utilities", "linear_operator", "lion_pytorch", "litdata", "lmdb",
    "matplotlib", "mlflow", "mmcv", "mmdet", "mmengine", "mmseg", "monai", "msgpack", "mujoco",
    "multiprocess", "nltk", "numba", "numpy", "nvidia", "omegaconf", "onnxruntime", "opacus",
    "open_clip", "optuna", "orjson", "pandas", "peft", "pettingzoo", "PIL", "pip", "polars",
    "procgen", "pyarrow", "pydantic", "pygame", "pyro", "pytorch_fid", "pytorch_forecasting",
    "pytorch_lightning", "pytorch_metric_learning", "pytorch_optimizer", "ray", "rich", "s3fs",
    "safetensors", "scipy", "seaborn", "segmentation_models_pytorch", "sentence_transformers",
    "sentencepiece", "setfit", "skimage", "sklearn", "skorch", "spacy", "speechbrain",
    "stable_baselines3", "streaming", "sympy", "tensorboard", "tensorboardX", "tensordict",
    "tensorflow", "tiktoken", "timm", "tokenizers", "torch", "torch_cluster", "torch_ema",
    "torch_geometric", "torch_optimizer", "torch_scatter", "torch_sparse", "torchao", "torchaudio",
    "torchdata", "torchdiffeq", "torchdyn", "torchio", "torchmetrics", "torchrl", "torchsde",
    "torchtext", "torchtune", "torchvision", "tqdm", "transformers", "triton", "trl",
    "typing_extensions", "ultralytics", "unsloth", "urllib3", "vector_quantize_pytorch", "vllm",
    "wandb", "webdataset", "x_transformers", "xformers", "xgboost", "yaml", "zarr", "zmq",
))
# fmt: on
"""Packages that are not the user's own code, wherever they lie, and that nobody names a folder of
their own after. What else is installed keeps its folder in the path
(`sources/source_text/files.py`)."""

MACHINERY: Final = (
    "multiprocessing/",
    "concurrent/futures/",
    "torch/_ops.py",
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
    "keras/src/utils/traceback_utils.py",  # around each call of a layer or a trainer
)
"""Files that show how something waits, not what for."""

LOADERS: Final = (
    *("torch/utils/data/", "torchdata/", "webdataset/", "litdata/", "nvidia/dali/"),
    "gpuwatch/probe/wrapped.py",
)
"""Files of loaders: what a stack has above them is the loop that fetches, not what is fetched."""

NOWHERE: Final = "?"
"""The place of a stack that could not be read: nobody's."""

MOST_PATHS: Final = 8_192
"""The same lines come again and again."""


@lru_cache(maxsize=MOST_PATHS)
def is_users(path: str) -> bool:
    """Whether a file is the user's own: neither a library's nor the standard library's."""
    if path.startswith(MACHINERY) or path.startswith("<") or "-packages/" in path:
        return False
    top, below, _ = path.partition(":")[0].partition("/")
    if not below:  # a file by itself: nearly all libraries are folders, and people have a clip.py
        package, _, ending = top.partition(".")
        if ending != "py" and package in LIBRARIES:
            return False  # code that a library has written, as PyTorch Geometric for each layer
        return top.removesuffix(".py") not in sys.stdlib_module_names
    return top not in LIBRARIES and top not in sys.stdlib_module_names


@lru_cache(maxsize=MOST_PATHS)
def where_in(frame: str) -> str:
    """ "conv.py:12" of "forward (conv.py:12)"."""
    return frame.rpartition("(")[2].rstrip(")")
