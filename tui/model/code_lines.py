"""The text of a line where a sample ends: a call into C leaves no frame of its own, so that the
line says what is done there."""

import re
from collections.abc import Sequence
from typing import Final

from .tensor_names import Lines, works_on_tensors

SLEEP_LINES: Final = r"\bsleep\("
WAIT_LINES: Final = r"\.wait\("
BACKWARD_LINES: Final = r"\.backward\("
OPTIMIZER_LINES: Final = (
    r"\b\w*(opt(s|_\w*|[A-Z\d]\w*)?|(optim|scaler)\w*)\.(step|zero_grad)\("
    # Options and statistics are updated too, by what they are handed.
    r"|\b\w*optim(i[sz]er)?\.update\(|\b\w*scaler\w*\.update\(\)"
)
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
LEFT_LINES: Final = (
    r"\s*((if|elif|while)\b[^:]*:|else:)?\s*"
    r"(with\b|([\w.\[\]]+\.)?(result|get|wait|join|recv|exception|shutdown|close)\([^()]*\)\s*(;|$))"
)
"""Of a line that waits, and takes nothing of what it has waited for."""


IMPORTS: Final = re.compile(
    r"\s*(import torch\b[\w.]*( as \w+)?\s*([,;#]|$)|from torch(\.[\w.]+)? import\b)"
)
QUOTES: Final = ('"""', "'''")
ARITHMETIC: Final = re.compile(r"[\w\])] ?(\*\*|[-+*/@]) ?[\w(\[-]")
SLICES: Final = re.compile(r"\[[^\]]*(\.\.\.|\bNone\b|:,|, ?:)[^\]]*\]")
"""Of more than one dimension."""
NO_ARITHMETIC: Final = re.compile(r"""["']|\bfor\b|\btime\(""")
"""Of tensors alone: it writes texts, loops in Python, or reads a clock."""
OF_NUMPY: Final = re.compile(r"\b(np|numpy|pd|pandas)\.")
OF_ARRAYS: Final = re.compile(
    r"\.astype\(|(?<!torch)\.(mean|sum|std|var|max|min|any|all|arg\w+|cumsum)\([^\"']*\baxis="
)
"""What a net asks no tensor for."""
OF_BOTH: Final = re.compile(
    r"(?<!torch)(?<!\bF)(?<!functional)\.(mean|sum|std|var|dot|cumsum|argmax|reshape|flatten|squeeze"
    r"|transpose(?!\(-?\d+, ?-?\d+\)))\((?![^()]*\b(keep)?dim=)"
)
"""Methods that NumPy's arrays and pandas' columns have too."""
OF_TENSORS: Final = re.compile(r"(:|->) *\"?(torch\.)?Tensor\b")
"""What a function says of its arguments."""
CONVERTS: Final = re.compile(
    r"\s*(return |[\w.,\[\] ]+(: *[\w.]+ *)?= *)"
    r"torch\.(from_numpy|as_tensor|tensor|frombuffer|\w*Tensor)\((?P<of>.*)\)\s*"
)
"""A statement that makes a tensor of what is none, and nothing else."""
TYPES: Final = re.compile(r"\bdtype *= *torch\.\w+")
NET: Final = re.compile(r"class \w+\(.*(Module|Layer|Function)\b")
MOST_CHARACTERS: Final = 1_000
"""A longer line is data: one of 20,000 brackets took 9 s."""
_TEXT: Final = re.compile(r"""([A-Za-z]{0,2})(\"{3}|'{3}|["'])((?:\\.|(?!\2)[^\\])*)\2""")
_FIELD: Final = re.compile(r"(?<!\{)\{([^{}]+)\}")
"""A string, with its prefix; and what an f-string computes."""
_COMPUTES: Final = re.compile(COMPUTE_LINES)
_ELSEWHERE: Final = re.compile(SYNC_LINES)


def imports_torch(lines: Sequence[str]) -> bool:
    """Whether functions of a file may compute tensors. A docstring may show how."""
    quoted = ""
    for line in lines:
        if not quoted and IMPORTS.match(line[:MOST_CHARACTERS]):
            return True
        for quotes in QUOTES:
            if quoted in ("", quotes) and line.count(quotes) % 2:
                quoted = "" if quoted else quotes
    return False


