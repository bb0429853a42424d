"""Samples the settings of one turn of the loop: from one step of an optimizer to its next.

The publisher asks for it. The hooks of backward and optimizer call it while the recorder holds it,
so that between two samples a loop pays for two reads of an attribute (20 ns each). With warm
caches, once a second: 4 us for an optimizer, 2 us for the switches; every ten seconds 30 to 60 us
for the graph. Right after the forward of a 12-layer transformer, which has filled the caches: 75 us
and 200 us. The first sample of an optimizer takes 1 us a tensor more; where tall parameters have
most of its bytes, tables are looked for once, for 10 ms at the most (`tables`). On a CPU the
operations of a graph are counted in a thousandth of the time at the most (`operations`), and its
layers are tried in other formats once, in a twelfth of some seconds (`formats`). With several
optimizers a turn has a whole way from step to step of each (`cleared`).

The training thread itself loads this package, at the first sample: most runs are never watched.
"""

import sys
from typing import Any, Final

from ..loaders import past_overrides
from ..recorder import Recorder
from ..wire.marks import BACKWARD_ENTER, OPTIMIZER_ENTER
from .autocast import autocast_of, first_of, nodes_below, parameter_type_of
from .backwards import Backwards
from .cleared import CLEARED, Cleared, Owners
from .flags import flags
from .formats import FORMATS, Formats
from .operations import Operations
from .optimizers import Optimizers
from .products import UNUSED_ROWS
from .tables import TABLE, tables_of
from .unused import UNUSED, Unused
from .users import MOST_NODES

AGAIN_NS: Final = 500_000_000
"""Between two samples at a backward, however long the turn. One is asked for each second: half of
that, for no two seconds are alike."""
WALK_AGAIN_NS: Final = 10_000_000_000
"""Between two walks through a graph, the one sample that costs more than a few microseconds, and
between two changes of the optimizers that begin such walks anew."""


