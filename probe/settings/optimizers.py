"""The optimizers that were seen to step: what they update and how, looked at once each."""

import sys
from collections.abc import Callable, Collection, Iterator
from typing import Any, Final, NamedTuple
from weakref import ref

from ..loaders import runs_no_code
from .flags import type_name
from .layers import VECTOR
from .tables import TABLE, tall

MOST_KNOWN: Final = 8
"""Optimizers remembered; beyond that the one seen first is looked at anew."""
MOST_FRAMES: Final = 12
"""Callers that are looked at: a scaler's is the third, with a scheduler's and a trainer's wrapper
between them the sixth."""
SILENT: Final = 100
"""Steps of others that are seen without one of an optimizer: then it is of an earlier stage. One
that steps once for twenty steps of another is missed for so long by chance in one case of 130."""
REFUSES_SPARSE: Final = {
    "SGD": ("momentum", "weight_decay", "fused"),
    "Adagrad": ("weight_decay", "fused"),
}
"""Settings with which these take no sparse gradients: weight decay raises a RuntimeError, and the
momentum of sparse gradients is sparse itself and grows with each step (on a CPU 3 ms became 26 in
sixty). The other optimizers of `torch.optim` but SparseAdam take none at all."""
SCALER_CALLS: Final = "_maybe_opt_step"
"""GradScaler's method that steps an optimizer: reached only while the scaler is enabled."""
BY_RATE: Final = (
    *("Adadelta", "Adafactor", "Adagrad", "Adam", "Adamax", "AdamW", "ASGD", "Muon", "NAdam"),
    *("RAdam", "RMSprop", "SGD", "SparseAdam"),
)
"""Classes of torch.optim that multiply by the learning rate whatever they do to a parameter, its
decay too (read in 2.13). Rprop takes it for its first step alone, and LBFGS to search from."""
LOOKS: Final = 10
"""Of two a second, until groups are compared again: 5 us a group."""
MOST_GROUPS: Final = 512
PLAIN: Final = (bool, int, float, str, type(None))
OWN: Final = ("params", "param_names", "name")
"""What each group has for itself."""
RESTS: Final = 8
"""Steps in a row that are seen with a learning rate of 0, two in each second, before it is taken to
stay so: a warm-up from 0 has one, and a group that takes turns is hardly met at 0 so often."""


class _Known:
    """One optimizer, and one gradient of its last look."""

    __slots__ = (
        *("facts", "gradient", "groups", "kept", "looks", "optimizer", "parameter", "rests"),
        *("seen", "there"),
    )

    def __init__(self, optimizer: Any) -> None:
        self.optimizer: Callable[[], Any] = ref(optimizer)
        self.groups = len(optimizer.param_groups)
        self.facts = facts_of(optimizer)
        self.parameter: Callable[[], Any] = lambda: None
        self.gradient: Callable[[], Any] = lambda: None
        self.there = False
        """The gradient was there as the next backward began."""
        self.kept: bool | None = None
        self.looks = 0
        self.seen = 0
        """How many steps were seen of all as it stepped last."""
        self.rests: dict[int, int] = {}
        """By the number of each group, how many of the last steps in a row left it as it was."""

    def look(self, optimizer: Any) -> None:
        """Is last time's gradient still the same tensor? It is where `zero_grad` fills with zeros;
        where it drops gradients, each backward makes new ones. DDP may put the same views back:
        so it must have been there before the backward as well."""
        before, held = self.parameter(), self.gradient()
        if before is not None and before.grad is not None:
            self.kept = self.there and before.grad is held
        parameter = next(_with_gradient(optimizer), None)
        if parameter is None:
            self.parameter = self.gradient = lambda: None
        else:
            self.parameter, self.gradient = ref(parameter), ref(parameter.grad)
        self.there = False
        self.looks += 1
        # Schedules of their own may tell groups apart that began as one.
        if self.facts["alike_groups"] and self.looks % LOOKS == 0:
            now = alike_groups(optimizer) or 0
            self.facts["alike_groups"] = min(self.facts["alike_groups"], now)
        for at, group in enumerate(optimizer.param_groups):
            self.rests[at] = self.rests.get(at, 0) + 1 if _rests(optimizer, group) else 0