def code_of(line: str) -> str:
    """A line without its comment and what its strings say, but for what they compute; "" where it
    is too long to be read."""
    return "" if len(line) > MOST_CHARACTERS else _TEXT.sub(_computed, line).partition(" #")[0]


def _computed(text: re.Match[str]) -> str:
    prefix, quotes, said = text.groups()
    fields = _FIELD.findall(said) if "f" in prefix.lower() else ()
    return f"{quotes}{' '.join(fields)}{quotes}"


def computes(lines: Sequence[str], number: int) -> bool:
    """Whether line `number`, from 1 on, of a file that imports PyTorch computes tensors: it calls
    PyTorch; or it is arithmetic on what its function computes with, which takes Python's own
    numbers no time."""
    if not 0 < number <= len(lines):
        return False
    line = code_of(lines[number - 1])
    if _ELSEWHERE.search(line):
        return False
    if _COMPUTES.search(line) and not only_converts(line):
        return True
    if not _is_arithmetic(line):
        return False
    first, end = _function(lines, number - 1)
    function = [_code(one) for one in lines[first:end]]
    if any(map(OF_NUMPY.search, function)):
        return False
    computing = frozenset(at for at, one in enumerate(function) if _COMPUTES.search(one))
    shared = frozenset[int]()
    if not (_is_of_net(lines, first) or any(map(OF_TENSORS.search, function))):
        if any(map(OF_ARRAYS.search, function)):
            return False
        shared = frozenset(
            at for at in computing if not _COMPUTES.search(OF_BOTH.sub("", function[at]))
        )
    waiting = frozenset(at for at in computing if _ELSEWHERE.search(function[at]))
    arithmetic = frozenset(at for at, one in enumerate(function) if _is_arithmetic(one))
    shown = Lines(computing - shared, shared, waiting, arithmetic - computing)
    return works_on_tensors(function, shown, number - 1 - first)


def only_converts(line: str) -> bool:
    """PyTorch does nothing there but take numbers over, which lie in the host's memory: what takes
    time is NumPy's, or Python's (`x = torch.from_numpy(np.stack(rows))`)."""
    found = CONVERTS.fullmatch(line)
    if found is None or "device" in line:
        return False
    of, depth = found["of"], 0
    for character in of:
        depth += (character == "(") - (character == ")")
        if depth < 0:
            return False  # it ends before the line does: `torch.tensor(2.0) * f(x)`
    return not _COMPUTES.search(TYPES.sub("", of))


def calls_torch(lines: Sequence[str], number: int) -> bool:
    """Whether the function around line `number` does so in any of its lines."""
    if not 0 < number <= len(lines):
        return False
    first, end = _function(lines, number - 1)
    return any(_COMPUTES.search(_code(one)) for one in lines[first:end])


def _is_arithmetic(line: str) -> bool:
    worked = ARITHMETIC.search(line) or SLICES.search(line)
    return worked is not None and not NO_ARITHMETIC.search(line)


def _is_of_net(lines: Sequence[str], first: int) -> bool:
    """The function that begins there is a net's own."""
    depth = _depth(lines[first])
    for line in reversed(lines[:first]):
        if line.strip() and _depth(line) < depth:
            depth = _depth(line)
            if line.lstrip().startswith("class "):
                return NET.match(line.lstrip()) is not None
    return False


def _code(line: str) -> str:
    """Without its comment; "" where it is too long to be read."""
    return "" if len(line) > MOST_CHARACTERS else line.partition(" #")[0]


def _function(lines: Sequence[str], at: int) -> tuple[int, int]:
    """Where the innermost function around a line begins, and the line after it, by how far they are
    indented; no line where it lies in no function."""
    depth = _depth(lines[at])
    for first in range(at, -1, -1):
        line = lines[first]
        if line.lstrip().startswith(("def ", "async def ")) and _depth(line) < depth:
            end = _end(lines, first)
            if at < end:
                return first, end
            depth = _depth(line) + 1  # a neighbour, which has ended
    return at, at


def _end(lines: Sequence[str], first: int) -> int:
    depth = _depth(lines[first])
    for end, line in enumerate(lines[first + 1 :], first + 1):
        if line.strip() and _depth(line) <= depth and not line.lstrip().startswith((")", "#")):
            return end
    return len(lines)


def _depth(line: str) -> int:
    return len(line) - len(line.lstrip())
