"""One change to a run from outside, for `gpuwatch lab`: loaded where GPUWATCH_LAB says which.

The one part of the probe that changes a run on purpose. It is not there in any other.
"""

import functools
import json
import os
import sys
from collections.abc import Callable
from types import FrameType
from typing import Any, Final

from .first_number import numerics_of
from .hooks import replace
from .recorder import Recorder

VARIABLE: Final = "GPUWATCH_LAB"
"""JSON: {"precision": "fp32" | "tf32" | "bf16", "compile": true, "workers": 8, "pin": true,
"batch": 2.0}, each of them or none."""
PREFETCH: Final = 2
"""torch's own, for a loader that had no workers."""
EVERY_LOSS: Final = 4
LOOKS_AT: Final = 2
"""Backwards before it is looked whether products run in bf16: autocast is on behind the first."""


class Change:
    """What is changed in this process. Whatever could not be is noted with the reason."""

    def __init__(self, recorder: Recorder, wanted: dict[str, Any]) -> None:
        self._recorder = recorder
        self._wanted = wanted
        self._torch: Any = sys.modules["torch"]
        self._noted: set[tuple[str, str]] = set()
        self._autocast: Any = None
        self._backwards = 0
        self._depth = 0
        self._roots: list[Any] = []
        self._looking: list[Any] = []
        """Handles of the hooks that look for the outermost modules."""

    def attach(self) -> None:
        """Once torch is there."""
        self._watch_backward()
        optimizer: Any = sys.modules["torch.optim.optimizer"]
        if self._wanted.get("precision") == "bf16":
            optimizer.register_optimizer_step_pre_hook(lambda *_: self._leave_autocast())
            optimizer.register_optimizer_step_post_hook(lambda *_: self._enter_autocast())
            self._watch_autocast()
        if any(name in self._wanted for name in ("workers", "pin", "batch")):
            self._watch_loaders()

    def note(self, name: str, why_not: str = "") -> None:
        """That a change was made, or why not; each once."""
        if (name, why_not) not in self._noted:
            self._noted.add((name, why_not))
            recorder = self._recorder
            recorder.notes.add(recorder.now_ns(), "lab", name, 0.0 if why_not else 1.0, why_not)

    # -- around the backward ---------------------------------------------------------------------

    def _watch_backward(self) -> None:
        autograd: Any = sys.modules["torch.autograd"]
        graph: Any = sys.modules.get("torch.autograd.graph")
        places = [(graph, "_engine_run_backward"), (autograd, "_engine_run_backward")]
        original = getattr(graph, "_engine_run_backward", None)
        if original is None:
            places, original = [(autograd, "backward")], autograd.backward

        @functools.wraps(original)
        def backward(*args: Any, **kwargs: Any) -> Any:
            if self._recorder.owner == 0 or not kwargs.get("accumulate_grad", True):
                return original(*args, **kwargs)
            self._before(args[0] if args else None)
            try:
                return original(*args, **kwargs)
            finally:
                self._after()

        replace(original, backward, places)

    def _before(self, outputs: Any) -> None:
        loss = outputs[0] if isinstance(outputs, (tuple, list)) and outputs else outputs
        if getattr(loss, "numel", int)() == 1:
            numerics_of(self._recorder).log("loss", loss, every=EVERY_LOSS)
        self._leave_autocast()
        if self._wanted.get("precision") == "bf16" and self._backwards == LOOKS_AT:
            self._look_for_bf16(outputs)
        if self._looking:
            for handle in self._looking:
                handle.remove()
            self._looking = []
            self._compile()

    def _after(self) -> None:
        self._backwards += 1
        if self._backwards == 1:
            # Until it trains it may be starting those who do: a launcher, a first rank. What it
            # starts now runs as it is.
            os.environ.pop(VARIABLE, None)
        precision = self._wanted.get("precision")
        if precision == "bf16":
            self._enter_autocast()
        elif precision and self._backwards <= 2:  # over what the program has set since it began
            self._set_precision(precision)
        if self._wanted.get("compile") and self._backwards == 1:
            self._look_for_roots()

    # -- precision -------------------------------------------------------------------------------

    def _set_precision(self, precision: str) -> None:
        torch = self._torch
        torch.set_float32_matmul_precision("high" if precision == "tf32" else "highest")
        torch.backends.cudnn.allow_tf32 = precision == "tf32"
        if torch.is_autocast_enabled():
            self.note(precision, "the program uses autocast")
        self.note(precision)

    def _enter_autocast(self) -> None:
        if self._autocast is None and self._backwards:
            torch = self._torch
            device = "cuda" if torch.cuda.is_initialized() else "cpu"
            self._autocast = torch.autocast(device, dtype=torch.bfloat16)
            self._autocast.__enter__()
            self.note("bf16")

    def _watch_autocast(self) -> None:
        """A loop whose autocast is off by a flag, `autocast(enabled=args.amp)`, means the whole of
        its forward: ours is put on there. Inside a module it keeps something in fp32, and stays."""
        autocast: Any = self._torch.amp.autocast_mode.autocast
        enter = autocast.__enter__

        @functools.wraps(enter)
        def __enter__(context: Any) -> Any:
            if self._autocast is not None and context is not self._autocast:
                if getattr(context, "_enabled", False):
                    self.note("bf16", "the program uses autocast itself")
                elif context.device == self._autocast.device and not _is_in_module():
                    context._enabled = True
                    context.fast_dtype = self._torch.bfloat16
            return enter(context)

        autocast.__enter__ = __enter__

    def _look_for_bf16(self, outputs: Any) -> None:
        """In the graph of a forward that was ours from its beginning."""
        from .settings.autocast import autocast_of

        with self._torch._C.DisableTorchFunction():
            found = autocast_of(outputs)
        if found == "":
            self.note("bf16", "no product was seen to run in it, for a reason that is not known")

    def _leave_autocast(self) -> None:
        autocast, self._autocast = self._autocast, None
        if autocast is not None:
            autocast.__exit__(None, None, None)

    # -- compile ---------------------------------------------------------------------------------

    def _look_for_roots(self) -> None:
        module: Any = sys.modules["torch.nn.modules.module"]

        def entered(net: Any, args: Any) -> None:
            if self._depth == 0 and net.training and next(net.parameters(), None) is not None:
                self._roots.append(net)
            self._depth += 1

        def left(net: Any, args: Any, out: Any) -> None:
            self._depth -= 1

        self._looking = [
            module.register_module_forward_pre_hook(entered),
            module.register_module_forward_hook(left, always_call=True),
        ]

    def _compile(self) -> None:
        roots = list({id(one): one for one in self._roots}.values())
        self._roots = []
        if not roots:
            self.note("compile", "no module with parameters was called")
        for net in roots:
            compiled = getattr(net, "_compiled_call_impl", None) is not None
            if compiled or type(net).__name__ == "OptimizedModule":
                self.note("compile", "it is compiled already")
                continue
            net.compile()
            self.note("compile")

    # -- loaders ---------------------------------------------------------------------------------

    def _watch_loaders(self) -> None:
        loaders: Any = sys.modules["torch.utils.data.dataloader"]
        cls = loaders.DataLoader
        make, begin = cls._get_iterator, cls.__init__
        iterable: Any = loaders.IterableDataset
        wanted = self._wanted

        @functools.wraps(make)
        def _get_iterator(loader: Any) -> Any:
            workers = wanted.get("workers")
            if workers is not None and isinstance(loader.dataset, iterable):
                self.note(f"workers={workers}", "an iterable dataset: workers would repeat it")
            elif workers == 0 and loader.timeout:
                self.note("workers=0", "the loader has a timeout, which is for workers")
            elif workers is not None:
                loader.num_workers = workers
                if workers and loader.prefetch_factor is None:
                    loader.prefetch_factor = PREFETCH
                elif not workers:
                    loader.prefetch_factor = None
                self.note(f"workers={workers}")
            if wanted.get("pin"):
                loader.pin_memory = True
                self.note("pin")
            return make(loader)

        @functools.wraps(begin)
        def __init__(
            loader: Any,
            dataset: Any,
            batch_size: Any = 1,
            shuffle: Any = None,
            sampler: Any = None,
            batch_sampler: Any = None,
            *args: Any,
            **kw: Any,
        ) -> None:
            times = wanted.get("batch")
            own = batch_size is None or batch_sampler is not None
            if times is not None and not own:
                batch_size = max(1, round(batch_size * times))
            begin(loader, dataset, batch_size, shuffle, sampler, batch_sampler, *args, **kw)
            if times is not None:
                why_not = "the program makes its batches itself" if own else ""
                self.note(f"batch={times:g}x", why_not)

        cls._get_iterator, cls.__init__ = _get_iterator, __init__


def _is_in_module() -> bool:
    """Whether the caller's caller runs inside of a module's call."""
    frame: FrameType | None = sys._getframe(2)
    while frame is not None:
        if frame.f_code.co_name == "_call_impl":
            return True
        frame = frame.f_back
    return False


def attacher(recorder: Recorder, wanted: str) -> Callable[[], None]:
    """What to call once torch is there. Raises ValueError for what is no JSON object."""
    made = json.loads(wanted)
    if not isinstance(made, dict):
        raise ValueError(f"{VARIABLE} is no object")

    def attach() -> None:
        Change(recorder, made).attach()

    return attach
