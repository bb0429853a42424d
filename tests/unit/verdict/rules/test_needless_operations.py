"""What a traced step shows that need not be."""

import pytest

from gpuwatch.tui.verdict.engine import Engine
from tests.unit.verdict.with_traces import NET, found_in, is_expected, needless, on_cpu, on_gpu


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("constant", "is computed anew, and was the same in each that was traced"),
        ("repeated", "computes again what the step has computed before"),
        ("unread", "computes what no operation reads"),
        ("zeroed", "computes what is then multiplied by 0"),
        ("picked", "goes back through a whole matrix of which few numbers are used"),
        ("one_time", "goes through all times for a result of which the first is used"),
        ("one_hot", "multiplies rows of one 1 among zeros by a matrix"),
        (
            "multiplied_out",
            "multiplies narrow weights out, for a layer that could take them in turn",
        ),
    ],
)
def test_what_need_not_be_is_the_verdict(name: str, words: str) -> None:
    seen = on_cpu(**{name: needless(50_000)})
    found = found_in(seen)
    assert found.share == pytest.approx(NET * 0.5 * 0.95)
    assert found.headline == f"43% of each step {words}"
    assert found.advice[0].endswith(": graph (train.py:7)")
    assert found.evidence[0].text.startswith("20 of 1,000 operations of a traced step, most in gr")
    judged = Engine().judge(seen).finding
    assert (judged.kind, judged.sub) == ("compute", name.replace("_", "-"))


def test_products_in_the_costly_order_take_their_copies_with_them() -> None:
    """Attention without a softmax on two cores: 8x by the other order."""
    found = found_in(on_cpu(costly_order=needless(92_000)))
    assert found.headline == "83% of each step multiplies matrices in the costly one of two orders"
    assert found.sub == "costly-order"
    assert is_expected(8.0, found)


def test_a_choice_takes_a_part_of_a_sort() -> None:
    """The largest 32 of 20,000, on two cores: 11x by topk."""
    found = found_in(on_cpu(few_sorted=needless(88_000)))
    assert found.headline.endswith("sorts everything for a small part of it")
    assert is_expected(4.0, found)


def test_a_cholesky_factor_takes_a_part_of_an_inverse() -> None:
    """A Gaussian process over 4,000 points on an H200: 2.5x."""
    found = found_in(on_gpu(inverse=needless(95_000)))
    assert found.headline.endswith("inverts matrices for a few vectors")
    assert "torch.linalg.cholesky" in found.advice[0]
    assert is_expected(2.5, found)


def test_both_directions_of_a_gpus_layer_may_run_side_by_side() -> None:
    found = found_in(on_gpu(one_time=needless(50_000)))
    assert is_expected(1.15, found)
    assert is_expected(1.8, found)
