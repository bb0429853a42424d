"""Takes down each operation of one step, by a dispatch mode on the training thread.

Nothing is decomposed, so the same kernels run and the losses stay. Tensors of the program's own
types are asked nothing, and what is compiled or captured meanwhile sees none of it.
"""

import re
import sys
from collections.abc import Callable, Iterator
from os import sep
from os.path import join
from types import CodeType, FrameType
from typing import Any, Final, NamedTuple
from weakref import ref

from ..circuit_breaker import PACKAGE, is_users
from ..device.events import Events
from ..dispatch_modes import OTHERS
from ..loaders import past_overrides
from .lasting import Code, Fields, Known, Leaves
from .operation import NOWHERE, TENSOR, Operation, Place, Step, Value, Work, is_all_on_host
from .operators import MATRIX_PRODUCTS, Operator, operator_of

MOST_OPERATIONS: Final = 20_000
MOST_OWN_NS: Final = 800_000_000
"""Of a step, what taking it down costs: then no more of it is."""
LIBRARIES: Final = re.compile(r"[/\\](site|dist)-packages[/\\]|[/\\]lib[/\\]python3[.0-9]*[/\\]")
TOO_MUCH: Final = "too many operations"
NOTHING: Final = frozenset[int]()
RECURRENT: Final = join("nn", "modules", "rnn.py")
ATTENTION: Final = "multi_head_attention_forward"
"""PyTorch's file and function of layers that hold others."""
PRINTED: Final = frozenset({"dtype", "device", "layout", "memory_format"})
"""PyTorch's types of arguments that are as good as their text."""


class Taken(NamedTuple):
    """An operation as it was taken down, before a device's times are known."""

    operator: Operator
    place: int
    reads: tuple[Fields, ...]
    makes: tuple[Fields, ...]
    writes: frozenset[int]
    arguments: Any
    node: int
    of_node: int
    task: int
    """These as `Operation` has them."""
    is_view: bool
    made: tuple[Any, ...]
    """Weak references to what it made."""
    host_ns: int
    events: Any


class DeviceTimes:
    """Events of a device around each operation."""

    def __init__(self, events: Events) -> None:
        self._events = events
        self._streams: dict[tuple[int, int], Any] = {}

    def is_captured(self) -> bool:
        """What is put on the current stream becomes part of a graph."""
        return self._events.capturing()

    def begin(self) -> Any:
        """An event before it."""
        return self._put()

    def end(self, begun: Any) -> Any:
        """Both events."""
        return begun, self._put()

    def _put(self) -> Any:
        events = self._events
        device = events.device()
        key = device, events.handle(device)
        stream = self._streams.get(key)
        if stream is None:
            stream = self._streams[key] = events.stream(device)
        event = events.make()
        events.record(event, stream)
        return event

    def has_passed(self, taken: list[Taken]) -> bool:
        """The device is behind all of them."""
        last = taken[-1].events  # of the others some may be on other streams
        return last is None or (
            self._events.query(last[1])
            and all(self._events.query(one.events[1]) for one in taken if one.events)
        )

    def times(self, taken: list[Taken]) -> Any:
        """What each took on the device, beyond what the shortest did, which has nothing there."""
        took = {}
        for one in taken:
            if one.events:
                took[id(one)] = round(self._events.elapsed_ms(*one.events) * 1e6)
        least = min(took.values(), default=0)
        return lambda one: max(0, took.get(id(one), 0) - least)


