"""What `gpuwatch memory` says of a window: leaks by line, and that there is none."""

from gpuwatch.tui.formats.memory_report import memory_costs, memory_report_lines
from gpuwatch.tui.trace.leaks import HostMemory, MemoryWindow, WorkersMemory

HERE = "/home/me/train.py"


def reported(window: MemoryWindow) -> str:
    return "\n".join(memory_report_lines("train.py", 1, window, "", 100))


def test_a_few_bytes_a_step_are_no_leak() -> None:
    """What any run keeps: 15 KiB in 311 blocks over 673 steps."""
    lines = [(14_950, 311, [(HERE, 19)]), (7_900, 154, [(HERE, 18)])]
    types = [("builtins.tuple", 1327, 0), ("gpuwatch.probe.deep.worker_memory.WorkersAsked", 1, 0)]
    worker = WorkersMemory(1, 1, 670, 0, [(8_300, 130, 1, [(HERE, 9)])])
    host = HostMemory(673, lines, types)
    text = reported(MemoryWindow(seconds=30, steps=673, host=host, in_workers=worker))
    assert "Python   no leak: 22.3 KiB in 2 lines, <0.1 KiB a step" in text
    assert "workers  no leak: 8.1 KiB in one line, <0.1 KiB a batch" in text
    assert "types" not in text
    assert "train.py:19" not in text


def test_a_line_that_keeps_something_each_step_comes_before_what_is_no_leak() -> None:
    """The small ones are not shown as leaks beside it."""
    lines = [(673 * 4096, 673, [(HERE, 21)]), (14_950, 311, [(HERE, 19)])]
    types = [("torch.Tensor", 673, 673 * 4096), ("builtins.list", 1, 0), ("train.Row", 673, 0)]
    host = HostMemory(673, lines, types)
    text = reported(MemoryWindow(seconds=30, steps=673, host=host))
    assert "2.6 MiB in 673 blocks, 4.0 KiB a step   train.py:21" in text
    assert "else no leak: 14.6 KiB in one line" in text
    assert "torch.Tensor: 673 more, tensors of 2.6 MiB" in text
    assert "train.Row: 673 more" in text
    assert "builtins.list" not in text


def test_what_tracing_python_costs_is_said_before_it_is_known_whether_there_is_a_gpu() -> None:
    assert "uses no GPU" in memory_costs(30.0, None)[1]
    assert "traced too" in memory_costs(30.0, True)[1]
    assert len(memory_costs(30.0, False)) == 1
