"""Tensors that a run without a probe computes, where no net shows what for."""

from msgspec import structs

from gpuwatch.tui.model.observations import StacksSeen
from tests.unit.session.sampled_run import STACKS, chunks
from tests.unit.session.test_without_probe import TRAINS, kinds, snapshot_of


def computing(shares: dict[str, float]) -> list[StacksSeen]:
    """What is "other" elsewhere is on lines of tensors here."""
    return [
        structs.replace(
            seen,
            stacks=tuple(
                structs.replace(one, computes=one.frames == STACKS["other"]) for one in seen.stacks
            ),
        )
        for seen in chunks(shares, 24)
    ]


def test_what_is_computed_beside_the_net_is_no_forward() -> None:
    """Signals that are made on the fly, 80 % of the time: "forward and backward are the limit"."""
    made = snapshot_of(computing({"other": 4.0, **TRAINS}))
    assert kinds(made) == ("healthy", None)
    finding = made.verdict.finding
    assert finding.headline.endswith("count_words (metrics.py:7)")
    assert "count_words (metrics.py:7)" in finding.evidence[0].text
    assert finding.evidence[1].value is not None
    assert finding.evidence[1].value < 0.3
    loss = snapshot_of(computing({"other": 0.3, **TRAINS})).verdict.finding
    assert loss.headline.endswith("forward and backward are the limit")


def test_where_no_net_is_seen_what_computes_may_be_it() -> None:
    by_hand = snapshot_of(computing({"other": 0.4, "backward": 0.6})).verdict.finding
    assert by_hand.headline.endswith("forward and backward are the limit")


def test_a_run_in_which_nothing_shows_a_training_tells_where_it_is() -> None:
    """Least squares by hand: "no sample of the training yet", for ever, above its samples."""
    first = snapshot_of(computing({"other": 1.0})[:1]).verdict.finding
    assert first.headline == "no sample of the training yet"
    later = snapshot_of(computing({"other": 1.0})).verdict.finding
    assert later.kind == "warming-up"
    assert later.headline == "no net, loader or backward in 228 samples"
    assert "count_words (metrics.py:7)" in later.evidence[0].text
