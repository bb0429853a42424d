"""The fake run's stacks: what the main thread, four workers and the pin thread did."""

from collections.abc import Iterable

from gpuwatch.tui.model.observations import StackCount, ThreadRole
from gpuwatch.tui.model.stack_trees import StackTrees
from gpuwatch.tui.session.stacks_by_gpu_state import stacks_of

TRAIN = ("<module> (train.py:120)", "main (train.py:104)", "train_epoch (train.py:88)")
NEXT = (
    "_BaseDataLoaderIter.__next__ (torch/utils/data/dataloader.py:733)",
    "_MultiProcessingDataLoaderIter._next_data (torch/utils/data/dataloader.py:1488)",
    "_MultiProcessingDataLoaderIter._get_data (torch/utils/data/dataloader.py:1275)",
    "Queue.get (queue.py:180)",
    "Condition.wait (threading.py:359)",
)
STEP = (*TRAIN[:2], "train_epoch (train.py:93)")
BACKWARD = (
    "Tensor.backward (torch/_tensor.py:648)",
    "backward (torch/autograd/__init__.py:353)",
    "_engine_run_backward (torch/autograd/graph.py:824)",
)
FORWARD = (
    *(*TRAIN[:2], "train_epoch (train.py:91)"),
    "Module._call_impl (torch/nn/modules/module.py:1747)",
    "ResNet.forward (model.py:51)",
    "Module._call_impl (torch/nn/modules/module.py:1747)",
)
LOOP = (
    "_worker_loop (torch/utils/data/_utils/worker.py:349)",
    "_MapDatasetFetcher.fetch (torch/utils/data/_utils/fetch.py:52)",
)
DECODE = (
    *LOOP,
    "Photographs.__getitem__ (dataset.py:41)",
    "Image.convert (PIL/Image.py:995)",
    "ImageFile.load (PIL/ImageFile.py:300)",
)
RESIZE = (
    *LOOP,
    "Photographs.__getitem__ (dataset.py:43)",
    "Resize.forward (torchvision/transforms/transforms.py:354)",
    "resize (torchvision/transforms/functional.py:468)",
)
COLLATE = (
    LOOP[0],
    "_MapDatasetFetcher.fetch (torch/utils/data/_utils/fetch.py:55)",
    "default_collate (torch/utils/data/_utils/collate.py:398)",
    "collate (torch/utils/data/_utils/collate.py:155)",
)
IDLE_WORKER = (LOOP[0], "Queue.get (multiprocessing/queues.py:113)")
PIN = (
    "Thread._bootstrap (threading.py:1002)",
    "Thread.run (threading.py:982)",
    "_pin_memory_loop (torch/utils/data/_utils/pin_memory.py:52)",
    "do_one_step (torch/utils/data/_utils/pin_memory.py:28)",
    "Queue.get (multiprocessing/queues.py:113)",
)
LINES = {
    TRAIN[-1]: "for images, labels in loader:",
    STEP[-1]: "loss.backward()",
    "ResNet.forward (model.py:51)": "x = self.layer4(self.layer3(x))",
    DECODE[2]: 'image = Image.open(path).convert("RGB")',
    RESIZE[2]: "image = self.transform(image)",
}


def _counted(
    role: ThreadRole, frames: tuple[str, ...], *counts: int, pids: Iterable[int] = (48213,)
) -> list[StackCount]:
    line = next((LINES[frame] for frame in reversed(frames) if frame in LINES), "")
    return [
        StackCount(role=role, pid=pid, thread="t", frames=frames, count=count, line=line)
        for pid, count in zip(pids, counts, strict=True)
    ]


WORKERS = range(48231, 48235)
IDLE = [
    *_counted("main", (*TRAIN, *NEXT), 293),
    *_counted("main", (*STEP, *BACKWARD), 9),
    *_counted("main", (*FORWARD, "Conv2d._conv_forward (torch/nn/modules/conv.py:543)"), 6),
    *_counted("main", (*TRAIN[:2], "train_epoch (train.py:96)"), 4),
    *_counted("worker", DECODE, 252, 255, 254, 250, pids=WORKERS),
    *_counted("worker", RESIZE, 34, 33, 36, 34, pids=WORKERS),
    *_counted("worker", COLLATE, 25, 24, 22, 28, pids=WORKERS),
    *_counted("pin", PIN, 312),
]
BUSY = [
    *_counted("main", (*TRAIN, *NEXT), 21),
    *_counted("main", (*STEP, *BACKWARD), 131),
    *_counted("main", (*FORWARD, "Conv2d._conv_forward (torch/nn/modules/conv.py:543)"), 52),
    *_counted("main", (*FORWARD, "batch_norm (torch/nn/functional.py:2824)"), 9),
    *_counted("worker", DECODE, 160, 162, 151, 166, pids=WORKERS),
    *_counted("worker", RESIZE, 20, 25, 28, 21, pids=WORKERS),
    *_counted("worker", IDLE_WORKER, 33, 26, 34, 26, pids=WORKERS),
    *_counted("pin", PIN, 213),
]
THREADS = {"main": 1, "workers": 4, "pin": 1}
ALL_OF, IDLE_OF, BUSY_OF, NONE_OF = (
    stacks_of(counts, THREADS) for counts in ([*IDLE, *BUSY], IDLE, BUSY, [])
)
TREES = StackTrees("gpu", True, ALL_OF, IDLE_OF, BUSY_OF)
UNTIMED = StackTrees("none", False, IDLE_OF, NONE_OF, NONE_OF)
NEVER_IDLE = StackTrees("gpu", True, BUSY_OF, NONE_OF, BUSY_OF)
ON_HOST = StackTrees("host", True, ALL_OF, IDLE_OF, BUSY_OF)
