"""Loops whose turns need the one before, or that are of different things, as people write them."""

from pathlib import Path

import pytest

from gpuwatch.tui.sources.source_code import SourceLines
from gpuwatch.tui.sources.source_structure import SourceStructure, Structure

NET = (
    "Module._wrapped_call_impl (torch/nn/modules/module.py:1778)",
    "Linear.forward (torch/nn/modules/linear.py:134)",
)

IN_ORDER = {
    "a cell of the token beside the state": """
    for t in range(n):
        both = torch.cat([x[:, t], h], 1)
        h = self.cell(both)  # HERE""",
    "a state that attention hands on": """
    for t in range(n):
        h = self.cell(torch.cat([x[:, t], context], 1))
        out = self.fc(h)
        context = self.attention(out)  # HERE""",
    "gates by hand": """
    for t in range(n):
        both = torch.cat([x[:, t], h], 1)
        gates = both @ self.w  # HERE
        h = torch.tanh(gates)""",
    "states in a list": """
    for t in range(n):
        states.append(self.cell(x[:, t], states[-1]))  # HERE""",
    "a list's last is the state": """
    for t in range(n):
        states.append(self.cell(x[:, t], h))  # HERE
        h = states[-1]""",
    "states in a list, without a net": """
    for t in range(n):
        states.append(torch.tanh(x[:, t] @ self.w + states[-1] @ self.u))  # HERE""",
    "a state in an attribute": """
    for t in range(n):
        self.h = torch.tanh(x[:, t] @ self.w + self.h @ self.u)  # HERE""",
    "an update of a sampler's": """
    for t in times:
        x -= self.net(x, t) * dt  # HERE""",
    "an update in place": """
    for t in times:
        x.sub_(self.net(x, t) * dt)  # HERE""",
    "a step of Euler's": """
    for t in times:
        y += dt * torch.tanh(y @ self.w + t)  # HERE""",
    "decoding": """
    for t in range(n):
        logits = self.net(tokens[:, :t])
        tokens[:, t] = torch.multinomial(logits[:, -1], 1)  # HERE""",
    "a window of the last outputs": """
    for t in range(n):
        context = torch.stack(list(window))
        window.append(self.net(x[t], context))  # HERE""",
    "residual codes": """
    for k in range(n):
        code = self.nearest(residual, k)
        residual = residual - code.detach()  # HERE""",
    "residual layers": """
    for k in range(n):
        q = self.norms[k](x)
        attended = self.attend[k](q)
        x = q + attended  # HERE""",
    "an environment": """
    for t in range(n):
        scores.append(self.net(seen[t]))  # HERE
        env.step(scores)""",
    "an inner loop of meta-learning": """
    for xs, ys, xq, yq in tasks:
        fast = list(self.weights)
        for _ in range(5):
            loss = F.mse_loss(self.net(xs, fast), ys)  # HERE
            slopes = torch.autograd.grad(loss, fast, create_graph=True)
            fast = [w - 0.1 * slope for w, slope in zip(fast, slopes)]""",
}
OF_OTHERS = {
    "parameters": """
    for p in params:
        total = total + p.pow(2).sum()  # HERE""",
    "an inner update": """
    return [p - 0.1 * g for p, g in zip(params, grads)]  # HERE""",
    "weights kept by name": """
    for name in means:
        total += ((self.params[name] - means[name]) ** 2).sum()  # HERE""",
    "layers by hand": """
    for w, b in self.layers:
        kept.append(torch.relu(x @ w + b))  # HERE""",
    "scales": """
    for scale in (1.0, 0.75, 0.5):
        kept.append(self.net(F.interpolate(x, scale_factor=scale)))  # HERE""",
    "scales of the program's": """
    for scale in self.scales:
        small = F.interpolate(x, scale_factor=scale)
        kept.append(self.net(small))  # HERE""",
    "a pyramid of pooling": """
    for size in self.sizes:
        kept.append(self.net(F.adaptive_avg_pool2d(x, size)))  # HERE""",
}
ALIKE = {
    "rows": """
    for i in range(n):
        self.kept.append(self.net(x[i]))  # HERE""",
    "rows in two steps": """
    for i in range(n):
        h = torch.relu(self.encode(x[i]))
        kept.append(self.decode(h))  # HERE""",
    "a sum of losses": """
    for i in range(n):
        self.total += (x[i] * self.w).sum()  # HERE
        count += 1""",
    "a counter that is read": """
    for row in x:
        kept.append(self.net(row, position[i]))  # HERE
        i += 1""",
    "a part that is changed in place": """
    for row in x:
        row.clamp_(0, 1)
        kept.append(self.net(row))  # HERE""",
    "heads": """
    for k in range(n):
        scores = torch.softmax(x[:, k] @ y[:, k], -1)  # HERE
        kept.append(scores @ z[:, k])""",
    "pictures of one size": """
    for i in range(n):
        kept.append(self.net(F.interpolate(x[i], size=224)))  # HERE""",
}


def structure(folder: Path, body: str) -> Structure:
    """Of a stack at the line, within a net where the line calls one."""
    text = f"def forward(self, x):{body}\n"
    (folder / "train.py").write_text(text)
    line = next(at for at, one in enumerate(text.splitlines(), 1) if "# HERE" in one)
    source = SourceStructure(SourceLines([folder]))
    return source.of((f"forward (train.py:{line})", *(NET if calls_net(body) else ())))


def calls_net(body: str) -> bool:
    called = next(one for one in body.splitlines() if "# HERE" in one)
    names = ("self.net(", "self.cell(", "self.attention(", "self.decode(")
    return any(one in called for one in names)


@pytest.mark.parametrize("name", [*IN_ORDER, *OF_OTHERS])
def test_no_call_for_all_parts_is_advised(tmp_path: Path, name: str) -> None:
    seen = structure(tmp_path, (IN_ORDER | OF_OTHERS)[name])
    assert (seen.in_parts, seen.in_turns) == ("", "")


@pytest.mark.parametrize("name", [*ALIKE])
def test_turns_that_need_no_other_are_one_call(tmp_path: Path, name: str) -> None:
    seen = structure(tmp_path, ALIKE[name])
    assert bool(seen.in_parts) is calls_net(ALIKE[name])
    assert bool(seen.in_parts) is not bool(seen.in_turns)


STATEFUL = """
class Neuron(nn.Module):
    def forward(self, x):
        {first}
        return self.w(x)  # NET

def train():
    for t in range(n):
        kept.append(neuron(x[t]))  # CALL
"""


@pytest.mark.parametrize(
    ("first", "found"),
    [
        ("self.v = torch.sigmoid(self.w(x) + self.v)", False),
        ("self.calls += 1", True),
        ("self.seen.append(len(x))", True),
    ],
)
def test_a_net_that_keeps_a_state_needs_its_turns_in_order(
    tmp_path: Path, first: str, found: bool
) -> None:
    """Spiking neurons, recurrent layers of one's own."""
    (tmp_path / "train.py").write_text(STATEFUL.format(first=first))
    source = SourceStructure(SourceLines([tmp_path]))
    stack = ("train (train.py:9)", NET[0], "Neuron.forward (train.py:5)", *NET)
    assert bool(source.of(stack).in_parts) is found
