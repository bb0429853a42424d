"""`probe.wrap`: the fetches of an iterable that is not a DataLoader."""

import copy
import operator
import sys
import weakref
from collections.abc import Callable, Iterable, Iterator
from typing import Any, Final, Generic, TypeVar

from .hooks import uncounted
from .loaders import Description, known_length, look_at
from .recorder import Recorder
from .wire.marks import FETCH_END, FETCH_ENTER, FETCH_FAILED, FETCH_LEAVE, ITERATION, LOADER

T = TypeVar("T")

OPERATORS: Final = {
    **{"add": operator.add, "sub": operator.sub, "mul": operator.mul, "mod": operator.mod},
    **{"truediv": operator.truediv, "floordiv": operator.floordiv, "matmul": operator.matmul},
    **{"and": operator.and_, "or": operator.or_, "xor": operator.xor, "pow": operator.pow},
}
IN_PLACE: Final = frozenset(f"__i{word}__" for word in OPERATORS)
SPECIAL: Final = (
    *("len", "length_hint", "bool", "contains", "getitem", "setitem", "delitem", "reversed"),
    *("enter", "exit", "aenter", "aexit", "aiter", "anext", "call"),
    *("eq", "ne", "lt", "le", "gt", "ge", "hash", "repr", "str", "format", "dir"),
    *(form + word for word in OPERATORS for form in ("", "r", "i")),
)
"""What Python asks a type for and not the object: a stand-in has those that the wrapped one has."""


class Wrapped(Generic[T]):
    """Stands in for an iterable or iterator: the same items, attributes and operations.

    Besides, `next` works on it where the wrapped object is no iterator yet. Pickled, it is what it
    wraps: nobody times the fetches of another process.
    """

    __slots__ = ("__described", "__inner", "__iterator", "__recorder", "__source", "__weakref__")

    def __new__(cls, inner: Iterable[T], *_: Any) -> "Wrapped[T]":
        return object.__new__(_class_for(type(inner)))

    def __init__(
        self, inner: Iterable[T], recorder: Callable[[], Recorder | None], source: Any = None
    ) -> None:
        """`source`: of an iterator what it came from."""
        put = object.__setattr__
        put(self, "_Wrapped__inner", inner)
        put(self, "_Wrapped__recorder", recorder)
        put(self, "_Wrapped__source", inner if source is None else source)
        put(self, "_Wrapped__iterator", None)
        put(self, "_Wrapped__described", False)

    @uncounted
    def __iter__(self) -> "Wrapped[T]":
        iterator = iter(self.__inner)
        is_itself = iterator is self.__inner
        begun = self if is_itself else Wrapped(iterator, self.__recorder, self.__source)
        recorder = self.__recorder()
        if recorder is not None and recorder.on:
            recorder.mark(ITERATION, detail=id(begun))
        object.__setattr__(begun, "_Wrapped__iterator", iterator)
        return begun

    @uncounted
    def __next__(self) -> T:
        iterator: Iterator[T] | None = self.__iterator
        if iterator is None:
            iterator = iter(self.__inner)
            object.__setattr__(self, "_Wrapped__iterator", iterator)
        recorder = self.__recorder()
        if recorder is None or not recorder.on:
            return next(iterator)
        if not self.__described:
            object.__setattr__(self, "_Wrapped__described", True)
            recorder.mark(LOADER, self.__source, id(self), _describe)
            recorder.look_with(look_at)
        recorder.mark(FETCH_ENTER, detail=id(self))
        try:
            batch = next(iterator)
        except StopIteration:
            recorder.mark(FETCH_END)
            raise
        except BaseException:
            recorder.mark(FETCH_FAILED)
            raise
        recorder.mark(FETCH_LEAVE, batch)
        return batch

    @uncounted
    def __getattr__(self, name: str) -> Any:
        return getattr(self.__inner, name)

    @uncounted
    def __setattr__(self, name: str, value: Any) -> None:
        setattr(self.__inner, name, value)

    @uncounted
    def __delattr__(self, name: str) -> None:
        delattr(self.__inner, name)

    @property
    def __class__(self) -> Any:
        """For `isinstance`, which then holds for both."""
        return type(self.__inner)

    @__class__.setter
    def __class__(self, value: Any) -> None:
        object.__setattr__(self.__inner, "__class__", value)

    def __copy__(self) -> "Wrapped[T]":
        return Wrapped(copy.copy(self.__inner), self.__recorder)

    def __deepcopy__(self, memo: dict[int, Any]) -> "Wrapped[T]":
        return Wrapped(copy.deepcopy(self.__inner, memo), self.__recorder)

    def __reduce_ex__(self, protocol: Any) -> Any:
        return self.__inner.__reduce_ex__(protocol)


_classes: "weakref.WeakKeyDictionary[type, type]" = weakref.WeakKeyDictionary()
"""By the type that is wrapped; a program may make one for each epoch."""


def _class_for(kind: type) -> type:
    """`Wrapped` with the special methods that a type has, and no others: `bool(w)` must not ask for
    a length that there is not."""
    found = _classes.get(kind)
    if found is None:
        methods: dict[str, Any] = {"__slots__": ()}
        for name in (f"__{word}__" for word in SPECIAL):
            base = next((base for base in kind.__mro__ if name in vars(base)), None)
            if base is not None:
                # None says that it is not to be had: the hash of a list
                methods[name] = None if vars(base)[name] is None else _passed_on(name)
        for word, operate in OPERATORS.items():
            if f"__{word}__" in methods:
                methods.setdefault(f"__r{word}__", _reflected(operate))
        found = _classes[kind] = type("Wrapped", (Wrapped,), methods)
    return found


def _passed_on(name: str) -> Callable[..., Any]:
    def special(self: Any, *args: Any, **kwargs: Any) -> Any:
        inner = _inner(self)
        result = getattr(inner, name)(*map(_inner, args), **kwargs)
        return self if result is inner and (name == "__enter__" or name in IN_PLACE) else result

    special.__name__ = name
    return uncounted(special)


def _reflected(operate: Callable[[Any, Any], Any]) -> Callable[..., Any]:
    """`[0] + wrapped`: a list adds lists alone, and asks the other side for the rest."""

    def reflected(self: Any, other: Any) -> Any:
        return operate(other, _inner(self))

    return uncounted(reflected)


def _inner(one: Any) -> Any:
    return one._Wrapped__inner if issubclass(type(one), Wrapped) else one


def _describe(inner: Any) -> Description:
    """All that can be known of a foreign pipeline: that it is one."""
    name = type(inner).__name__
    length = known_length(inner)
    row = (id(inner), "wrap", None, None, False, False, None, length, (), name)
    torch = sys.modules.get("torch")
    return row, torch is None or bool(torch.is_grad_enabled())
