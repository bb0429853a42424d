"""PyTorch's dispatch modes, of the thread that asks: where one of ours may go on or off."""

import sys
from typing import Any, Final

NO_TASK: Final = -1


def innermost_mode() -> Any:
    """None without any."""
    torch: Any = sys.modules["torch"]
    count = torch._C._len_torch_dispatch_stack()
    return torch._C._get_dispatch_stack_at(count - 1) if count else None


def is_in_backward() -> bool:
    """The thread goes through a graph, and will be given back the modes that it had before: one
    that goes off in there is on again then, and one that goes on is lost. True where that cannot be
    told."""
    task: Any = getattr(sys.modules["torch"]._C, "_current_graph_task_id", None)
    return task is None or bool(task() != NO_TASK)


def is_captured() -> bool:
    """A CUDA graph is made of what is launched now."""
    cuda: Any = sys.modules.get("torch.cuda")
    return bool(cuda is not None and cuda.is_initialized() and cuda.is_current_stream_capturing())
