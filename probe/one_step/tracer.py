"""Takes down each operation of one step, by a dispatch mode on the training thread.

Nothing is decomposed, so the same kernels run and the losses stay. An operation costs 8 to 12 us
more (two cores, torch 2.13), some 25 where a device's events stand around it (an H200's host).
"""

import re
import sys
from collections.abc import Callable
from os import sep
from types import CodeType, FrameType
from typing import Any, Final, NamedTuple
from weakref import ref

from ..circuit_breaker import PACKAGE, is_users
from ..loaders import past_overrides
from .operation import NOWHERE, Operation, Place, Step, Value, Work
from .operators import MATRIX_PRODUCTS, Operator, operator_of

MOST_OPERATIONS: Final = 10_000
"""Of a step: 0.3 s more. A recurrent net without a kernel of its own has more."""
MOST_LEAVES: Final = 4_096
SAMPLED: Final = 64
"""Numbers of a tensor on the host, or rows of a matrix, that are looked at."""
LARGE_MATRIX: Final = 1 << 20
"""Elements of a matrix whose zeros are counted."""
LIBRARIES: Final = re.compile(r"[/\\](site|dist)-packages[/\\]|[/\\]lib[/\\]python3[.0-9]*[/\\]")


class Taken(NamedTuple):
    """An operation as it was taken down, before a device's times are known."""

    row: tuple[Any, ...]
    """As `Operation`, without the last three."""
    made: Any
    """Weak reference to what it made, where a gradient goes through it."""
    host_ns: int
    events: Any


class Known:
    """What is remembered from one traced step to the next."""

    def __init__(self) -> None:
        self.is_program: dict[CodeType, bool] = {}
        self.operators: dict[Any, Operator] = {}
        self.leaves: dict[int, tuple[Any, int, int, int, float]] = {}
        """By a tensor's identity: weak reference, version, number, storage, fingerprint."""
        self.filled: dict[int, float] = {}
        """As `Step` has it."""
        self._number = 0

    def next(self) -> int:
        """A number that no storage has had."""
        self._number += 1
        return self._number


