"""Training waits for checkpoints."""

from tui.verdict import policy
from tui.verdict.bound import bound
from tui.verdict.figures import ms, percent
from tui.verdict.findings import Evidence, Finding
from tui.verdict.forecast.gain import gain_of_pauses, gain_on_the_host
from tui.verdict.pauses import checkpoints
from tui.verdict.window import Window


def checkpoint(window: Window) -> Finding | None:
    """The amortised share of checkpoints, or one that lasted half a minute (diagnosis 2.6)."""
    found = checkpoints(window)
    if found is None:
        return None
    if found.share.mean < policy.CONTRIBUTOR and found.longest_ns < policy.LONG_PAUSE_NS:
        return None
    every = f"every {found.every_steps:.0f} steps"
    evidence = (
        Evidence(
            f"a checkpoint {every}, {ms(found.each_ns)} each", "hook", found.each_ns / 1e6, "ms"
        ),
        Evidence(
            f"a step without one takes {ms(found.step_ns)}", "hook", found.step_ns / 1e6, "ms"
        ),
    )
    advice = (
        f"save every {found.affordable_steps:,} steps: it would cost "
        f"{percent(policy.TARGET_BUDGET)}",
        "copy the state and write it on another thread (torch.distributed.checkpoint.async_save)",
    )
    headline = f"checkpoints take {percent(found.share.mean)} of the time"
    gain = gain_of_pauses("checkpoint", window, found.mean_ns)
    gain = gain or gain_on_the_host(window, found.share.mean)
    return bound("checkpoint", None, found.share, headline, evidence, advice, gain=gain)
