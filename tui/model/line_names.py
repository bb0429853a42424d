"""Which names of a function are tensors, by the text of its lines: what PyTorch gave, and what it
is given. Lists of numbers that become a tensor at the end are none."""

import keyword
import re
from collections.abc import Collection, Iterator, Sequence
from typing import Final, NamedTuple

_TOKEN: Final = re.compile(
    r"""(?P<text>"[^"]*"|'[^']*')|(?P<number>\d[\w.]*)|(?P<open>[(\[{])|(?P<close>[)\]}])"""
    r"|(?P<name>\.?[^\W\d]\w*(\.[^\W\d]\w*)*)"
)
_TARGETS: Final = re.compile(
    r"(?P<names>([\w.,\s*]|\[[^\[\]]*\])+?)(:[\w.\[\], |]+)?(//|\*\*|[-+*/@%&|^])?=(?!=)"
)
_LOOP: Final = re.compile(r"\bfor (?P<names>[\w,()\s*]+?) in (?P<over>[\w.]+(?=\s*(?:[:\])]|$)))?")
_PRODUCT: Final = re.compile(r"(?=\b([^\W\d][\w.]*) @ ([^\W\d][\w.]*))")
_NUMBER: Final = re.compile(r"\s*(int|float|bool|str|len|range|list|dict|tuple|sorted)\(")
"""What such a call gives is Python's own."""
_COUNTS: Final = ("len", "range", "int", "float", "str")
_PYTORCH: Final = ("torch", "F", "nn", "functional")
_NETS: Final = ("model", "net", "network", "criterion", "loss_fn")
_NOT_NAMES: Final = frozenset((*keyword.kwlist, *_PYTORCH, "self", "cls", "device", "math"))
_SETTINGS: Final = frozenset(
    ("lr", "gamma", "lam", "lambda_", "lmbda", "gae_lambda", "eps", "epsilon", "tau", "momentum")
)
"""Numbers by their names, where a call of PyTorch's takes them."""
_CONVERTS: Final = re.compile(r"torch\.(as_tensor|from_numpy|frombuffer|(\w+\.)?\w*[tT]ensor)")
"""Makes a tensor of what is none."""
_MAKES: Final = re.compile(
    r"torch\.(zeros|ones|empty|full|eye|arange|linspace|logspace|rand|randn|randint|randperm"
    r"|device|Generator|Size|cuda\.\w+)"
)
"""Takes numbers."""
_METHODS: Final = re.compile(
    r"\w*[a-z0-9]_|to|cuda|matmul|mm|bmm|softmax|mean|sum|norm|view|reshape|transpose|permute|argmax"
    r"|exp|log|sqrt|rsqrt|pow|clamp|abs|var|std|dot|outer|topk|amax|amin|logsumexp|log_softmax"
    r"|sigmoid|tanh|relu|cumsum|gather|scatter|index_select|unbind|chunk|flatten|squeeze|unsqueeze"
    r"|expand|contiguous|detach|float|half|bfloat16|long|masked_fill"
)
"""Of a tensor; these take another one:"""
_WITH_ANOTHER: Final = ("matmul", "mm", "bmm", "dot", "outer")
_SAME: Final = re.compile(r"(\.(T|mT|H|data|grad))+$")
"""Attributes that are tensors as well."""
_INDEX: Final = "[]"


class _Use(NamedTuple):
    """A name in a line, or what a call of its own is of."""

    name: str
    """Dotted."""
    method: str
    """That is called of it; "" where it stands for itself."""
    around: tuple[str, ...]
    """The functions whose arguments it is in, the outermost first, and `[]` for an index."""
    indexed: str
    """What follows in brackets, up to the first that closes."""
    gradient: bool


def of_tensors(line: str, tensors: Collection[str]) -> bool:
    """A line works on one of them itself: a method may only ask for its size."""
    return any(use.name in tensors and not use.method for use in _uses(line))


