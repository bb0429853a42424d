"""What lies beside net, backward and update may make batches; what is known not to is left out."""

from gpuwatch.tui.model.observations import StackCount
from gpuwatch.tui.model.stack_shares import summarise
from gpuwatch.tui.verdict.stack_samples import StackPhase

LOOP = "train (train.py:30)"
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


def test_what_is_done_behind_the_update_makes_no_batch() -> None:
    """A check of all parameters in each step: "no loader seen" for as long as it was there."""
    net, check = (
        (LOOP, CALL, "forward (model.py:12)"),
        ("train (train.py:40)", "check (train.py:9)"),
    )
    phases: dict[tuple[str, ...], StackPhase] = {net: "forward", check: "synchronisation"}

    def unplaced(beside: bool) -> float:
        seen = [
            StackCount(role="main", pid=1, thread="t", frames=net, count=1),
            StackCount(role="main", pid=1, thread="t", frames=check, count=1, beside=beside),
        ]
        return summarise(seen, lambda stack: phases[stack.frames]).main_unplaced

    assert (unplaced(False), unplaced(True)) == (0.5, 0.0)