class Optimizers:
    """Holds none of them alive. Belongs to the training thread."""

    def __init__(self) -> None:
        self._known: dict[int, _Known] = {}
        self._last: _Known | None = None
        self._seen = 0
        self._largest: _Known | None = None
        """The one that is reported."""
        self._tables: list[Callable[[], Any]] = []

    def stepping(self, optimizer: Any) -> dict[str, Any]:
        """What an optimizer shows that begins to step. Of several that step the one with the most
        bytes is reported, with the parameters on the CPU of all."""
        key = id(optimizer)
        known = self._known.get(key)
        if known is None or known.optimizer() is not optimizer:
            self._known = {k: one for k, one in self._known.items() if one.optimizer() is not None}
            if len(self._known) >= MOST_KNOWN:
                del self._known[next(iter(self._known))]
            known = self._known[key] = _Known(optimizer)
        elif known.groups != len(optimizer.param_groups):
            known.groups, known.facts = len(optimizer.param_groups), facts_of(optimizer)
            self._largest = None
        known.look(optimizer)
        self._seen += 1
        known.seen, self._last = self._seen, known
        using = self._in_use()
        largest = max(using, key=_bytes_of)
        return {
            **self._tables_of(largest),
            **largest.facts,
            "host_parameters": sum(one.facts["host_parameters"] for one in using),
            "scaler": _is_scaled(optimizer),
            "set_to_none": None if largest.kept is None else not largest.kept,
        }

    def take_tables(self) -> tuple[list[Any], int]:
        """Of the optimizer that is reported what may be embeddings' tables, and the bytes that it
        updates: once, for the walk that looks for their use is long."""
        if self._largest is None:
            return [], 0
        tables = [one for table in self._tables if (one := table()) is not None]
        self._tables = []
        return tables, _bytes_of(self._largest)

    def _tables_of(self, largest: _Known) -> dict[str, Any]:
        """What is known of the tables as it is reported: nothing where it was not before."""
        if largest is self._largest:
            return {}
        optimizer, self._largest = largest.optimizer(), largest
        self._tables = [] if optimizer is None else _tables_in(optimizer, largest.facts)
        return dict.fromkeys(TABLE)

    def owners(self) -> dict[int, int]:
        """The known optimizer that updates each parameter, by identities."""
        return self._having(resting=False)

    def resting(self) -> Collection[int]:
        """The parameters that an optimizer has and leaves as they are: their learning rate is 0."""
        return self._having(resting=True)

    @property
    def are_settled(self) -> bool:
        """A learning rate that is 0 now was so for long enough not to be a warm-up's."""
        there = [one.rests for one in self._in_use() if one.optimizer() is not None]
        return not any(0 < count < RESTS for rests in there for count in rests.values())

    def _in_use(self) -> list[_Known]:
        return [one for one in self._known.values() if self._seen - one.seen < SILENT]

    def _having(self, resting: bool) -> dict[int, int]:
        there = [(one.rests, one.optimizer()) for one in self._known.values()]
        return {
            id(parameter): id(optimizer)
            for rests, optimizer in there
            if optimizer is not None
            for at, group in enumerate(optimizer.param_groups)
            if (rests.get(at, 0) > 0) is resting
            for parameter in group["params"]
        }

    def some(self) -> dict[int, Any]:
        """Of each known optimizer one parameter that had a gradient as it stepped last."""
        found = {key: one.parameter() for key, one in self._known.items()}
        return {key: one for key, one in found.items() if one is not None and one.is_leaf}

    def backward(self) -> None:
        """A backward begins: the first after a step shows whether gradients outlive it."""
        if self._last is not None:
            parameter = self._last.parameter()
            self._last.there = parameter is not None and parameter.grad is not None
            self._last = None


def _rests(optimizer: Any, group: dict[str, Any]) -> bool:
    """Its step leaves this group as it is. A rate that is a tensor is not read: on a GPU that
    waits."""
    kind, rate = type(optimizer), group.get("lr")
    by_rate = kind.__name__ in BY_RATE and kind.__module__.startswith("torch.optim.")
    return by_rate and isinstance(rate, (int, float)) and rate == 0


def _bytes_of(known: _Known) -> int:
    return int(known.facts["parameter_bytes"])


def _tables_in(optimizer: Any, facts: dict[str, Any]) -> list[Callable[[], Any]]:
    is_lazy: Any = sys.modules["torch.nn.parameter"].is_lazy
    refuses = REFUSES_SPARSE.get(facts["optimizer"], ())
    groups = (one for one in optimizer.param_groups if not any(map(one.get, refuses)))
    every = (one for group in groups for one in group["params"])
    found = tall((one for one in every if not is_lazy(one)), facts["parameter_bytes"])
    return [ref(one) for one in found]