def tracer(known: Known, now_ns: Callable[[], int], around: DeviceTimes | None = None) -> Any:
    """The mode. `around` times each operation on a device; None on a CPU."""
    torch: Any = sys.modules["torch"]
    from torch.utils._python_dispatch import TorchDispatchMode

    plain_types = (torch.Tensor, torch.nn.Parameter)
    current_node = torch._C._current_autograd_node
    next_number = torch.autograd._get_sequence_nr
    with_gradients = torch.is_grad_enabled
    current_task = torch._C._current_graph_task_id
    compiles_frames = torch._C._dynamo.eval_frame.set_eval_frame

    function_modes = torch._C._len_torch_function_stack

    class Tracer(TorchDispatchMode):
        supports_higher_order_operators = True

        def __init__(self) -> None:
            super().__init__()  # type: ignore[no-untyped-call]
            self.taken: list[Taken] = []
            self.places: dict[tuple[CodeType, int], int] = {}
            self.nodes: dict[tuple[int, str], tuple[int, int]] = {}
            """Number of ours and place of each node of the graph, by its number and operator: two
            threads may give one number."""
            self.leaves = Leaves(known, torch)
            self.first_number = next_number()
            self.own_ns = 0
            self.is_off = False
            """Where the loader or the optimizer is at work."""
            self.went_back = False
            """A backward has asked for some of it."""
            self.why_not = ""
            self.calls_others = False
            self.closed: set[int] = set()
            """As `Step` has them."""

        @classmethod
        def _should_skip_dynamo(cls) -> bool:
            return False  # else torch imports all of dynamo for it, which takes seconds

        def __torch_dispatch__(
            self, func: Any, types: Any, args: Any = (), kwargs: Any = None
        ) -> Any:
            kwargs = kwargs or {}
            if self.is_off or self.why_not or not hasattr(func, "_schema"):
                return func(*args, **kwargs)
            begun_ns = now_ns()
            before = self._looked(self._before, (func, args, kwargs))
            called_ns = now_ns()
            out = func(*args, **kwargs)
            ended_ns = now_ns()
            if before is not None:
                self._looked(self._after, (before, out, ended_ns - called_ns))
            self.own_ns += called_ns - begun_ns + now_ns() - ended_ns
            return out

        def _looked(self, look: Callable[[Any], Any], what: Any) -> Any:
            """None where it fails, as of a tensor that has no storage: no more is taken down, and
            the run goes on. Plain tensors have no overrides, but a mode of the program's may be on;
            and dynamo has no business in here."""
            compiling = compiles_frames(None)
            try:
                return past_overrides(torch, look, what) if function_modes() else look(what)
            except Exception as error:
                if is_users(error):
                    raise
                self.why_not = f"{type(error).__name__}: {str(error)[:200]}"
                return None
            finally:
                compiles_frames(compiling)

        def _before(self, called: tuple[Any, Any, Any]) -> Any:
            """What is known before the call, with the event before it; None of too many."""
            func, args, kwargs = called
            if len(self.taken) >= MOST_OPERATIONS or self.own_ns > MOST_OWN_NS:
                self.why_not = TOO_MUCH
            elif around is not None and around.is_captured():
                self.why_not = "a graph is captured"  # our events would be part of it
            if self.why_not:
                return None
            operator = known.operators.get(func)
            if operator is None:
                operator = known.operators[func] = operator_of(func)
            tensors: list[Any] = []
            arguments = [_plain(one, plain_types, tensors) for one in args]
            arguments += [(key, _plain(one, plain_types, tensors)) for key, one in kwargs.items()]
            node = current_node()
            of_node, place = NOWHERE, NOWHERE
            if node is None:
                place = self._asks()
            else:
                self.went_back = True
                of_node, place = self._node_of(node._sequence_nr(), _plain_name(node.name()))
            made = self._node_made(tensors, operator.plain, place, node is None)
            self.calls_others = self.calls_others or operator.name in OTHERS
            reads = tuple(map(self.leaves.read, tensors))
            if operator.name in MATRIX_PRODUCTS:
                self.leaves.count(tensors, reads)
            writes = NOTHING
            if operator.written or operator.written_by_name:
                named = (kwargs.get(one) for one in operator.written_by_name)
                placed = (args[one] for one in operator.written if one < len(args))
                numbers = {id(one): value[0] for one, value in zip(tensors, reads, strict=True)}
                writes = frozenset(
                    numbers[id(one)]
                    for written in (*placed, *named)
                    for one in (written if isinstance(written, (list, tuple)) else (written,))
                    if type(one) in plain_types
                )
            task = NOWHERE if node is None else current_task()
            asked = (operator.overload, *arguments)
            event = None if around is None else around.begin()
            return operator, place, reads, writes, asked, made, of_node, task, event

        def _node_of(self, number: int, name: str) -> tuple[int, int]:
            """The node whose backward is under way, and its place; of one that was made before the
            step a number of its own."""
            found = self.nodes.get((number, name)) or self.nodes.get((number, ""))
            if found is None:
                found = self.nodes[number, name] = known.next(), NOWHERE
            return found

        def _node_made(self, tensors: list[Any], name: str, place: int, forward: bool) -> int:
            """The node that was made for an operation, which has the last number; NOWHERE where
            that is another's, as of one that nothing is learned through."""
            if not with_gradients() or not any(one.requires_grad for one in tensors):
                return NOWHERE
            number = next_number() - 1
            if (number, name) in self.nodes:
                return NOWHERE
            if forward and (number < self.first_number or (number, "") in self.nodes):
                return NOWHERE
            made = known.next()
            self.nodes[number, name] = made, place
            if forward:
                self.nodes[number, ""] = made, place
            return made

        def _after(self, called: tuple[Any, Any, int]) -> None:
            before, out, host_ns = called
            operator, place, reads, writes, arguments, node, of_node, task, event = before
            events = None if around is None else around.end(event)
            results = out if isinstance(out, (list, tuple)) else (out,)
            results = [one for one in results if type(one) in plain_types]
            held = {number for number, *_ in reads}
            makes = tuple([self.leaves.made(one, held) for one in results])
            is_view = bool(makes) and not writes and all(number in held for number, *_ in makes)
            self.leaves.written |= writes
            asked = operator, place, reads, makes, writes, arguments, node, of_node, task
            self.taken.append(Taken(*asked, is_view, tuple(map(ref, results)), host_ns, events))

        def _asks(self) -> int:
            """The innermost line of the program."""
            frame: FrameType | None = sys._getframe(3)
            is_closed = False
            while frame is not None:
                code = frame.f_code
                whose = known.code.get(code)
                if whose is None:
                    whose = known.code[code] = _whose(code, torch)
                if whose is Code.PROGRAMS:
                    place = self.places.setdefault((code, frame.f_lineno), len(self.places))
                    if is_closed:
                        self.closed.add(place)
                    return place
                is_closed = is_closed or whose is Code.CLOSED
                frame = frame.f_back
            return NOWHERE

    return Tracer()