def tracer(known: Known, now_ns: Callable[[], int], around: Any = None) -> Any:
    """The mode. `around` times an operation on a device, None on a CPU: `around.begin()`, and
    `around.end(begun)`, which gives its events; not where `around.is_captured()`."""
    torch: Any = sys.modules["torch"]
    from torch.utils._python_dispatch import TorchDispatchMode

    tensor_type = torch.Tensor
    current_node = torch._C._current_autograd_node
    next_number = torch.autograd._get_sequence_nr
    with_gradients = torch.is_grad_enabled
    current_task = getattr(torch._C, "_current_graph_task_id", lambda: NOWHERE)

    class Tracer(TorchDispatchMode):
        def __init__(self) -> None:
            super().__init__()  # type: ignore[no-untyped-call]
            self.taken: list[Taken] = []
            self.places: dict[tuple[CodeType, int], int] = {}
            self.of_node: dict[int, int] = {}
            """The place of each node of the graph."""
            self.storages: dict[int, int] = {}
            """Numbers of the storages that were met, by their address."""
            self.lasting: set[int] = set()
            self.counts: dict[int, tuple[Any, int]] = {}
            """Of large matrices that last: how many numbers are not zero, as a tensor, of so many.
            """
            self.own_ns = 0
            self.is_off = False
            """Where the loader or the optimizer is at work."""
            self.why_not = ""

        @classmethod
        def _should_skip_dynamo(cls) -> bool:
            return False  # else torch imports all of dynamo for it, which takes seconds

        def __torch_dispatch__(
            self, func: Any, types: Any, args: Any = (), kwargs: Any = None
        ) -> Any:
            kwargs = kwargs or {}
            if self.is_off or self.why_not:
                return func(*args, **kwargs)
            begun_ns = now_ns()
            before = event = None
            try:
                if around is not None and around.is_captured():
                    self.why_not = "a graph is captured"  # our events would be part of it
                    return func(*args, **kwargs)
                before = past_overrides(torch, self._before, (func, args, kwargs))
                event = None if around is None else around.begin()
            except Exception as error:  # a tensor that has no storage; the run goes on
                self._give_up(error)
            called_ns = now_ns()
            out = func(*args, **kwargs)
            ended_ns = now_ns()
            try:
                if before is not None:
                    events = None if event is None else around.end(event)
                    asked = before, out, ended_ns - called_ns, events
                    past_overrides(torch, self._after, asked)
            except Exception as error:
                self._give_up(error)
            self.own_ns += called_ns - begun_ns + now_ns() - ended_ns
            return out

        def _give_up(self, error: Exception) -> None:
            if is_users(error):
                raise error
            self.why_not = f"{type(error).__name__}: {str(error)[:200]}"

        def _before(self, called: tuple[Any, Any, Any]) -> Any:
            """What is known before the call; None of too many."""
            func, args, kwargs = called
            if len(self.taken) >= MOST_OPERATIONS:
                self.why_not = "too many operations"
                return None
            operator = known.operators.get(func)
            if operator is None:
                operator = known.operators[func] = operator_of(func)
            tensors: list[Any] = []
            others: list[Any] = []
            for one in (*args, *kwargs.items()):
                for each in one if isinstance(one, (list, tuple)) else (one,):
                    (tensors if isinstance(each, tensor_type) else others).append(each)
            node = current_node()
            of_node = NOWHERE if node is None else node._sequence_nr()
            place = self._asks() if node is None else self.of_node.get(of_node, NOWHERE)
            made = NOWHERE
            if with_gradients() and any(one.requires_grad for one in tensors):
                made = next_number() - 1
                self.of_node[made] = place
            reads = tuple(map(self._read, tensors))
            if operator.name in MATRIX_PRODUCTS:
                self._count(tensors, reads)
            named = (kwargs.get(one) for one in operator.written_by_name)
            placed = (args[one] for one in operator.written if one < len(args))
            writes = frozenset(
                self._read(one).storage for one in (*placed, *named) if isinstance(one, tensor_type)
            )
            arguments = tuple(map(_plain, others))
            task = NOWHERE if node is None else current_task()
            return operator, place, reads, writes, arguments, made, of_node, task

        def _after(self, asked: tuple[Any, Any, int, Any]) -> None:
            before, out, host_ns, events = asked
            operator, place, reads, writes, arguments, node, of_node, task = before
            results = out if isinstance(out, (list, tuple)) else (out,)
            results = [one for one in results if isinstance(one, tensor_type)]
            held = {one.storage for one in reads}
            makes = tuple(self._made(one, held) for one in results)
            work = operator.work
            if makes and not writes and all(one.storage in held for one in makes):
                work = Work.VIEW
            row = operator.name, work, place, reads, makes, writes, arguments, operator.is_random
            made = ref(results[0]) if node != NOWHERE and results else None
            self.taken.append(Taken((*row, node, of_node, task), made, host_ns, events))

        def _read(self, tensor: Any) -> Value:
            storage = _storage_of(tensor, torch)
            number = self.storages.get(storage)
            if number is None:
                number = self.storages[storage] = self._leaf(tensor, storage)
            return _value(tensor, number)

        def _made(self, tensor: Any, held: set[int]) -> Value:
            """A result, of operands in the storages `held`."""
            storage = _storage_of(tensor, torch)
            number = self.storages.get(storage)
            if number is None or number not in held:
                number = self.storages[storage] = known.next()
            return _value(tensor, number)

        def _leaf(self, tensor: Any, storage: int) -> int:
            """The number of a tensor that was there before the step: the same as in the step that
            was traced before where it has not changed since."""
            before = known.leaves.get(id(tensor))
            version, seen = tensor._version, _fingerprint(tensor)
            if before is not None and before[0]() is tensor and not tensor.requires_grad:
                _, last, number, where, fingerprint = before
                if (last, where, fingerprint) == (version, storage, seen):
                    self.lasting.add(number)
                    return number
            number = known.next()
            if len(known.leaves) >= MOST_LEAVES:
                known.leaves.clear()
            known.leaves[id(tensor)] = ref(tensor), version, number, storage, seen
            return number

        def _count(self, tensors: list[Any], reads: tuple[Value, ...]) -> None:
            """Zeros in the first rows of large matrices that last, of each once."""
            for tensor, value in zip(tensors, reads, strict=True):
                number = value.storage
                if tensor.numel() < LARGE_MATRIX or number not in self.lasting:
                    continue
                if tensor.layout is not torch.strided:
                    continue
                if number not in known.filled and number not in self.counts:
                    rows = tensor.detach()
                    rows = rows[:: max(1, len(rows) // SAMPLED)]
                    self.counts[number] = torch.count_nonzero(rows), rows.numel()

        def _asks(self) -> int:
            """The innermost line of the program."""
            frame: FrameType | None = sys._getframe(3)
            while frame is not None:
                code = frame.f_code
                is_program = known.is_program.get(code)
                if is_program is None:
                    is_program = known.is_program[code] = _is_program(code.co_filename, torch)
                if is_program:
                    return self.places.setdefault((code, frame.f_lineno), len(self.places))
                frame = frame.f_back
            return NOWHERE

    return Tracer()


def step_of(mode: Any, known: Known, ns_of: Callable[[Taken], int]) -> Step:
    """What was taken down, as the step ends, with what each took by `ns_of`. A device has passed
    all of it."""
    taken: list[Taken] = mode.taken
    operations = tuple(
        Operation._make(
            (*one.row, one.made is not None and one.made() is not None, ns_of(one), one.host_ns)
        )
        for one in taken
    )
    places = tuple(
        Place(code.co_filename, getattr(code, "co_qualname", code.co_name), line)
        for code, line in mode.places
    )
    for number, (count, whole) in mode.counts.items():
        known.filled[number] = int(count) / whole
    return Step(operations, places, frozenset(mode.lasting), dict(known.filled))


def _storage_of(tensor: Any, torch: Any) -> int:
    """Its address; of a sparse tensor, which has several, its own."""
    if tensor.layout is not torch.strided:
        return id(tensor)
    address: int = tensor.untyped_storage()._cdata
    return address


def _value(tensor: Any, number: int) -> Value:
    on_host = tensor.device.type == "cpu"
    if str(tensor.layout) != "torch.strided":
        return Value(number, (tuple(tensor.shape), tensor.layout, tensor.dtype), 0, on_host)
    sizes, strides = tuple(tensor.shape), tensor.stride()
    held: int = tensor.element_size()
    for size, stride in zip(sizes, strides, strict=True):
        if stride or not size:
            held *= size
    view = tensor.storage_offset(), sizes, strides, tensor.dtype
    return Value(number, view, held, on_host)


def _plain(argument: Any) -> Any:
    """What tells it from others, and is no object of the program's."""
    is_plain = argument is None or isinstance(argument, (bool, int, float, str))
    return argument if is_plain else str(argument)


def _fingerprint(tensor: Any) -> float:
    """Of a tensor on the host, which others may write into: a sum of some of its numbers; NaN,
    which is no other's, where it has none."""
    if tensor.device.type != "cpu":
        return 0.0
    if str(tensor.layout) != "torch.strided":
        return 0.0
    if tensor.requires_grad or not tensor.is_contiguous() or tensor.is_complex():
        return float("nan")
    flat = tensor.detach().view(-1)
    return float(flat[:: max(1, len(flat) // SAMPLED)].double().sum())


def _is_program(file: str, torch: Any) -> bool:
    """Whether code of that file is the program's own."""
    if file.startswith(("<frozen", PACKAGE, torch.__path__[0] + sep)):
        return False
    return not LIBRARIES.search(file)