def facts_of(optimizer: Any) -> dict[str, Any]:
    """What an optimizer's groups hold. 1 us a tensor and 5 us a group, once."""
    is_lazy: Any = sys.modules["torch.nn.parameter"].is_lazy
    bytes_of: dict[tuple[Any, Any], int] = {}
    parameters = on_host = filters = depthwise = breakable = 0
    volumes = sparse = False
    for group in optimizer.param_groups:
        for parameter in group["params"]:
            if is_lazy(parameter):
                continue  # of a module that was never called: it has no size
            parameters += 1
            on_host += parameter.device.type == "cpu"
            volumes |= parameter.dim() == 5
            gradient = parameter.grad if parameter.is_leaf else None
            sparse |= gradient is not None and gradient.is_sparse
            if parameter.dim() == 4:
                plain, alone, may_break = _filter(parameter)
                filters += plain
                depthwise += alone
                breakable += may_break and parameter.device.type == "cpu"
            place = parameter.dtype, parameter.device
            size = parameter.numel() * parameter.element_size()
            bytes_of[place] = bytes_of.get(place, 0) + size
    dtype, device = max(bytes_of, key=lambda place: bytes_of[place], default=(None, None))
    return {
        "optimizer": type(optimizer).__name__,
        "groups": len(optimizer.param_groups),
        "alike_groups": alike_groups(optimizer),
        "foreach": _set_to(optimizer, "foreach"),
        "fused": _set_to(optimizer, "fused"),
        "fusible": not sparse and _is_fusible(optimizer),
        "parameters": parameters,
        "parameter_bytes": sum(bytes_of.values()),
        "parameter_dtype": None if dtype is None else type_name(dtype),
        "parameter_device": None if device is None else device.type,
        "capability": _capability(device),
        "host_parameters": on_host,
        "filters": 0 if volumes else filters,
        "depthwise_filters": depthwise,
        "breakable_filters": breakable,
    }


def alike_groups(optimizer: Any) -> int | None:
    """Groups of parameters that could be one with another, whose settings are the same. None of
    more than `MOST_GROUPS`, 5 us each."""
    groups = optimizer.param_groups
    if len(groups) > MOST_GROUPS:
        return None
    return len(groups) - len({_settings_of(group) for group in groups})


def _settings_of(group: dict[Any, Any]) -> frozenset[Any]:
    """Only names, numbers, texts and tuples of them are compared: anything else, a key too, is
    another one unless it is the same object."""
    return frozenset(
        (name if type(name) is str else id(name), _compared(value))
        for name, value in group.items()
        if type(name) is not str or name not in OWN
    )


def _compared(value: Any) -> Any:
    kind = type(value)
    is_plain = kind in PLAIN or (kind is tuple and all(type(one) in PLAIN for one in value))
    return (kind, value) if is_plain else id(value)


class Filter(NamedTuple):
    """What a tensor of four dimensions is to the order of channels."""

    is_plain: bool = False
    """A filter whose channels do not come last."""
    is_alone: bool = False
    """It has one channel in, which has no order."""
    may_break: bool = False
    """By channels_last, if it has strides, which a weight does not show
    (`layers.Convolution.is_broken_in_last`)."""


def _filter(weight: Any) -> Filter:
    """Those that are one point wide, as a text's, lose by channels_last (DPCNN: 0.3x), and of
    volumes it is an error."""
    torch: Any = sys.modules["torch"]
    if not runs_no_code(type(weight), torch) or weight.layout is not torch.strided:
        return Filter()
    if weight.is_nested:
        return Filter()
    _, channels, *points = torch.Tensor.size(weight)
    if min(points) < 2:
        return Filter(may_break=max(points) == 1 and 1 < channels < VECTOR)
    return Filter(channels > 1 and torch.Tensor.stride(weight)[1] != 1, channels == 1)


def _set_to(optimizer: Any, name: str) -> bool | None:
    value = optimizer.param_groups[0].get(name) if optimizer.param_groups else None
    return value if isinstance(value, bool) else None


def _is_fusible(optimizer: Any) -> bool:
    """It takes `fused=True`: that is among its settings, which it is not in a class of somebody's
    own, whatever its name, and no other setting excludes it."""
    groups = optimizer.param_groups
    return all("fused" in one and one.get("differentiable") is not True for one in groups)


def _capability(device: Any) -> int | None:
    """80 for an A100, 90 for an H200; None on AMD's devices, which count otherwise."""
    torch: Any = sys.modules["torch"]
    if device is None or device.type != "cuda" or torch.version.hip is not None:
        return None
    major, minor = torch.cuda.get_device_capability(device)
    return int(10 * major + minor)


def _with_gradient(optimizer: Any) -> Iterator[Any]:
    for group in optimizer.param_groups:
        for parameter in group["params"][:MOST_KNOWN]:
            if parameter.is_leaf and parameter.grad is not None:  # PyTorch warns of the others
                yield parameter


def _is_scaled(optimizer: Any) -> bool | None:
    """A GradScaler calls this step: it hands an optimizer that can scale by itself (a fused one)
    what it found, and stands among the callers of any other. None where its method has another
    name in this torch."""
    if getattr(optimizer, "found_inf", None) is not None:
        return True
    scaler: Any = sys.modules.get("torch.amp.grad_scaler")
    if not hasattr(getattr(scaler, "GradScaler", None), SCALER_CALLS):
        return None
    frame = sys._getframe(1)
    for _ in range(MOST_FRAMES):
        if frame.f_back is None:
            return False
        frame = frame.f_back
        if frame.f_code.co_name == SCALER_CALLS:
            return True
    return False
