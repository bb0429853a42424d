"""What a traced step shows that need not be, each with what does without it."""

from collections.abc import Iterator
from typing import Final, NamedTuple

from ...settings import NeedlessOperations, StepOperations
from ..findings import Evidence, Finding
from ..format import percent
from ..on_device import is_the_limit, share_of_net
from ..scoring import of_net
from ..statistics import Share, product, times, within_one
from ..thresholds.hysteresis import CONTRIBUTOR
from ..traced_places import shown, source
from ..window import StepWindow

Goes = tuple[float, float, float]
"""Of the time that operations take, what goes without them: in the middle, at least, at most."""
BACK: Final[Goes] = (0.95, 0.75, 1.0)
"""Of what such operations took as they were timed one by one: a device does some beside others, and
the caches are another's without them."""
OF_ORDER: Final[Goes] = (1.0, 0.75, 1.1)
"""Of products in the costly order, what another takes less than was counted: the larger matrix is
copied and freed as well. Attention without a softmax on two cores held 0.84 of a step's operations,
and 0.87 went (8x)."""
OF_SORT: Final[Goes] = (0.85, 0.5, 1.0)
"""Of a sort, what choosing a few takes less: 32 of 20,000 by topk took a tenth (two cores)."""
OF_INVERSES: Final[Goes] = (0.6, 0.2, 0.85)
"""Of an inverse, a determinant and their backward, what one Cholesky factor takes less: of 4,000
rows on an H200 0.6 of a step went (2.5x), of 800 on two cores 0.16."""
OF_ONE_TIME: Final[Goes] = (0.8, 0.2, 1.0)
"""On a GPU, of half of what a layer takes both ways: cuDNN may do them side by side. Of an LSTM of
512 over 400 times on an H200 it held 0.47, and 0.41 went (1.7x)."""


class Needless(NamedTuple):
    """Of one kind."""

    field: str
    """Of `settings.StepOperations`."""
    what: str
    """What each step does with its share."""
    instead: str
    goes: Goes = BACK
    goes_on_gpu: Goes | None = None
    """Where that is another."""

    @property
    def sub(self) -> str:
        """The finding's."""
        return self.field.replace("_", "-")


KINDS: Final = (
    Needless(
        "constant",
        "is computed anew, and was the same in each that was traced",
        "compute it once, and again only where it changes",
    ),
    Needless(
        "repeated",
        "computes again what the step has computed before",
        "compute it once in a step, and pass it on",
    ),
    Needless(
        "unread",
        "computes what no operation reads",
        "leave it out, unless it is printed: no backward and no later operation was seen to use it",
    ),
    Needless(
        "zeroed",
        "computes what is then multiplied by 0",
        "leave it out while its weight is 0, with its backward",
    ),
    Needless(
        "multiplied_out",
        "multiplies narrow weights out, for a layer that could take them in turn",
        "x @ W + x @ A @ B for x @ (W + A @ B), one narrow weight after the other",
    ),
    Needless(
        "costly_order",
        "multiplies matrices in the costly one of two orders",
        "a @ (b @ c) for (a @ b) @ c, or the reverse, so that the matrix between is small",
        OF_ORDER,
    ),
    Needless(
        "picked",
        "goes back through a whole matrix of which few numbers are used",
        "choose under torch.no_grad(), and compute what was chosen again, with a gradient",
    ),
    Needless(
        "one_time",
        "goes through all times for a result of which the first is used",
        "one input is all that it has read there: take out[:, -1, :hidden] and out[:, 0, "
        "hidden:], or a layer of one direction",
        goes_on_gpu=OF_ONE_TIME,
    ),
    Needless(
        "one_hot",
        "multiplies rows of one 1 among zeros by a matrix",
        "F.embedding(index, weight.t()), or nn.Embedding: it reads the rows, and multiplies "
        "nothing; index_add for the sum of each kind's rows",
    ),
    Needless(
        "few_sorted",
        "sorts everything for a small part of it",
        "torch.topk for the first of a sort, torch.kthvalue or median for one",
        OF_SORT,
    ),
    Needless(
        "inverse",
        "inverts matrices for a few vectors",
        "torch.linalg.solve(A, b) for inverse(A) @ b; of a covariance "
        "torch.linalg.cholesky, once, and torch.cholesky_solve: the logarithms of its "
        "diagonal give the determinant as well",
        OF_INVERSES,
    ),
)


def needless_operations(window: StepWindow, seen: StepOperations) -> Iterator[Finding | None]:
    """Those that count. Where a GPU waits for its host, by what they take there: they are
    launched."""
    for kind in KINDS:
        needless: NeedlessOperations | None = getattr(seen, kind.field)
        if needless is not None:
            yield _needless(window, seen, needless, kind)


def _needless(
    window: StepWindow, seen: StepOperations, needless: NeedlessOperations, kind: Needless
) -> Finding | None:
    by_host = not is_the_limit(window)
    part = needless.host_us / seen.host_us if by_host else needless.us / seen.us
    where = shown(needless.place)
    text = f"{needless.operations:,} of {seen.operations:,} operations of a traced step, most in "
    text += f"{where}: {percent(part)} of their time{' on the host' if by_host else ''}"
    goes = kind.goes_on_gpu if window.gpu_present and kind.goes_on_gpu else kind.goes
    headline = f"{{share}} of each step {kind.what}"
    return in_trace(window, kind.sub, (part, goes), headline, text, f"{kind.instead}: {where}")


def in_trace(
    window: StepWindow,
    sub: str,
    part: tuple[float, Goes],
    headline: str,
    text: str,
    advice: str,
) -> Finding | None:
    """`part`: of the operations' time, and what of that goes: the mean, the least, the most."""
    of_operations, goes = part
    net = share_of_net(window)
    share = product(net, times(Share(*goes), within_one(of_operations)))
    if share.mean < CONTRIBUTOR:
        return None
    evidence = (Evidence(text, source(window), of_operations),)
    return of_net(sub, share, headline.format(share=percent(share.mean)), evidence, (advice,))
