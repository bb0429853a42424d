"""Lines that sum distances of all differences, and what looks alike."""

import pytest

from gpuwatch.tui.verdict.broadcast_distances import by_all_differences
from gpuwatch.tui.verdict.stack_samples import FrameShare


def found_in(*lines: str) -> list[str]:
    places = [
        FrameShare(0.1, f"Net.assign (net.py:{at})", None, line, "forward", in_net=True)
        for at, line in enumerate(lines, 40)
    ]
    return [one.line for one in by_all_differences(places)]


@pytest.mark.parametrize(
    "line",
    [
        "dist = ((flat.unsqueeze(1) - self.embed.unsqueeze(0)) ** 2).sum(dim=2)",
        "d = (a[:, None] - b[None]).pow(2).sum(-1)",
        "d = (a[:, None, :] - b[None, :, :]).square().sum(axis=-1)",
        "return torch.norm(a.unsqueeze(1) - b.unsqueeze(0), dim=2)",
        "d = (x[:, :, None] - y[:, None]).norm(dim=-1)",
        "d = torch.linalg.vector_norm(x[..., None, :] - y[..., None, :, :], dim=-1)",
        "d = torch.sum(torch.pow(x.unsqueeze(2) - y.unsqueeze(1), 2), dim=3)",
        "k = torch.exp(-((x.unsqueeze(1).expand(n, m, d) - y.unsqueeze(0)) ** 2).mean(2) / d)",
        "idx = ((x.view(-1, 1, d) - self.codes.view(1, -1, d)) ** 2).sum(-1).argmin(1)",
        "d = torch.sqrt(((x[:, None] - self.centers) ** 2).sum(-1) + 1e-9)",
        "d = F.pairwise_distance(a.unsqueeze(1), b.unsqueeze(0))",
        "return ((a.unsqueeze(1) - b.unsqueeze(0)) * (a.unsqueeze(1) - b.unsqueeze(0))).sum(-1)",
    ],
)
def test_all_differences_in_one_line(line: str) -> None:
    assert found_in(line) == [line]


@pytest.mark.parametrize(
    "lines",
    [
        ("diff = a.unsqueeze(1) - b.unsqueeze(0)", "d = (diff ** 2).sum(-1)"),
        ("diff = a.unsqueeze(1) - b.unsqueeze(0)", "return (diff * diff).sum(dim=2)"),
        ("diff = a[:, None] - b[None]", "squared = diff.pow(2)", "d = squared.sum(-1)"),
        ("diff = a[:, None] - b[None]", "d = torch.norm(diff, dim=-1)"),
        ("x = (x[:, None] - y[None]) ** 2", "return x.sum(-1)"),
    ],
)
def test_all_differences_over_lines(lines: tuple[str, ...]) -> None:
    assert found_in(*lines) == list(lines)


@pytest.mark.parametrize(
    "lines",
    [
        ("loss = ((pred - target) ** 2).sum(-1)",),
        ("var = ((x - x.mean(1).unsqueeze(1)) ** 2).sum(-1)",),
        ("x = ((x.unsqueeze(1) - mean.unsqueeze(1)) ** 2).sum(-1)",),
        ("d = ((a[:, None] - b[None]) ** 2).sum(1)",),
        ("d = ((a[:, None] - b[None]) ** 2).sum()",),
        ("d = ((x.unsqueeze(-1) - y.unsqueeze(-2)) ** 2).sum(-1)",),
        ("d = (a[:, None] - b[None]).abs().sum(-1)",),
        ("d = torch.norm(a[:, None] - b[None], p=1, dim=-1)",),
        ("d = (a[:, None] - b[None]).pow(4).sum(-1)",),
        ("d = (((a[:, None] - b[None]) / sigma) ** 2).sum(-1)",),
        ("d = (a[:, None] + b[None]).pow(2).sum(-1)",),
        ("d = ((x.unsqueeze(1) - self.mlp(x)) ** 2).sum(-1)",),
        ("d = ((a.unsqueeze(1) - b.unsqueeze(-2)) ** 2).sum(-1)",),
        ("d = ((x[..., None, :] - y[..., None, :, :]) ** 2).sum(1)",),
        ("d = ((a[:, np.newaxis] - np.array(b)[None]) ** 2).sum(-1)",),
        ("d = np.linalg.norm(p[:, None] - p[None], axis=-1)",),
        ("d = torch.cdist(a, b)",),
        ("d = a.pow(2).sum(1, keepdim=True) - 2 * a @ b.t() + b.pow(2).sum(1)",),
        ("diff = x[:, None] - x[None]", "h = self.mlp(torch.cat([diff, e], -1))"),
        (
            "diff = x[:, None] - x[None]",
            "d = (diff ** 2).sum(-1)",
            "force = (diff / d[..., None]).sum(1)",
        ),
        ("area = (right[:, None, 2:] - left[None, :, :2]).clamp(min=0).prod(-1)",),
    ],
    ids=[
        *("a loss", "centred", "of the same", "over pairs", "of all", "of numbers", "sums of abs"),
        *("p=1", "fourth powers", "weighted", "sums"),
        *(
            "of a net",
            "of one dimension",
            "over pairs from behind",
            "arrays",
            "a norm of arrays",
            "cdist",
        ),
        *("a product", "kept", "kept too"),
        "boxes",
    ],
)
def test_what_looks_alike(lines: tuple[str, ...]) -> None:
    assert found_in(*lines) == []


def test_lines_of_another_function_bind_other_names() -> None:
    places = [
        FrameShare(0.1, f"{name} (net.py:9)", None, line, "forward", in_net=True)
        for name, line in (("f", "diff = a[:, None] - b[None]"), ("g", "d = (diff ** 2).sum(-1)"))
    ]
    assert by_all_differences(places) == []


@pytest.mark.parametrize("by_source", [True, False])
def test_the_source_knows_better_than_sampled_lines(by_source: bool) -> None:
    line = "return torch.pow(x - y, 2).sum(2)"
    if not by_source:
        line = "d = ((a[:, None] - b[None]) ** 2).sum(-1)"
    place = FrameShare(
        *(0.1, "far (net.py:9)", None, line, "forward"), in_net=True, pairs=by_source
    )
    assert bool(by_all_differences([place])) is by_source