def names_of_tensors(
    function: Sequence[str],
    computing: Collection[int],
    waiting: Collection[int],
    arithmetic: Collection[int],
    here: int,
) -> set[str]:
    """Names that are tensors at line `here` of a function, of whose lines those in `computing` call
    PyTorch, those in `waiting` hand out Python's numbers, and those in `arithmetic` give a tensor
    where they work on one."""
    given, operands, lists = set[str](), set[str](), set[str]()
    uses = [list(_uses(line)) for line in function]
    for at in sorted(computing):
        line = function[at]
        names = _assigned(line) if at not in waiting else set()
        converted = {one.name for one in uses[at] if one.around and _is(_CONVERTS, one.around[-1])}
        if not _CONVERTS.search(line):
            given |= names
        elif at < here:
            given |= names
            converted -= names
        else:
            converted |= names
        lists |= converted
        operands.update(one.name for one in uses[at] if _is_operand(one))
        operands.update(_name(one) for two in _PRODUCT.findall(line) for one in two)
    loops = [loop for line in function for loop in _LOOP.finditer(line)]
    counted = {name for loop in loops for name in _names(loop["names"])}
    whole = {one.name for of_line in uses[1:] for one in of_line if not _is_element(one, counted)}
    tensors = (given | ((operands & whole) - counted - _SETTINGS)) - lists
    tensors |= {
        name
        for loop in loops
        if loop["over"] and _name(loop["over"]) in tensors
        for name in _names(loop["names"])
    }
    for at in sorted(arithmetic):
        if of_tensors(function[at], tensors):
            tensors |= _assigned(function[at]) - lists
    return tensors


def _is_operand(use: _Use) -> bool:
    """By the call that it is in, or that is made of it."""
    if use.gradient:
        return True
    if any(
        one == _INDEX or one in _COUNTS or _is(_CONVERTS, one) or _is(_MAKES, one)
        for one in use.around
    ):
        return False
    if use.method and _METHODS.fullmatch(use.method):
        return True
    return not use.method and any(map(_takes_tensors, use.around))


def _takes_tensors(function: str) -> bool:
    first, last = function.partition(".")[0], function.rpartition(".")[2]
    return first in _PYTORCH or last in _NETS or last in _WITH_ANOTHER


def _is_element(use: _Use, counted: set[str]) -> bool:
    """One number of a list, as a loop walks through it."""
    return not counted.isdisjoint(_names(use.indexed)) and not set(use.indexed) & set(":,")


def _is(what: re.Pattern[str], function: str) -> bool:
    return what.fullmatch(function) is not None


def _uses(line: str) -> Iterator[_Use]:
    around: list[str] = []
    before, end = "", -1  # what was called or indexed, where it stands right before the bracket
    for token in _TOKEN.finditer(line):
        text = token.group()
        if token["open"]:
            joined = end == token.start()
            around.append((_INDEX if text == "[" else before) if joined and text != "{" else "")
        elif token["close"]:
            del around[-1:]
            before, end = "", token.end()
        elif token["name"]:
            before, end = text, token.end()
            after = line[end : end + 2]
            argument = bool(around) and after[:1] == "=" and after != "=="
            dotted, method = text, ""
            if after[:1] == "(":
                dotted, _, method = text.rpartition(".")
            name = "" if argument or dotted.startswith(".") else _name(dotted)
            if name:
                index = line[end + 1 :].partition("]")[0] if after[:1] == "[" else ""
                yield _Use(name, method, tuple(around), index, dotted.endswith(".grad"))


def _name(dotted: str) -> str:
    """A tensor's own name; "" of what is none."""
    parts = dotted.split(".")
    if dotted in _NOT_NAMES or parts[0] in (*_PYTORCH, "math") or parts[-1] == "device":
        return ""
    return _SAME.sub("", dotted)


def _names(text: str) -> set[str]:
    return {one for one in re.findall(r"[^\W\d]\w*", text) if one not in _NOT_NAMES}


def _assigned(line: str) -> set[str]:
    """Names that a line gives a value of PyTorch's."""
    found = set[str]()
    at = 0
    while target := _TARGETS.match(line, at):
        at = target.end()
        found.update(use.name for use in _uses(target["names"]) if _INDEX not in use.around)
    return set() if _NUMBER.match(line, at) else found
