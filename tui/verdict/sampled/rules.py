"""Which rules judge a run without a probe: those whose signals are there. The others abstain."""

from typing import Final

from tui.verdict.findings import Kind
from tui.verdict.rules import Rule
from tui.verdict.rules.contention import contention
from tui.verdict.rules.throttled import throttled
from tui.verdict.sampled.host import host, sync
from tui.verdict.sampled.input import input_bound
from tui.verdict.sampled.named import checkpoint, evaluation, optimizer, recompile

SAMPLED_CAUSES: Final[dict[Kind, Rule]] = {
    "input": input_bound,
    "sync": sync,
    "host": host,
    "optimizer": optimizer,
    "checkpoint": checkpoint,
    "evaluation": evaluation,
    "recompile": recompile,
    "contention": contention,
    "throttled": throttled,
}
