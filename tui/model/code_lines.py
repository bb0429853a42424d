"""The text of a line where a sample ends: a call into C leaves no frame of its own, so that the
line says what is done there."""

import re
from collections.abc import Iterator, Sequence
from typing import Final

SLEEP_LINES: Final = r"\bsleep\("
BACKWARD_LINES: Final = r"\.backward\("
OPTIMIZER_LINES: Final = r"\b\w*(opt|optim|optimizer|scaler)\w*\.(step|zero_grad|update)\("
SYNC_LINES: Final = (
    r"\.(item|tolist|cpu|numpy)\(|\bsynchronize\(|\b(isnan|isfinite|isinf|nonzero|barrier)\("
)
COMPUTE_LINES: Final = (
    r"\b(torch|F|nn|functional)\.(?!save|load|manual_seed|no_grad|cuda\.(empty|reset|memory))\w+"
    r"|\.\w*[a-z0-9]_\(|\.grad\b"  # in place: p.data.add_(-lr * p.grad)
    r"|\.(to|cuda|matmul|mm|bmm|softmax|mean|sum|norm|view|reshape|transpose|permute|argmax)\("
    r"|(?<!math)(?<!np)(?<!numpy)\.(exp|log|sqrt|rsqrt|pow|clamp|abs|var|std|dot|outer|topk|amax|amin"
    r"|logsumexp|log_softmax|sigmoid|tanh|relu|cumsum|gather|scatter|index_select|unbind|chunk"
    r"|flatten|squeeze|unsqueeze|expand|contiguous|detach|float|half|bfloat16|long|masked_fill)\("
    r"|\bdim=|[\w\])] @ [\w(]|\b(model|net|network|criterion|loss_fn)\("
)
"""Parts of a line. The first of them that is found says what it does."""


IMPORTS: Final = re.compile(r"\s*(import|from) torch\b")
ARITHMETIC: Final = re.compile(r"[\w\])] ?(\*\*|[-+*/@]) ?[\w(\[-]")
SLICES: Final = re.compile(r"\[[^\]]*(\.\.\.|\bNone\b|:,|, ?:)[^\]]*\]")
"""Of more than one dimension."""
NO_ARITHMETIC: Final = re.compile(r"""["']|\bfor\b|\btime\(""")
"""Of tensors alone: it writes texts, loops in Python, or reads a clock."""
OF_NUMPY: Final = re.compile(r"\b(np|numpy|pd|pandas)\.")
COUNTS: Final = re.compile(r"\bfor (\w+)(?:, ?\w+)? in (?:range|enumerate)\(")
"""Binds a number of Python's."""
_COMPUTES: Final = re.compile(COMPUTE_LINES)
_ELSEWHERE: Final = re.compile(SYNC_LINES)
_NAME: Final = re.compile(r"[^\W\d]\w*")


def imports_torch(lines: Sequence[str]) -> bool:
    """Whether functions of a file may compute tensors."""
    return any(map(IMPORTS.match, lines))


def computes(lines: Sequence[str], number: int) -> bool:
    """Whether line `number`, from 1 on, of a file that imports PyTorch computes tensors: it calls
    PyTorch; or it is arithmetic on what its function computes with, which takes Python's own
    numbers no time."""
    if not 0 < number <= len(lines):
        return False
    line = _code(lines[number - 1])
    if _ELSEWHERE.search(line):
        return False
    if _COMPUTES.search(line):
        return True
    if NO_ARITHMETIC.search(line) or not (ARITHMETIC.search(line) or SLICES.search(line)):
        return False
    function = [_code(one) for one in _function(lines, number - 1)]
    if any(map(OF_NUMPY.search, function)):
        return False
    computing = [one for one in function if _COMPUTES.search(one)]
    counted = {name for one in function for name in COUNTS.findall(one)}
    tensors = {name for one in computing for name in _NAME.findall(one)} - counted
    return bool(computing) and not tensors.isdisjoint(_NAME.findall(line))


def _code(line: str) -> str:
    """Without its comment."""
    return line.partition(" #")[0]


def _function(lines: Sequence[str], at: int) -> Iterator[str]:
    """The lines of the innermost function around a line, by how far they are indented; none where
    it lies in no function."""
    depth, first = _depth(lines[at]), at
    while not (
        lines[first].lstrip().startswith(("def ", "async def ")) and _depth(lines[first]) < depth
    ):
        if first == 0:
            return
        first -= 1
    depth = _depth(lines[first])
    yield lines[first]
    for line in lines[first + 1 :]:
        if line.strip() and _depth(line) <= depth and not line.lstrip().startswith((")", "#")):
            return
        yield line


def _depth(line: str) -> int:
    return len(line) - len(line.lstrip())
