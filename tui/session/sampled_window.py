"""What the verdict is told of a run without a probe: its samples, beside its processes and GPUs."""

from tui.session.activity_book import ActivityBook
from tui.session.process_book import ProcessBook
from tui.session.sampled_book import HOST, LOADING, SampledBook
from tui.session.stack_book import StackBook
from tui.verdict.window import Sampled, Still


def sampled(
    book: SampledBook,
    stacks: StackBook,
    processes: ProcessBook,
    gpus: ActivityBook,
    now_ns: int,
) -> Sampled:
    """As of now."""
    return Sampled(
        samples=len(book.rows),
        shares={phase: share for phase, share in book.shares().items()},
        serial=book.serial,
        loading=book.places(LOADING),
        host=book.places(HOST),
        period_ns=book.period_ns(),
        still=_still(book, stacks, processes, gpus, now_ns),
    )


def _still(
    book: SampledBook,
    stacks: StackBook,
    processes: ProcessBook,
    gpus: ActivityBook,
    now_ns: int,
) -> Still | None:
    unmoved = book.unmoved()
    if unmoved is None:
        return None
    host = processes.host_use(unmoved.since_ns, now_ns)
    activity = gpus.between(unmoved.since_ns, now_ns)
    return Still(
        age_s=max(0, now_ns - unmoved.since_ns) / 1e9,
        phase=unmoved.phase,
        frame=unmoved.frame,
        stack=unmoved.way,
        thread_cpu=host.thread_cpu,
        beside_cores=host.beside_cores,
        gpu_busy=None if activity is None else activity.busy,
        workers=stacks.workers_at(now_ns, unmoved.since_ns),
    )
