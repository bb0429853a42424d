"""Causes that bear the name of what the main thread is found in."""

from tui.verdict import policy
from tui.verdict.bound import bound
from tui.verdict.findings import Finding, Kind
from tui.verdict.rules.optimizer_advice import for_this_optimizer
from tui.verdict.sampled.felt import sampled_of
from tui.verdict.sampled.words import about, counted
from tui.verdict.window import Window


def checkpoint(window: Window) -> Finding | None:
    """While it writes, nothing trains, on the host or on the GPU."""
    advice = (
        "save more rarely: every step between two saves pays for them",
        "copy the state and write it on another thread (torch.distributed.checkpoint.async_save)",
    )
    return _held(window, "checkpoint", "checkpoint", "checkpoints take", "are in a save", advice)


def evaluation(window: Window) -> Finding | None:
    """Whether it is worth its time is for the user to say."""
    advice = (
        "evaluate more rarely, or on a part of the held-out set",
        "with a larger batch under torch.inference_mode()",
    )
    return _held(window, "evaluation", "evaluation", "evaluation takes", "evaluate", advice)


def recompile(window: Window) -> Finding | None:
    """A run that was found compiling again and again; its start is left out."""
    advice = (
        "shapes that vary: torch.compile(dynamic=True), or pad to a few sizes",
        "TORCH_LOGS=recompiles,graph_breaks names the guards that failed",
    )
    return _held(window, "recompile", "compile", "recompilation takes", "compile", advice)


def optimizer(window: Window) -> Finding | None:
    """Without a GPU alone: with one, where the host is says nothing of how long its update takes
    there."""
    if window.gpu_present:
        return None
    advice = for_this_optimizer(window)
    told = "are in the optimizer"
    return _held(window, "optimizer", "optimizer", "the optimizer takes", told, advice)


def _held(
    window: Window, kind: Kind, phase: str, what: str, told: str, advice: tuple[str, ...]
) -> Finding | None:
    known = sampled_of(window)
    share = known.share(phase)
    if share.mean < policy.CONTRIBUTOR:
        return None
    headline = f"{what} {about(share.mean)} of the time"
    return bound(kind, None, share, headline, (counted(known, share, told),), advice)
