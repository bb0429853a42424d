"""Where a device's clock lies on the host's."""

from random import Random

from gpuwatch.tui.sources.marks.alignment import Alignment

S = 1_000_000_000


def test_nothing_is_known_until_both_sides_are_bounded() -> None:
    alignment = Alignment()
    alignment.at_least(5, 0)
    assert alignment.at(0) is None
    alignment.at_most(15, 0)
    assert alignment.at(0) == (10, 5)


def test_the_truth_lies_within_the_uncertainty_while_the_clocks_drift() -> None:
    random, alignment = Random(1), Alignment()
    for second in range(600):
        t_ns = second * S
        truth = 7_000_000 + 8_000 * second  # 8 us a second
        alignment.at_least(truth - random.randrange(1_000, 9_000), t_ns)
        alignment.at_most(truth + random.randrange(1_000, 9_000), t_ns)
        for mark in range(5):  # marks of a busy device say little, and nothing wrong
            alignment.at_least(truth - random.randrange(50_000_000), t_ns + mark * S // 10)
        seen = alignment.at(t_ns + S // 2)
        assert seen is not None
        assert abs(seen[0] - truth - 4_000) <= seen[1]
        assert seen[1] < 60_000


def test_a_bound_loosens_with_its_age() -> None:
    alignment = Alignment()
    alignment.at_least(0, 0)
    alignment.at_most(10_000, 0)
    fresh, old = alignment.at(0), alignment.at(10 * S)
    assert fresh is not None
    assert old is not None
    assert old[1] == fresh[1] + 200_000


def test_after_a_jump_what_is_newer_is_believed() -> None:
    alignment = Alignment()
    alignment.at_least(0, 0)
    alignment.at_most(10_000, 0)
    alignment.at_least(5_000_000, S)
    assert alignment.at(S) is None
    alignment.at_most(5_010_000, S)
    assert alignment.at(S) == (5_005_000, 5_000)
