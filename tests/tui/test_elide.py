"""What a sentence does without where it has no room for all of it."""

import pytest

from gpuwatch.tui.widgets.text import cell_len, clip, elided, is_cut, within

ADVICE = "num_workers 2 → 9, about 4.5x (each batch costs a worker 76 ms, the rest 8 ms)"


@pytest.mark.parametrize(
    ("text", "left"),
    [
        (ADVICE, "num_workers 2 → 9, about 4.5x"),
        ("num_workers 4 → 10 (16 cores, 11 idle), then more", "num_workers 4 → 10, then more"),
        ("decode less (load (Image.py:425), called by decode (p.py:69))", "decode less"),
        ("call loss.item() rarely (each 50 ms)", "call loss.item() rarely"),
        ("left (open", "left"),
        ("halve it (12 ms): then more", "halve it: then more"),
        ("see the loader (A, B and so on) — or not", "see the loader — or not"),
        ("batches of (64, 3, 224, 224) are copied", "batches of (64, 3, 224, 224) are copied"),
        ("batches are (64, 3, 224, 224)", "batches are (64, 3, 224, 224)"),
        ("set (a) and (b), then (c)", "set (a) and (b), then (c)"),
        ("keep (under torch) what is there", "keep (under torch) what is there"),
        ("(all of it)", "(all of it)"),
        ("one) closed", "one) closed"),
    ],
)
def test_parentheses_are_left_out_but_those_that_show_something(text: str, left: str) -> None:
    assert elided(text) == left


def test_it_is_whole_where_there_is_room_and_cut_only_where_even_the_rest_has_none() -> None:
    assert within(ADVICE, 100) == [ADVICE]
    assert " ".join(within(ADVICE, 50, 2)) == ADVICE
    assert within(ADVICE, 50) == ["num_workers 2 → 9, about 4.5x"]
    assert within(ADVICE, 24) == ["num_workers 2 → 9…"]
    assert is_cut(ADVICE, 50, 1)
    assert not is_cut(ADVICE, 50, 2)


@pytest.mark.parametrize(
    ("text", "width", "left"),
    [
        ("\u200d\u200d日日", 2, "\u200d\u200d…"),
        ("\u200b\u200b\u200b数据集.py", 6, "\u200b\u200b\u200b数据…"),
        ("数据集.py", 6, "数据…"),
        ("train the net", 10, "train the…"),
    ],
)
def test_signs_without_a_width_count_for_nothing(text: str, width: int, left: str) -> None:
    assert clip(text, width) == left
    assert cell_len(left) <= width