def bears_subclasses() -> bool:
    """Whether a tensor of the program's own type can be made below a mode: torch 2.4 has made a
    plain one of it by then, and raises. The mode lies on this thread's stack alone: its `with`
    would change what torch keeps of all threads, beside modes of the program's."""
    torch: Any = sys.modules["torch"]
    own: Any = type("Own", (torch.Tensor,), {})
    plain = torch.zeros(1, device="cpu")
    try:
        torch._C._push_on_torch_dispatch_stack(tracer(Known(), int))
        try:
            plain.as_subclass(own)
        finally:
            torch._C._pop_torch_dispatch_stack(None)
    except Exception as error:
        # Whatever it is, no step can be traced: on the publisher's thread it would end watching.
        if is_users(error):
            raise
        return False
    return True


def forward_of(mode: Any) -> Step:
    """What was taken down before the backward, by the host's clock alone."""
    return Step(tuple(_rows(mode.taken, lambda _: 0)), _places(mode), frozenset(), {})


def step_of(mode: Any, ns_of: Callable[[Taken], int]) -> Step:
    """What was taken down, as the step ends, with what each took by `ns_of`. A device has passed
    all of it."""
    operations = tuple(_rows(mode.taken, ns_of))
    if not is_all_on_host(operations):
        # An idle device's events around it are apart by what the host took.
        operations = tuple(one._replace(ns=0) if one.is_on_host else one for one in operations)
    lasting, filled = mode.leaves.ended()
    return Step(operations, _places(mode), lasting, filled, frozenset(mode.closed))


def _places(mode: Any) -> tuple[Place, ...]:
    return tuple(
        Place(code.co_filename, getattr(code, "co_qualname", code.co_name), line)
        for code, line in mode.places
    )


def _rows(taken: list[Taken], ns_of: Callable[[Taken], int]) -> Iterator[Operation]:
    values: dict[Fields, Value] = {}

    def of(fields: tuple[Fields, ...]) -> tuple[Value, ...]:
        return tuple([values.get(one) or values.setdefault(one, Value(*one)) for one in fields])

    for one in taken:
        operator = one.operator
        yield Operation(
            name=operator.name,
            work=Work.VIEW if one.is_view else operator.work,
            place=one.place,
            reads=of(one.reads),
            makes=of(one.makes),
            writes=one.writes,
            arguments=one.arguments,
            is_random=operator.is_random,
            node=one.node,
            of_node=one.of_node,
            task=one.task,
            is_kept=any(made() is not None for made in one.made),
            ns=ns_of(one),
            host_ns=one.host_ns,
        )


def _plain(argument: Any, plain_types: tuple[Any, ...], tensors: list[Any]) -> Any:
    """What tells it from others, and is no object of the program's; plain tensors are taken out."""
    if type(argument) in plain_types:
        tensors.append(argument)
        return TENSOR
    if isinstance(argument, (list, tuple)):
        return tuple(_plain(one, plain_types, tensors) for one in argument)
    if argument is None or isinstance(argument, (bool, int, float, complex, str)):
        return type(argument).__name__, argument
    kind = type(argument)
    # Of others no text is asked: a storage would print all of its bytes, one by one from the GPU.
    is_printed = kind.__module__ == "torch" and kind.__name__ in PRINTED
    return str(argument) if is_printed else id(argument)


def _plain_name(node: str) -> str:
    """ "AddmmBackward0" -> "addmm", "TanhBackwardBackward0" -> "tanhbackward"."""
    return node.rpartition("Backward")[0].lower()


def _whose(code: CodeType, torch: Any) -> Code:
    """Whose a function is."""
    file = code.co_filename
    if file.startswith(torch.__path__[0] + sep):
        is_closed = file.endswith(RECURRENT) or code.co_name == ATTENTION
        return Code.CLOSED if is_closed else Code.LIBRARYS
    is_library = file.startswith(("<frozen", PACKAGE)) or LIBRARIES.search(file)
    return Code.LIBRARYS if is_library else Code.PROGRAMS
