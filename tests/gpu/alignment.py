"""Three ways to lay the device's clock on the host's, against the truth of an idle device.

`python -m tests.gpu.alignment`. The truth is record-and-synchronise, the best of 200, before and
after; it disturbs the run, so it is only for here. Compared are the idle side stream (with the
compute stream idle, and behind a deep queue) and the bounds that come with the marks.
"""

import statistics
from time import perf_counter_ns

import torch

from gpuwatch.probe.device.chain import Chain
from gpuwatch.probe.device.events import CudaEvents
from gpuwatch.tui.sources.marks.alignment import Alignment


def truth_ns(chain: Chain, events: CudaEvents) -> tuple[float, float]:
    """(offset, half its width): host less device time, from the tightest record-and-synchronise."""
    best = (0.0, 1e18)
    for _ in range(200):
        event = events.make()  # type: ignore[no-untyped-call]
        before_ns = perf_counter_ns()
        events.record(event, torch.cuda.current_stream())
        event.synchronize()
        after_ns = perf_counter_ns()
        if after_ns - before_ns < 2 * best[1]:
            device_ns = chain._since_anchor(event)
            best = ((before_ns + after_ns) / 2 - device_ns, (after_ns - before_ns) / 2)
    return best


def aligned(chain: Chain, times: int) -> list[tuple[float, float]]:
    """Offsets and half widths that the side stream gave; fewer than `times` when it was slow."""
    seen = [chain.align(perf_counter_ns) for _ in range(times)]
    return [((b + a) / 2 - d, (a - b) / 2) for b, d, a in (one for one in seen if one is not None)]


def bounded(chain: Chain, events: CudaEvents, work: object, steps: int) -> Alignment:
    """The bounds that ordinary marks give: put, later seen passed."""
    assert callable(work)
    alignment = Alignment()
    for number in range(steps):
        put_ns = perf_counter_ns()
        event = events.make()  # type: ignore[no-untyped-call]
        events.record(event, torch.cuda.current_stream())
        chain.flight.append((number, event))
        work()
        chain.land()
        known = chain.resolve(24)
        seen_ns = perf_counter_ns()
        if known:
            alignment.at_most(seen_ns - known[-1][1], seen_ns)
        for at, device_ns in known:
            if at == number:
                alignment.at_least(put_ns - device_ns, put_ns)
    return alignment


def main() -> None:
    """Print the table."""
    torch.cuda.init()
    large = torch.randn(8192, 8192, device="cuda", dtype=torch.bfloat16)
    small = torch.zeros(64, device="cuda")
    events = CudaEvents(torch)
    chain = Chain(events, events.device())
    chain.flight.append((0, events.make()))  # type: ignore[no-untyped-call]
    events.record(chain.flight[0][1], torch.cuda.current_stream())
    torch.cuda.synchronize()
    chain.land()
    chain.resolve(1)
    chain.align(perf_counter_ns)
    true_ns, width_ns = truth_ns(chain, events)
    print(f"truth: +-{width_ns / 1e3:.1f} us")

    def row(name: str, seen: list[tuple[float, float]], asked: int) -> None:
        if not seen:
            print(f"| {name} | 0 of {asked} answered |")
            return
        errors = sorted(abs(offset - true_ns) / 1e3 for offset, _ in seen)
        widths = [width / 1e3 for _, width in seen]
        print(
            f"| {name} | {len(seen)} of {asked} | error median {statistics.median(errors):.1f} us, "
            f"worst {errors[-1]:.1f} us | half width {statistics.median(widths):.1f} us |"
        )

    row("side stream, device idle", aligned(chain, 200), 200)
    for _ in range(300):
        large @ large
    row("side stream, 300 matmuls queued", aligned(chain, 200), 200)
    torch.cuda.synchronize()

    def launches() -> None:
        for _ in range(200):
            small.add_(1)

    def matmuls() -> None:
        for _ in range(3):
            large @ large

    def synced() -> None:
        matmuls()
        torch.cuda.synchronize()

    for name, work in (("launch-bound", launches), ("GPU-bound", matmuls), ("item", synced)):
        alignment = bounded(chain, events, work, 100)
        torch.cuda.synchronize()
        seen = alignment.at(perf_counter_ns())
        row(f"bounds of the marks, {name}", [seen] if seen else [], 1)
    later_ns, later_width_ns = truth_ns(chain, events)
    print(f"drift: {(later_ns - true_ns) / 1e3:.1f} us, +-{(width_ns + later_width_ns) / 1e3:.1f}")


if __name__ == "__main__":
    main()
