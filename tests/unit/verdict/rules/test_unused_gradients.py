"""Gradients that nothing uses."""

from typing import Any

import pytest

from gpuwatch.tui.settings import Settings
from gpuwatch.tui.verdict.engine import Engine
from gpuwatch.tui.verdict.findings import Finding
from gpuwatch.tui.verdict.rules.unused_gradients import unused_gradients
from tests.unit.verdict.windows import even, window

STEP: dict[str, Any] = {"data_ms": 0.5, "forward_ms": 6, "backward_ms": 11, "optimizer_ms": 0.1}


def found(**settings: Any) -> Finding | None:
    return unused_gradients(window(even(100, **STEP), settings=Settings(**settings)))


def test_a_backbone_that_only_the_optimizer_does_not_know_is_the_verdict() -> None:
    """17.5 ms a step; 8.2 without those gradients (measured, a net of convolutions)."""
    seen = Settings(unused_parameters=18, graph_parameters=20, unused_nodes=0.95)
    finding = Engine().judge(window(even(100, **STEP), settings=seen)).finding
    assert (finding.kind, finding.sub) == ("compute", "unused-gradients")
    assert finding.evidence[0].text.startswith("18 of 20 parameters")
    assert "torch.no_grad()" in finding.advice[0]
    assert finding.forecast is not None
    assert finding.forecast.low <= 17.5 / 8.2 <= (finding.forecast.high or 0.0)


def test_of_a_net_that_gradients_go_through_only_those_of_its_weights_are_lost() -> None:
    """A loss that another net judges: half of each product's backward hands the gradient on."""
    finding = found(unused_parameters=26, graph_parameters=52, unused_nodes=0.0)
    assert finding is not None
    assert finding.share == pytest.approx(11 / 17.6 / 4, rel=0.01)
    assert "no_grad" not in finding.advice[0]


def test_where_every_parameter_is_updated_nothing_is_said() -> None:
    assert found(unused_parameters=0, graph_parameters=20, unused_nodes=0.0) is None
    assert found() is None, "what is not known is not the worst"


def test_a_discriminator_below_its_generators_loss_is_to_be_frozen_for_it() -> None:
    finding = found(
        cleared_parameters=14, cleared_nodes=0.0, cleared_weights=0.4, cleared_for_input=False
    )
    assert finding is not None
    assert finding.share == pytest.approx(11 / 17.6 * 0.4 / 2, rel=0.01)
    assert finding.evidence[0].text.startswith("a backward makes gradients for 14 parameters")
    assert finding.advice[0].startswith("loss.backward(inputs=list(net.parameters()))")


def test_a_generator_that_the_discriminators_loss_goes_through_is_to_be_detached() -> None:
    finding = found(
        cleared_parameters=14, cleared_nodes=0.3, cleared_weights=0.1, cleared_for_input=False
    )
    assert finding is not None
    assert finding.share == pytest.approx(11 / 17.6 * 0.35, rel=0.01)
    assert "detach()" in finding.advice[0]


def test_a_net_that_is_asked_for_its_inputs_gradient_makes_no_others() -> None:
    finding = found(
        cleared_parameters=14, cleared_nodes=0.0, cleared_weights=0.8, cleared_for_input=True
    )
    assert finding is not None
    assert finding.advice[0].startswith("loss.backward(inputs=[x])")


def test_both_kinds_are_added_up_and_the_larger_is_advised_first() -> None:
    finding = found(
        unused_parameters=2,
        graph_parameters=20,
        unused_nodes=0.0,
        cleared_parameters=14,
        cleared_weights=0.8,
    )
    assert finding is not None
    assert finding.share == pytest.approx(11 / 17.6 * (0.4 + 0.05), rel=0.01)
    assert len(finding.advice) == 2
    assert "optimizer does not have" in finding.advice[1]


@pytest.mark.parametrize(
    ("resting", "why", "which"),
    [
        (18, "have a learning rate of 0", "whose learning rate is 0, and True again before it"),
        (4, "are updated by no optimizer, or whose", "that the optimizer does not have, or whose"),
    ],
)
def test_what_has_a_learning_rate_of_0_is_frozen_until_it_is_to_learn(
    resting: int, why: str, which: str
) -> None:
    """A second stage trains it: torch.no_grad() around it would end that."""
    finding = found(
        unused_parameters=18, graph_parameters=20, unused_nodes=0.95, resting_parameters=resting
    )
    assert finding is not None
    assert why in finding.evidence[0].text
    assert finding.advice[0].startswith(f"requires_grad_(False) on every parameter {which}")
    assert "no_grad()" not in finding.advice[0]
