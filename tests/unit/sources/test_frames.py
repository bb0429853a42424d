"""What a frame says of itself, whatever somebody has called a file."""

import pytest

from gpuwatch.tui.model.frames import place_of, summarise
from gpuwatch.tui.model.observations import StackCount, ThreadRole
from gpuwatch.tui.verdict.stack_samples import FrameShare, StackPhase


@pytest.mark.parametrize(
    ("frame", "place"),
    [
        ("forward (conv.py:12)", ("conv.py", 12)),
        ("forward (conv.py)", ("conv.py", 0)),
        ("forward (conv.py:²)", ("conv.py:²", 0)),
        ("", ("", 0)),
    ],
)
def test_where_a_frame_is(frame: str, place: tuple[str, int]) -> None:
    assert place_of(frame) == place


def test_stacks_that_were_seen_no_time_have_no_shares() -> None:
    stack = StackCount(role="main", pid=1, thread="t", frames=("f (a.py:1)",), count=0)
    assert summarise([stack]).main == ()


LOOP = "train (train.py:30)"
FETCH = (
    "__next__ (torch/utils/data/dataloader.py:701)",
    "fetch (torch/utils/data/_utils/fetch.py:52)",
)


def place(*frames: str, line: str = "for x in loader:") -> FrameShare:
    stack = StackCount(role="main", pid=1, thread="t", frames=frames, count=1, line=line)
    return summarise([stack]).main[0]


def test_what_makes_a_batch_was_not_called_by_the_loop_that_fetches_it() -> None:
    made = place(LOOP, *FETCH, "__getitem__ (torchvision/datasets/folder.py:245)")
    assert (made.caller, made.line) == (None, "")
    mine = ("D.__getitem__ (data.py:9)", "load (PIL/Image.py:3)")
    own = place(LOOP, *FETCH, *mine, line="x = open()")
    assert (own.caller, own.line) == ("D.__getitem__ (data.py:9)", "x = open()")


def test_a_wait_for_a_batch_is_the_loops() -> None:
    waits = place(LOOP, FETCH[0], "get (multiprocessing/queues.py:113)")
    assert waits.caller == LOOP


CALL = "_call_impl (torch/nn/modules/module.py:1790)"
PLACED: list[tuple[StackPhase, tuple[str, ...]]] = [
    ("forward", (LOOP, CALL, "forward (model.py:12)")),
    ("forward", (LOOP, "Layer.forward (model.py:12)")),
    ("forward", (LOOP, "cross_entropy (torch/nn/functional.py:3462)")),
    ("backward", (LOOP, "backward (torch/_tensor.py:581)")),
    ("optimizer", (LOOP, "_clip_grads (torch/nn/utils/clip_grad.py:160)")),
    ("evaluation", (LOOP, "estimate_loss (train.py:228)")),
]
UNPLACED: list[tuple[StackPhase, tuple[str, ...]]] = [
    ("forward", (LOOP, "draw (train.py:8)")),
    ("other", (LOOP, "draw (train.py:8)", "choice (random.py:373)")),
]


def test_what_may_make_a_batch_is_neither_in_the_net_nor_in_the_backward_or_the_update() -> None:
    phases = {frames: phase for phase, frames in (*PLACED, *UNPLACED)}
    seen = [StackCount(role="main", pid=1, thread="t", frames=frames, count=1) for frames in phases]
    found = summarise(seen, lambda stack: phases[stack.frames])
    assert found.main_unplaced == len(UNPLACED) / len(phases)
    assert summarise(seen).main_unplaced == 1.0  # nobody has looked


def test_threads_beside_the_training_are_parts_of_its_moments() -> None:
    def seen(role: ThreadRole, pid: int, count: int, *frames: str) -> StackCount:
        return StackCount(role=role, pid=pid, thread="t", frames=frames, count=count)

    found = summarise(
        [
            seen("main", 1, 12, LOOP, "step (torch/optim/adam.py:3)"),
            seen("main", 1, 8, LOOP, "Condition.wait (threading.py:327)"),
            seen("other", 1, 10, "run (t.py:9)", "corrupt (t.py:20)"),
            seen("other", 2, 20, "main (server.py:9)"),
        ]
    )
    assert [(one.frame, one.share, one.samples) for one in found.threads] == [
        ("corrupt (t.py:20)", 0.5, 20)
    ]
    assert found.main_waits == 0.4


def test_from_the_net_to_the_update_no_batch_is_made() -> None:
    """Generated run 1643: the loss, on a line of its own, was 8 % that might have fetched."""
    phases: dict[tuple[str, ...], StackPhase] = {
        (LOOP, "learn (train.py:20)", CALL, "forward (model.py:12)"): "forward",
        (LOOP, "learn (train.py:22)", "backward (torch/_tensor.py:581)"): "backward",
        (LOOP, "learn (train.py:21)"): "other",
        (LOOP, "learn (train.py:19)"): "other",
        (LOOP, "learn (train.py:21)", "get_batch (train.py:40)"): "other",
        (LOOP,): "other",
    }
    seen = [StackCount(role="main", pid=1, thread="t", frames=frames, count=1) for frames in phases]
    assert summarise(seen, lambda stack: phases[stack.frames]).main_unplaced == 3 / 6


def test_a_net_is_more_than_its_forward() -> None:
    """PyTorch's BiLSTM-CRF: `model.neg_log_likelihood(…)` calls an LSTM and then loops over tags, a
    third of the samples that might have fetched; the verdict was "incomplete" to its end."""
    loss = "CRF.neg_log_likelihood (crf.py:137)"
    phases: dict[tuple[str, ...], StackPhase] = {
        (LOOP, "CRF.features (crf.py:103)", CALL, "LSTM.forward (torch/nn/rnn.py:9)"): "forward",
        (LOOP, loss, "CRF._forward_alg (crf.py:84)"): "forward",
        (LOOP, loss, "CRF._forward_alg (crf.py:85)", "log_sum_exp (crf.py:30)"): "other",
        (LOOP, "Task.step (train.py:9)", CALL, "CRF.forward (crf.py:9)"): "forward",
        (LOOP, "Task.step (train.py:10)", "backward (torch/_tensor.py:623)"): "backward",
        (LOOP, "Task.words (train.py:20)"): "forward",
    }
    seen = [StackCount(role="main", pid=1, thread="t", frames=frames, count=1) for frames in phases]
    found = summarise(seen, lambda stack: phases[stack.frames])
    assert found.main_unplaced == 1 / len(phases), "a trainer's own may make the batches"


def test_imports_are_no_part_of_the_training() -> None:
    """A first second of them made rollouts of a half a fifth, and the run healthy."""
    importing = ("<module> (train.py:1)", "<module> (torch/optim/adam.py:3)")
    phases: dict[tuple[str, ...], StackPhase] = {importing: "starting", PLACED[0][1]: "forward"}
    seen = [StackCount(role="main", pid=1, thread="t", frames=frames, count=9) for frames in phases]
    found = summarise(seen, lambda stack: phases[stack.frames])
    assert [one.share for one in found.main] == [1.0]
    assert (found.main_samples, found.starting, found.main_unplaced) == (9, 9, 0.0)
