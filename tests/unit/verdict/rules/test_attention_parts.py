"""Attention that is computed step by step, and what has a softmax and two products beside it."""

import pytest

from gpuwatch.tui.verdict.notes.training import attention_in_steps
from gpuwatch.tui.verdict.rules.compute import compute
from gpuwatch.tui.verdict.stack_samples import FrameShare, Stacks
from tests.unit.verdict.advice_runs import limited
from tests.unit.verdict.windows import even, window

SCORES = "att = q @ k.transpose(-2, -1)"


def told(*lines: str, share: float = 0.05) -> bool:
    """The advice to take PyTorch's one kernel, of a function that has these lines."""
    places = tuple(
        FrameShare(
            share / len(lines), f"Attention.forward (net.py:{at})", None, line, "forward",
            in_net=True,
        )
        for at, line in enumerate(lines, 10)
    )  # fmt: skip
    rest = FrameShare(1 - share, "forward (u.py:9)", None, "x = self.bn(x)", "forward", in_net=True)
    stacks = Stacks(200, (rest, *places), 0, (), None)
    found = compute(limited(sm=95, tensor=5, fp32=4, dram=80, stacks=stacks))
    assert found is not None
    return "scaled_dot_product_attention" in found.advice[0]


def test_attention_in_steps_is_a_note_where_something_else_is_the_limit() -> None:
    """A GPT whose heads are computed one by one: tf32 was all that was said of it."""
    lines = (SCORES, "att = F.softmax(att, dim=-1)", "y = att @ v")
    for share, noted in ((0.24, True), (0.01, False)):
        places = [
            FrameShare(share / 3, f"Head.forward (gpt.py:{at})", None, line, in_net=True)
            for at, line in enumerate(lines, 66)
        ]
        seen = Stacks(200, tuple(places), 0, (), None)
        assert attention_in_steps(window(even(60), stacks=seen)) is None, "a CPU has no such kernel"
        note = attention_in_steps(window(even(60), stacks=seen, gpu_present=True))
        assert (note is not None) is noted
        if note is not None:
            assert "`F.softmax(att, dim=-1)` at gpt.py:67" in note.text
            assert note.cost == "24% of main-thread samples are in its function"


@pytest.mark.parametrize(
    "lines",
    [
        (SCORES, "att = F.softmax(att, dim=-1)", "y = att @ v"),
        (
            "att = (q @ k.transpose(-2, -1)) * (1.0 / math.sqrt(k.size(-1)))",
            "att = att.masked_fill(self.bias[:, :, :T, :T] == 0, float('-inf'))",
            "att = F.softmax(att, dim=-1)",
            "att = self.attn_dropout(att)",
            "y = att @ v",
        ),
        (
            "weights = torch.matmul(query, keys.transpose(2, 3)) * scaling",
            "weights = weights + causal_mask",
            "weights = nn.functional.softmax(weights, dim=-1, dtype=torch.float32).to(query.dtype)",
            "out = torch.matmul(weights, values)",
        ),
        ("w = torch.bmm(q, k)", "p = F.softmax(w, dim=2).permute(0, 2, 1)", "h = torch.bmm(v, p)"),
        (
            "sim = einsum('b i d, b j d -> b i j', q, k) * self.scale",
            "attn = sim.softmax(dim=-1)",
            "out = torch.einsum('b i j, b j d -> b i d', attn, v)",
        ),
        ("return F.softmax(q @ k.mT * self.scale, -1) @ v", "q = self.q(x)"),
        ("s = self.q(x).bmm(self.k(x).mT)", "p = self.softmax(s)", "return torch.matmul(p, v), p"),
    ],
    ids=["the least", "minGPT", "transformers", "DDPM", "einsum", "in one line", "by methods"],
)
def test_attention_is_a_softmax_between_two_products(lines: tuple[str, ...]) -> None:
    assert told(*lines)
    assert not told(*lines, share=0.005)


@pytest.mark.parametrize(
    "lines",
    [
        (
            "scores = self.Va(torch.tanh(self.Wa(query) + self.Ua(keys)))",
            "weights = F.softmax(scores, dim=-1)",
            "context = torch.bmm(weights, keys)",
        ),
        (
            "energy = torch.tanh(self.attn(torch.cat((hidden, outputs), dim=2)))",
            "scores = torch.bmm(self.v.repeat(b, 1).unsqueeze(1), energy).squeeze(1)",
            "a = F.softmax(scores, dim=1)",
            "weighted = torch.bmm(a.unsqueeze(1), outputs)",
        ),
        (
            "Wh = torch.mm(h, self.W)",
            "attention = torch.where(adj > 0, e, zero_vec)",
            "attention = F.softmax(attention, dim=1)",
            "h_prime = torch.matmul(attention, Wh)",
        ),
        (
            "q = q.softmax(dim = -2)",
            "k = k.softmax(dim = -1)",
            "context = torch.einsum('b h d n, b h e n -> b h d e', k, v)",
            "out = torch.einsum('b h d e, b h d n -> b h e n', context, q)",
        ),
        ("soft = F.softmax(soft, dim=1)", "vlad = torch.matmul(soft, x.transpose(1, 2))"),
        ("s = torch.softmax(s, dim=-1)", "out = torch.matmul(torch.matmul(s.mT, adj), s)"),
        (
            "logits = x @ self.gate",
            "gates = F.softmax(logits, dim=1)",
            "dispatched = torch.einsum('sec,sm->ecm', gates, x)",
        ),
        ("w = torch.einsum('bnd,esd->bnes', x, y)", "d = w.softmax(dim=0)", "slots = d @ x"),
        (
            "c = F.softmax(b, dim=-1)",
            "s = torch.matmul(c.unsqueeze(2), u_hat)",
            "b = b + torch.matmul(u_hat, v.unsqueeze(-1))",
        ),
        ("w = F.softmax(beta * sim, dim=-1)", "r = torch.matmul(w.unsqueeze(1), memory)"),
        ("p = F.softmax(teacher / T, dim=1)", "sim = z1 @ z2.t()"),
        (SCORES, "att = F.softmax(att, dim=-1)", "best = att.topk(2)"),
        ("att = F.softmax(att, dim=-1)", "y = att @ v"),
    ],
    ids=[
        *("Bahdanau", "added, then multiplied", "pyGAT", "linear attention", "NetVLAD", "DiffPool"),
        *("experts", "slots", "capsules", "a Turing machine", "distillation", "a router", "half"),
    ],
)
def test_what_one_kernel_cannot_compute_is_no_attention(lines: tuple[str, ...]) -> None:
    """ "F.scaled_dot_product_attention does it in one kernel" was said of attention that adds, of
    graphs', linear attention, poolings, experts and capsules."""
    assert not told(*lines)
