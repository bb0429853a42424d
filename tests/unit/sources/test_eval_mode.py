"""A net in `eval()` mode is evaluated, unless it may be trained there; whose mode that is."""

from pathlib import Path

import pytest

from tests.unit.sources.test_source_structure import structure

TRAINED_ELSEWHERE = {
    "a function": "optimize(loss)",
    "a scaler that answers": "norm = loss_scaler(loss, optimizer)",
    "an agent": "agent.learn(loss)",
    "whatever takes a loss": "strategy.run(loss)",
    "a method of the same object": "self.update(loss)",
    "what is made of the loss": "apply_updates(weights, slopes_of(loss, weights))",
    "a closure": "opt.step(lambda: loss)",
}
LOOKED_AT = {
    "numbers": "losses.append(loss.item())",
    "a metric": "f1.update(out, y)",
    "a meter": "meter.update(loss, len(x))",
    "a log": "self.log('loss', loss)",
    "pictures": "save_image(out, 'a.png'); writer.add_image('a', out)",
    "arrays": "collect(out.cpu().numpy())",
    "a stop": "early_stopping(loss, net); scheduler.step(loss)",
}
IN_EVAL_MODE = """
def run(self, net, data):
    net.eval()
    for x, y in data:
        out = net(x)  # 1
        loss = error(out, y)
        {then}
"""


@pytest.mark.parametrize("name", [*TRAINED_ELSEWHERE, *LOOKED_AT])
def test_a_net_in_eval_mode_may_be_trained_by_what_another_file_holds(
    tmp_path: Path, name: str
) -> None:
    """Fine-tuning with frozen batch norm: "evaluation takes 35%: evaluate less often", where
    nothing is evaluated."""
    text = IN_EVAL_MODE.format(then=(TRAINED_ELSEWHERE | LOOKED_AT)[name])
    assert structure(tmp_path, text, "run").evaluates is (name in LOOKED_AT)


def test_a_function_of_the_same_file_is_read(tmp_path: Path) -> None:
    text = IN_EVAL_MODE.format(then="take(loss)") + "\ndef take(loss):\n    {}\n"
    trains = ("loss.backward()", "scaler(loss, optimizer)", "losses.append(loss)")
    seen = [structure(tmp_path, text.format(one), "run").evaluates for one in trains]
    assert seen == [False, False, True]


DISTILLED_ELSEWHERE = """
@torch.no_grad()
def wanted(teacher, x):
    return teacher(x)  # 2

def train(student, teacher, loader):
    for x in loader:
        soft = wanted(teacher, x)  # 1
        {}
"""


@pytest.mark.parametrize(
    ("then", "evaluates"),
    [
        ("loss = distance(student(x), soft); update(loss, opt)", False),
        ("best = min(best, soft); report_to(soft); adjust_learning_rate(optimizer, soft)", True),
    ],
)
def test_a_teachers_answers_are_trained_on_by_what_is_named_so(
    tmp_path: Path, then: str, evaluates: bool
) -> None:
    text = DISTILLED_ELSEWHERE.format(then)
    assert structure(tmp_path, text, "train", "wanted").evaluates is evaluates


MODES = """
def run(self, net, data):
    {modes}
    for x in data:
        kept.append({asks})  # 1
"""


@pytest.mark.parametrize(
    ("modes", "asks", "evaluates"),
    [
        ("net.to(device).eval()", "net(x)", True),
        ("best = load(path).eval()", "best.encode(x)", True),
        ("net.train(False)", "net(x)", True),
        ("self.eval()", "self.net(x)", True),
        ("net.module.eval()", "net(x)", True),
        ("net.eval(); fast = compile(net)", "fast(x)", True),
        ("[one.eval() for one in nets]", "nets[0](x)", True),
        ("for one in (encoder, decoder): one.eval()", "decoder(encoder(x))", True),
        ("net.train(); teacher.eval()", "net(x)", False),
        ("teacher.eval()", "net(x)", False),
        ("net.train(); teacher.eval()", "distance(net(x), teacher(x))", False),
        ("teacher.eval(); soft = teacher(data)", "distance(net(x), soft.mean())", False),
        ("self.backbone.eval()", "self.net(x)", False),
        ("net.encoder.eval()", "net(x)", False),
        ("frame.eval('a = b + c')", "net(x)", False),
        ("for one in net.modules(): one.eval() if is_norm(one) else None", "net(x)", False),
    ],
)
def test_the_mode_of_a_net_is_its_own(
    tmp_path: Path, modes: str, asks: str, evaluates: bool
) -> None:
    text = MODES.format(modes=modes, asks=asks)
    assert structure(tmp_path, text, "run").evaluates is evaluates


BY_A_HELPER = """
def loss_on(net, x):
    return net(x).mean()  # 2

class Run:
    def run(self, net, teacher, data):
        {modes}
        for x in data:
            total += {asks}  # 1
"""


@pytest.mark.parametrize(
    ("modes", "asks", "evaluates"),
    [
        ("net.eval()", "loss_on(net, x).item()", True),
        ("self.net.eval()", "self.loss_on(x).item()", True),
        ("known.eval()", "loss_on(x).item()", True),
        ("net.train(); teacher.eval()", "loss_on(net, x)", False),
        ("self.net.train(); self.teacher.eval()", "self.loss_on(x)", False),
    ],
)
def test_a_function_may_call_the_net_that_it_is_given_or_any(
    tmp_path: Path, modes: str, asks: str, evaluates: bool
) -> None:
    text = BY_A_HELPER.format(modes=modes, asks=asks)
    assert structure(tmp_path, text, "Run.run", "loss_on").evaluates is evaluates
