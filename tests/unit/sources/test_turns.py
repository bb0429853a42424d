"""Loops whose turns need the one before, or that are of different things, as people write them."""

from pathlib import Path

import pytest

from gpuwatch.tui.sources.source_text.files import SourceLines
from gpuwatch.tui.sources.source_text.structure import SourceStructure, Structure

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
    "an average in place": """
    for one in x:
        h.mul_(0.9).add_(one)  # HERE""",
    "an average in place, in two lines": """
    for one in x:
        h.mul_(0.9)
        h.add_(one)  # HERE""",
    "an average by operators": """
    for one in x:
        h *= 0.9
        h += one  # HERE""",
    "an average in place that is kept": """
    for one in x:
        kept.append(h.mul_(0.9).add_(one).clone())  # HERE""",
    "an average in a list": """
    return [h.mul_(0.9).add_(one).clone() for one in x]  # HERE""",
    "a function that changes what it is given": """
    for one in x:
        F.relu_(h)
        h.add_(one)  # HERE""",
    "a state that begins within the loop": """
    for t in range(n):
        if t == 0:
            h = self.first
        h = torch.tanh(x[t] + h @ self.w)  # HERE""",
    "a state that is added to": """
    for t in range(n):
        h = h + x[t]
        kept.append(torch.tanh(h))  # HERE""",
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
    "a state that a list binds": """
    return torch.stack([h := self.cell(one, h) for one in x])  # HERE""",
    "a state that a list binds for its next turn": """
    return [(self.net(one, last), last := one.mean()) for one in x]  # HERE""",
    "a state that a list binds, without a net": """
    return [h := torch.tanh(one + h) for one in x]  # HERE""",
    "a state that is bound within a call": """
    for one in x:
        kept.append(h := self.cell(torch.cat([one, h])))  # HERE""",
    "a search": """
    for one in x:
        y = self.net(one)  # HERE
        if y.item() > 0.5:
            break""",
    "a search in two lines": """
    for one in x:
        y = self.net(one)  # HERE
        far = (y - goal).norm()
        with torch.no_grad():
            if far < 1e-3 and one is not None:
                return y""",
    "a search by its test": """
    for one in x:
        if self.net(one).mean() > 0.5:  # HERE
            return one""",
    "a sum that is large enough": """
    for one in x:
        total = total + (one * self.w).sum()  # HERE
        if total > 1:
            break""",
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
    "parameters of a group": """
    for p in group["params"]:
        p.data.add_(p.grad, alpha=-rate)  # HERE""",
    "parameters of a group that is counted": """
    for i, p in enumerate(self.groups[0]["params"]):
        total = total + p.grad.norm()  # HERE""",
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
    "a sum of several terms": """
    for i in range(n):
        p, t = x[i], y[i]
        total = total + 1 - (2 * (p * t).sum() + 1) / (p.sum() + t.sum() + 1)  # HERE""",
    "a counter that is read": """
    for row in x:
        kept.append(self.net(row, position[i]))  # HERE
        i += 1""",
    "a part that is changed in place": """
    for row in x:
        row.clamp_(0, 1)
        kept.append(self.net(row))  # HERE""",
    "a sum in place": """
    for i in range(n):
        total.add_((x[i] * self.w).sum())  # HERE""",
    "one of two": """
    for i in range(n):
        if masked:
            y = x[i] * self.w
        else:
            y = x[i]
        kept.append(torch.tanh(y))  # HERE""",
    "a new tensor that is changed in place": """
    for row in x:
        y = torch.tanh(row).mul_(2)
        kept.append(F.relu_(y.add_(1)))  # HERE""",
    "what a list binds and reads in one turn": """
    return [(y, y.mean()) for one in x if (y := self.net(one)) is not None]  # HERE""",
    "a row that ends them all": """
    for i, row in enumerate(x):
        if i > most or row is None:
            break
        kept.append(self.net(row))  # HERE
        if len(kept) == most or kept[-1].shape[0] == 0:
            break""",
    "a test of what another part says": """
    for row in x:
        y = self.net(row)  # HERE
        for one in others:
            if y.mean() > one:
                break
        kept.append(y)""",
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


SPIKING = """
def forward_pass(net, data):
    begin(data)
    for step in range(data.size(0)):
        kept.append(net(data[step]))  # CALL
    return torch.stack(kept)
"""
LEAKY = """
class Leaky:
    def forward(self, x, mem=None):
        if mem is not None:
            self.mem = mem
        if self.mem.shape != x.shape:
            self.mem = torch.zeros_like(x, device=self.mem.device)
        self.reset = self.mem_reset(self.mem)
        self.mem = self.state(x)
        return self.fire(self.mem)  # LIBRARY
"""
CHARGED = """
class Node:
    def forward(self, x):
        self.charge(x)
        return self.fire()  # LIBRARY

    def charge(self, x):
        self.v = self.v + x
        self.v = self.v * (self.v < 1)
"""
DECAYING = """
class Node:
    def forward(self, x):
        self.v.mul_(0.9).add_(x)
        return self.fire()  # LIBRARY
"""
STATELESS = """
class Node:
    def forward(self, x):
        self.calls += 1
        return self.w(x)  # LIBRARY

    def reset(self):
        self.v = self.start(self.v)
"""


@pytest.mark.parametrize(
    ("library", "found"),
    [(LEAKY, False), (CHARGED, False), (DECAYING, False), (STATELESS, True), (None, False)],
    ids=["snntorch", "spikingjelly", "in place", "none", "cannot be read"],
)
def test_a_library_may_keep_the_state_that_the_next_part_needs(
    tmp_path: Path, library: str | None, found: bool
) -> None:
    """Of a spiking net's time steps it was said: "one call of the net for the whole batch, instead
    of one for each part of it in a loop (forward_pass)". Its convolutions are seen in stacks of
    their own."""
    (tmp_path / "train.py").write_text(SPIKING)
    number = 1
    if library is not None:
        folder = tmp_path / "site-packages" / "spikes"
        folder.mkdir(parents=True)
        (folder / "leaky.py").write_text(library)
        number = line_of(library, "# LIBRARY")
    call = f"forward_pass (train.py:{line_of(SPIKING, '# CALL')})"
    container = "Sequential.forward (torch/nn/modules/container.py:250)"
    convolution = (call, NET[0], container, NET[0], "Conv2d.forward (torch/nn/modules/conv.py:9)")
    node = (call, NET[0], container, NET[0], f"forward (site-packages/spikes/leaky.py:{number})")
    source = SourceStructure(SourceLines([tmp_path]))
    assert source.of(convolution).in_parts == call
    assert bool(source.of(node).in_parts) is found
    assert bool(source.of(convolution).in_parts) is found


@pytest.mark.parametrize(
    ("begun", "found"),
    [("utils.reset(net)", False), ("functional.reset_net(net)", False), ("env.reset()", True)],
)
def test_a_net_whose_state_begins_anew_has_one(tmp_path: Path, begun: str, found: bool) -> None:
    """snntorch's and spikingjelly's tutorials, before a neuron of theirs was sampled."""
    text = SPIKING.replace("begin(data)", begun)
    (tmp_path / "train.py").write_text(text)
    call = f"forward_pass (train.py:{line_of(text, '# CALL')})"
    convolution = (call, NET[0], "Conv2d.forward (torch/nn/modules/conv.py:9)")
    assert bool(SourceStructure(SourceLines([tmp_path])).of(convolution).in_parts) is found


def line_of(text: str, mark: str) -> int:
    return next(at for at, one in enumerate(text.splitlines(), 1) if mark in one)