class SettingsSampler:
    """Every method but `ask` belongs to the training thread."""

    def __init__(self, recorder: Recorder) -> None:
        self.reading: dict[str, Any] = {}
        """As it was last seen, by the names of `settings.Settings`: for the publisher, replaced as
        a whole."""
        self._recorder = recorder
        self._optimizers = Optimizers()
        self._unused = Unused()
        self._cleared = Cleared()
        self._owners: Owners = {}
        """Of the parameters that those two are about."""
        self._owned_ns = -WALK_AGAIN_NS
        self._operations = Operations(recorder.now_ns)
        self._several = Backwards(recorder.now_ns)
        self._formats = Formats(recorder.now_ns)
        self._first: int | None = None
        """Identity of the optimizer with whose step the turn began; None before."""
        self._backwards = 0
        """Since then."""
        self._since_step: int | None = None
        """Backwards since any optimizer stepped; None where that was not seen."""
        self._put_off = False
        """The turn's look, until a backward behind a step that was seen."""
        self._rows: Any = None
        """Unused rows of the last graph that was looked at, until it is known that no other
        backward of the step goes through it."""
        self._has_looked = False
        """At a graph of this step."""
        self._looked_ns = self._walked_ns = -WALK_AGAIN_NS

    def ask(self) -> None:
        """Sample the next turn of the loop. Called by the publisher."""
        if self._recorder.on and not self._recorder.samples_settings:
            self._since_step, self._put_off = None, False
            self._recorder.sample_settings_with(self.at)

    def at(self, kind: int, what: Any) -> None:
        """An optimizer begins to step, or a backward from some tensors begins or ends. The recorder
        keeps what fails in here from the user's loop; no code of a tensor's subclass or mode runs.
        """
        looks = {OPTIMIZER_ENTER: self._at_step, BACKWARD_ENTER: self._at_backward}
        past_overrides(sys.modules["torch"], looks.get(kind, self._at_end), what)

    def _at_step(self, optimizer: Any) -> None:
        if self._first is None:
            self._first, self._backwards = id(optimizer), 0
            self._cleared.begin()
        elif self._first == id(optimizer) and not self._backwards:
            return  # a subclass that calls its parent's step
        if self._since_step == 1:
            self.reading = {**self.reading, UNUSED_ROWS: self._rows}
        elif self._has_looked:
            self._operations.forget_rows()
        self._has_looked = False
        self.reading = {**self.reading, **self._several.stepping(self._since_step or 0)}
        self._since_step = 0
        found = {} if self._cleared.is_known else self._cleared.stepping(optimizer)
        if self._backwards and self._cleared.is_over and self._first == id(optimizer):
            self._first = None
            self._recorder.sample_settings_with(None)
        self.reading = {**self.reading, **self._optimizers.stepping(optimizer), **found}

    def _at_backward(self, roots: Any) -> None:
        self._backwards += 1
        self._optimizers.backward()
        now_ns = self._recorder.now_ns()
        knows_step = self._since_step is not None or self._put_off
        self._put_off = True
        if self._since_step is not None:
            self._since_step += 1
        if knows_step and now_ns - self._looked_ns >= AGAIN_NS:
            self._looked_ns, self._has_looked = now_ns, True
            self.reading = {**self.reading, **flags(), **self._graph_below(roots, now_ns)}
        elif not self.reading:
            self.reading = flags()  # a first step may take long by one of them
        if now_ns - self._walked_ns >= WALK_AGAIN_NS:
            self._walked_ns = now_ns
            self.reading = {**self.reading, "autocast": autocast_of(roots)}
            if "optimizer" not in self.reading:
                self.reading = {**self.reading, "parameter_dtype": parameter_type_of(roots)}
        (tables, held), first = self._optimizers.take_tables(), first_of(roots)
        if first is None or first.grad_fn is None:
            return
        if self._since_step is not None:
            self._several.look(first.grad_fn, self._since_step)
        if self._first is not None and not self._cleared.is_known:
            optimizers = self._optimizers
            self._cleared.backward(first.grad_fn, optimizers.some(), optimizers.owners)
        if tables:
            rows = tables_of(first.grad_fn, tables, held)
            self.reading = {**self.reading, **(rows or dict.fromkeys(TABLE))}
        if not self._formats.is_over and first.device.type == "cpu":
            self._try_formats(first.grad_fn)

    def _try_formats(self, root: Any) -> None:
        """Where its net is in float32, and autocast was seen to be off."""
        if self.reading.get("autocast") == "" and self.reading.get("parameter_dtype") == "float32":
            if not self._formats.is_planned:
                self._formats.plan(node for node, _ in nodes_below(root, MOST_NODES))
            self.reading = {**self.reading, **self._formats.turn()}

    def _at_end(self, _roots: Any) -> None:
        self._cleared.ended()
        self._several.ended()

    def _graph_below(self, roots: Any, now_ns: int) -> dict[str, Any]:
        first = first_of(roots)
        if first is None or first.grad_fn is None:
            return {}
        on_host, owners = first.device.type == "cpu", self._optimizers.owners()
        is_alone = first is roots or len(roots) == 1
        found = self._operations.look(first.grad_fn, on_host, is_alone)
        if UNUSED_ROWS in found:
            rows = found.pop(UNUSED_ROWS)
            self._rows = rows if self._since_step == 1 else None
        if owners != self._owners:
            found |= self._owned_by(owners, now_ns)
        if owners and self._optimizers.are_settled and not self._unused.is_known:
            resting = self._optimizers.resting()
            found |= self._unused.look(first.grad_fn, owners, resting, now_ns)
        return found

    def _owned_by(self, owners: Owners, now_ns: int) -> dict[str, Any]:
        """Other optimizers than before, as in a second stage of a training: whose gradients nothing
        uses is asked anew, and the first of the turn may be gone. Returns what is not known now."""
        if now_ns - self._owned_ns < WALK_AGAIN_NS:
            if self._owners.items() <= owners.items():
                self._owners = owners  # one of those that had not stepped yet
            return {}
        is_first = not self._owners
        self._owners, self._owned_ns = owners, now_ns
        if is_first:
            return {}
        self._first = None
        self._unused, self._cleared = Unused(), Cleared()
        self._formats = Formats(self._recorder.now_ns)
        return dict.fromkeys((*UNUSED, *CLEARED, FORMATS))
